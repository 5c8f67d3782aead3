// The handles as C++ holds them: closed by destructors, errors as exceptions. The argument is a
// directory to work in.

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "check.h"

namespace {

struct Close {
    void operator()(vellum_log *log) const { vellum_close(log); }
    void operator()(vellum_reader *reader) const { vellum_reader_close(reader); }
    void operator()(vellum_batch *batch) const { vellum_batch_discard(batch); }
};

template <typename T> using Handle = std::unique_ptr<T, Close>;

struct Error : std::runtime_error {
    Error() : std::runtime_error(vellum_last_error_message()), code(vellum_last_error_code()) {}
    int code;
};

void must(int status)
{
    if (status != VELLUM_OK)
        throw Error();
}

Handle<vellum_log> open(const std::string &path)
{
    vellum_log *log = nullptr;
    must(vellum_open(path.c_str(), nullptr, &log));
    return Handle<vellum_log>(log);
}

std::vector<std::string> read_all(const vellum_log *log)
{
    vellum_reader *opened = nullptr;
    must(vellum_reader_open(log, 0, &opened));
    Handle<vellum_reader> reader(opened);
    std::vector<std::string> records;
    for (vellum_record record; vellum_reader_next(reader.get(), &record) == VELLUM_OK;)
        records.emplace_back(static_cast<const char *>(record.data), record.len);
    return records;
}

void append_all(const vellum_log *log, const std::vector<std::string_view> &records)
{
    vellum_batch *begun = nullptr;
    must(vellum_batch_begin(log, &begun));
    Handle<vellum_batch> batch(begun);
    for (std::string_view record : records)
        must(vellum_batch_push(batch.get(), record.data(), record.size()));
    must(vellum_batch_append(batch.release(), nullptr));
}

} // namespace

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    const std::string dir = argv[1];
    Handle<vellum_log> log = open(dir + "/raii");
    append_all(log.get(), {"one", "two", ""});
    Handle<vellum_log> moved = std::move(log);
    CHECK((read_all(moved.get()) == std::vector<std::string>{"one", "two", ""}));

    try {
        must(vellum_append(log.get(), "lost", 4, nullptr));
        CHECK(false);
    } catch (const Error &error) {
        CHECK(error.code == VELLUM_INVALID_ARGUMENT);
        CHECK(std::strcmp(error.what(), "`log` is NULL") == 0);
    }

    vellum_options options;
    must(vellum_options_init(&options, sizeof options));
    options.flags = VELLUM_CREATE_NEW;
    vellum_log *second = nullptr;
    RETURNS(VELLUM_ALREADY_EXISTS, vellum_open((dir + "/raii").c_str(), &options, &second));
    vellum_summary summary = {};
    summary.struct_size = sizeof summary;
    vellum_stat *stat = nullptr;
    must(vellum_stat_take(moved.get(), &stat));
    must(vellum_stat_summary(stat, &summary));
    CHECK(summary.layout == VELLUM_LAYOUT_FRAMED);
    vellum_stat_free(stat);
    return 0;
}
