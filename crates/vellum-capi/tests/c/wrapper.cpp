// vellum.hpp: its results, its moves, the records of a loop over a reader. Compiled with exceptions
// and without. The argument is a directory to work in.

#include <poll.h>

#include <cstdio>
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
static_assert(moves_only<vellum::Cursor>() && moves_only<vellum::Stat>());

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

void cursors_remember_what_was_read(const std::string &dir)
{
    vellum::Log log = open(dir + "/cursors");
    auto first = log.append("one"), second = log.append("two");
    auto cursor = log.cursor("mail");
    CHECK(first && second && cursor && *cursor->position() == log.begin());
    auto reader = cursor->reader();
    CHECK(reader && (**reader->next()).data == "one");
    CHECK(cursor->own() && cursor->commit(*second) && log.durable() > *first);
    auto same = log.cursor("mail");
    CHECK(same && *same->position() == *second && same->own().error().code() == VELLUM_BUSY);
    CHECK(cursor->disown() && same->set(*first) && same->hold() && same->unhold());
    auto refused = same->hold(1 << 20, std::chrono::hours(1)); // no record has a time
    CHECK(refused.error().code() == VELLUM_UNSUPPORTED && same->hold(1 << 20));
    auto gap = cursor->skip_overrun();
    CHECK(gap && !gap->has_value());
    CHECK(log.cursor("no/name").error().code() == VELLUM_INVALID_OPTION);
    CHECK(std::move(*cursor).remove());
    CHECK(same->position().error().code() == VELLUM_NOT_FOUND);
    auto late = log.cursor("late", *second);
    CHECK(late && *late->position() == *second);
}

void a_trim_says_what_a_cursor_held(const std::string &dir)
{
    vellum::Log log = open(dir + "/trim");
    auto first = log.append("one"), second = log.append("two");
    auto cursor = log.cursor("slow");
    CHECK(first && second && cursor && cursor->hold() && log.sync());
    auto trimmed = log.trim(*second);
    CHECK(trimmed && trimmed->begin == *first && trimmed->held_at == *first);
    CHECK(cursor->unhold());
    trimmed = log.trim(*second);
    CHECK(trimmed && trimmed->begin == *second && trimmed->held_at == 0);
    auto lost = cursor->reader();
    CHECK(!lost && lost.error().code() == VELLUM_TRIMMED);
    auto gap = cursor->skip_overrun();
    CHECK(gap && gap->has_value() && *cursor->position() == *second);
}

void text_logs_rotate_and_go_on_elsewhere(const std::string &dir)
{
    vellum::Options options;
    options.kind = VELLUM_KIND_TEXT;
    auto log = vellum::Log::open(dir + "/text", options);
    CHECK(log && log->layout() == VELLUM_LAYOUT_TEXT && log->append("one\n"));
    CHECK(log->rotate() && log->append("two\n"));
    auto files = (*log->stat()).segments();
    CHECK(files && files->size() >= 2 && files->front().state == VELLUM_SEGMENT_SEALED);
    CHECK(open(dir + "/framed").rotate().error().code() == VELLUM_UNSUPPORTED);
    CHECK(std::rename((dir + "/text").c_str(), (dir + "/moved").c_str()) == 0);
    auto next = log->reopen();
    CHECK(next && next->append("three\n") && next->path() == log->path());
}

void a_state_is_taken_apart(const std::string &dir)
{
    vellum::Log log = open(dir + "/stat");
    CHECK(log.append_durable("one") && log.cursor("mail"));
    auto stat = log.stat();
    CHECK(stat);
    auto summary = stat->summary();
    CHECK(summary && summary->published == log.published() && summary->records == 1);
    auto participants = stat->participants();
    CHECK(participants && participants->size() == 1 && participants->front().alive == 1);
    auto cursors = stat->cursors();
    CHECK(cursors && cursors->size() == 1 && std::string(cursors->front().name) == "mail");
    CHECK(stat->holds() && stat->gaps()->empty() && stat->segments()->size() >= 1);
    CHECK(stat->commits()->commits >= 1 && stat->policy()->rotate_bytes == 0);
    CHECK(stat->removed()->files_by_bytes == 0 && stat->ship()->status == VELLUM_SHIP_NONE);
    CHECK(stat->recovery());
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
    cursors_remember_what_was_read(argv[1]);
    a_trim_says_what_a_cursor_held(argv[1]);
    text_logs_rotate_and_go_on_elsewhere(argv[1]);
    a_state_is_taken_apart(argv[1]);
    return 0;
}
