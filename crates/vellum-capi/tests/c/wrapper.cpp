// vellum.hpp: what it returns, what moves, what a loop over a reader sees. Compiled with exceptions
// and without. The argument is a directory to work in.

#include <poll.h>

#include <string>
#include <type_traits>
#include <vector>

#include <vellum.hpp>

#include "check.h"

namespace {

template <typename T> constexpr bool moves_only()
{
    return std::is_nothrow_move_constructible_v<T> && std::is_move_assignable_v<T> &&
           !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T>;
}

static_assert(moves_only<vellum::Log>() && moves_only<vellum::Reader>());
static_assert(moves_only<vellum::Committer>() && moves_only<vellum::Completion>());
static_assert(moves_only<vellum::Batch>() && moves_only<vellum::CheckpointEvent>());

vellum::Log open(const std::string &path)
{
    vellum::Options options = vellum::Options::wal();
    options.segment_capacity_bytes = 1 << 20;
    options.checkpoint_after_bytes = 4096;
    auto log = vellum::Log::open(path, options);
    CHECK(log.ok());
    return *std::move(log);
}

std::vector<std::string> read_all(vellum::Reader &reader)
{
    std::vector<std::string> records;
    for (const vellum::Record &record : reader) {
        CHECK(record.lsn != 0 && record.next_lsn > record.lsn);
        records.emplace_back(record.data);
    }
    return records;
}

void records_come_back(const std::string &dir)
{
    const vellum::Log log = open(dir + "/records");
    CHECK(log.path() == dir + "/records");
    auto first = log.append("one");
    CHECK(first && *first >= log.begin());
    CHECK(log.append_durable({"t\0o", 3}));
    auto batch = log.batch();
    CHECK(batch && batch->push("three") && batch->push(""));
    auto third = (*std::move(batch)).append();
    CHECK(third && log.commit(*third) && log.durable() > *third);

    auto reader = log.reader();
    CHECK(reader);
    CHECK((read_all(*reader) == std::vector<std::string>{"one", {"t\0o", 3}, "three", ""}));
    CHECK(reader->status() && read_all(*reader).empty());
    CHECK(log.append("four") && read_all(*reader) == std::vector<std::string>{"four"});
    CHECK(reader->position() == log.published());
    auto nothing = reader->follow(std::chrono::milliseconds(1));
    CHECK(nothing && !nothing->has_value());
    auto from = log.reader(*third);
    CHECK(from);
    auto record = from->next();
    CHECK(record && (*record)->data == "three" && (*record)->lsn == *third);
    CHECK(reader->seek(*third) && reader->position() == *third && !reader->seek(*third + 1));
}

void the_newest_records_come_first(const std::string &dir)
{
    auto log = open(dir + "/backwards");
    auto first = log.append("one");
    auto second = log.append("two");
    CHECK(first && second);
    auto records = log.backwards();
    CHECK(records);
    auto record = records->next();
    CHECK(record && (*record)->data == "two" && (*record)->lsn == *second);
    record = records->next();
    CHECK(record && (*record)->data == "one" && records->time().count() == 0);
    record = records->next();
    CHECK(record && !record->has_value());
    auto older = log.backwards(*second);
    CHECK(older && (*older->next())->data == "one");
}

void records_have_times(const std::string &dir)
{
    vellum::Options options;
    options.flags = VELLUM_ENVELOPE;
    auto log = vellum::Log::open(dir + "/times", options);
    CHECK(log && log->append("one"));
    auto reader = log->reader();
    CHECK(reader && reader->time().count() == 0 && reader->next());
    CHECK(reader->time().count() > 0 && reader->writer() != 0);
    auto same = log->reader_at_time(reader->time());
    CHECK(same && read_all(*same) == std::vector<std::string>{"one"});
    auto later = log->reader_at_time(reader->time() + std::chrono::nanoseconds(1));
    CHECK(later && read_all(*later).empty());
}

void handles_may_be_dropped_in_any_order(const std::string &dir)
{
    auto log = std::make_optional(open(dir + "/order"));
    CHECK(log->append("kept"));
    auto reader = log->reader();
    auto batch = log->batch();
    CHECK(reader && batch && batch->push("never appended"));
    vellum::Log moved = std::move(*log);
    log.reset();
    CHECK(moved.sync());
    CHECK(std::move(moved).close().error().code() == VELLUM_BUSY);
    reader->stop_at(reader->position());
    CHECK(read_all(*reader).empty());
    reader->stop_at(UINT64_MAX);
    CHECK(read_all(*reader) == std::vector<std::string>{"kept"});
    CHECK(open(dir + "/closed").close());
}

void errors_are_values(const std::string &dir)
{
    vellum::Options options;
    options.flags = VELLUM_NO_CREATE;
    auto missing = vellum::Log::open(dir + "/missing", options);
    CHECK(!missing && missing.error().code() == VELLUM_NOT_FOUND);
    CHECK(missing.error().message().find("missing") != std::string::npos);

    vellum::Log log = open(dir + "/errors");
    CHECK(log.commit(1 << 30).error().code() == VELLUM_OUT_OF_RANGE);
    CHECK(log.reader(1 << 30).error().code() == VELLUM_OUT_OF_RANGE);
    auto kept = log.append("kept"), dropped = log.append("dropped");
    auto reader = log.reader();
    CHECK(kept && dropped && reader && read_all(*reader).size() == 2 && reader->status());
    CHECK(log.truncate(*dropped));
    CHECK(read_all(*reader).empty() && !reader->status());
    CHECK(reader->status().error().code() == VELLUM_OUT_OF_RANGE);
#if defined(__cpp_exceptions)
    CHECK(log.append("one").or_throw() != 0);
    try {
        log.commit(1 << 30).or_throw();
        CHECK(false);
    } catch (const vellum::Exception &error) {
        CHECK(error.code() == VELLUM_OUT_OF_RANGE && std::string(error.what()) != "");
    }
#endif
}

void checkpoints_are_told_of(const std::string &dir)
{
    vellum::Log log = open(dir + "/checkpoints");
    auto event = log.checkpoint_event();
    CHECK(event);
    pollfd waiting = {event->fd(), POLLIN, 0};
    CHECK(!log.checkpoint_due() && poll(&waiting, 1, 0) == 0);
    while (!log.checkpoint_due())
        CHECK(log.append_durable(std::string(500, 'x')));
    CHECK(poll(&waiting, 1, 0) == 1);
    auto due = event->take();
    CHECK(due && *due && poll(&waiting, 1, 0) == 0);
    vellum::Lsn end = log.published();
    CHECK(log.set_checkpoint(end) && log.trim(end));
    CHECK(log.checkpoint() == end && log.begin() == end && !log.checkpoint_due());
}

void commits_are_polled_for(const std::string &dir)
{
    vellum::Log log = open(dir + "/commits");
    auto committer = log.committer();
    auto lsn = log.append("later");
    CHECK(committer && lsn);
    auto completion = committer->submit(*lsn);
    CHECK(completion);
    pollfd waiting = {completion->fd(), POLLIN, 0};
    CHECK(poll(&waiting, 1, -1) == 1);
    auto outcome = completion->outcome();
    CHECK(outcome && outcome->ok() && log.durable() > *lsn);
    CHECK(committer->submit(1 << 30).error().code() == VELLUM_OUT_OF_RANGE);
}

} // namespace

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    records_come_back(argv[1]);
    the_newest_records_come_first(argv[1]);
    records_have_times(argv[1]);
    handles_may_be_dropped_in_any_order(argv[1]);
    errors_are_values(argv[1]);
    checkpoints_are_told_of(argv[1]);
    commits_are_polled_for(argv[1]);
    return 0;
}
