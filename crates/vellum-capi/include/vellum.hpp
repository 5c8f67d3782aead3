// Vellum for C++17: handles that close themselves, over vellum.h.
//
// Errors are values: a function that can fail returns a Result, and nothing in this file throws, so
// it may be used with -fno-exceptions and -fno-rtti. A program that wants exceptions calls
// Result::or_throw(), which is there where exceptions are.
//
// Everything that vellum.h documents of a function holds here: errors, durability, cost, threads,
// fork. Functions without a wrapper are called with get():
//
//     vellum_prepare(log.get(), 2, nullptr);
#ifndef VELLUM_HPP
#define VELLUM_HPP

#include <chrono>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if defined(__cpp_exceptions)
#include <stdexcept>
#endif

#include <vellum.h>

namespace vellum {

// The position of a record.
using Lsn = std::uint64_t;

// Why a call failed.
class Error {
  public:
    // The calling thread's last failure; `code` is the return value of the function.
    explicit Error(int code) : code_(code), message_(vellum_last_error_message()) {}

    // A vellum_status.
    int code() const { return code_; }
    // A sentence that names the operation, the file and the value.
    const std::string &message() const { return message_; }

  private:
    int code_;
    std::string message_;
};

#if defined(__cpp_exceptions)
// The exception that Result::or_throw throws.
class Exception : public std::runtime_error {
  public:
    explicit Exception(const Error &error)
        : std::runtime_error(error.message()), code_(error.code())
    {
    }
    // A vellum_status.
    int code() const { return code_; }

  private:
    int code_;
};
#endif

// A value, or why there is none.
template <typename T> class [[nodiscard]] Result {
  public:
    Result(T value) : value_(std::move(value)) {}
    Result(Error error) : error_(std::move(error)) {}

    bool ok() const { return value_.has_value(); }
    explicit operator bool() const { return ok(); }

    // The value. Only where ok().
    T &operator*() & { return *value_; }
    T &&operator*() && { return std::move(*value_); }
    T *operator->() { return &*value_; }

    // Only where not ok().
    const Error &error() const { return *error_; }

#if defined(__cpp_exceptions)
    // The value; throws Exception where there is none.
    T or_throw() &&
    {
        if (!ok())
            throw Exception(*error_);
        return std::move(*value_);
    }
#endif

  private:
    std::optional<T> value_;
    std::optional<Error> error_;
};

// Done, or why not.
template <> class [[nodiscard]] Result<void> {
  public:
    Result() = default;
    Result(Error error) : error_(std::move(error)) {}

    bool ok() const { return !error_.has_value(); }
    explicit operator bool() const { return ok(); }

    // Only where not ok().
    const Error &error() const { return *error_; }

#if defined(__cpp_exceptions)
    void or_throw() &&
    {
        if (!ok())
            throw Exception(*error_);
    }
#endif

  private:
    std::optional<Error> error_;
};

using Status = Result<void>;

namespace detail {

inline Status status(int code) { return code == VELLUM_OK ? Status() : Status(Error(code)); }

// The status of a call, and the value that it has written.
template <typename T> Result<T> result(int code, T value)
{
    if (code != VELLUM_OK)
        return Error(code);
    return value;
}

// A structure of vellum.h that a call fills.
template <typename T, typename Fill> Result<T> filled(Fill fill)
{
    T value{};
    value.struct_size = sizeof value;
    int code = fill(&value);
    return result(code, value);
}

template <auto close> struct Close {
    template <typename T> void operator()(T *handle) const { close(handle); }
};

template <typename T, auto close> using Handle = std::unique_ptr<T, Close<close>>;

// What `make` has made, held by its class.
template <typename Held, typename T, typename Make> Result<Held> made(Make make)
{
    T *handle = nullptr;
    int code = make(&handle);
    if (code != VELLUM_OK)
        return Error(code);
    return Held(handle);
}

} // namespace detail

// vellum_options with its defaults filled in.
struct Options : vellum_options {
    // Takes an existing log as it is, or creates a framed one.
    Options() : vellum_options() { (void)vellum_options_init(this, sizeof(vellum_options)); }

    // For a write-ahead log.
    static Options wal()
    {
        Options options;
        options.kind = VELLUM_KIND_WAL;
        return options;
    }
};

// A record that a reader lends until its next call.
struct Record {
    std::string_view data;
    Lsn lsn;
    // Where to continue reading after it.
    Lsn next_lsn;
};

namespace detail {

inline Result<std::optional<Record>> lend(int code, const vellum_record &record)
{
    if (code == VELLUM_END)
        return std::optional<Record>();
    if (code != VELLUM_OK)
        return Error(code);
    std::string_view data(static_cast<const char *>(record.data), record.len);
    return std::optional<Record>(Record{data, record.lsn, record.next_lsn});
}

} // namespace detail

// A place in a log, and the way to the next record. One thread at a time.
class Reader {
  public:
    explicit Reader(vellum_reader *reader) : handle_(reader) {}

    // The next record, or nothing at the published end; later calls continue from there.
    Result<std::optional<Record>> next()
    {
        vellum_record record;
        return detail::lend(vellum_reader_next(get(), &record), record);
    }

    // The next record, waiting for one. Nothing after `timeout`; a negative one is for ever.
    Result<std::optional<Record>> follow(std::chrono::nanoseconds timeout)
    {
        vellum_record record;
        return detail::lend(vellum_reader_follow(get(), timeout.count(), &record), record);
    }

    // When the record that was returned last was appended, and its writer (the low 32 bits are the
    // process). Zeros in a log without envelopes.
    std::chrono::nanoseconds time() const
    {
        return std::chrono::nanoseconds(vellum_reader_time(handle_.get()));
    }
    std::uint64_t writer() const { return vellum_reader_writer(handle_.get()); }

    // Where the next record will be looked for.
    Lsn position() const { return vellum_reader_position(handle_.get()); }

    // Has it stop at `end`: it returns the records that start before.
    void stop_at(Lsn end) { (void)vellum_reader_stop_at(get(), end); }

    // Continues at the record at `to`, or at the oldest one for 0.
    Status seek(Lsn to) { return detail::status(vellum_reader_seek(get(), to)); }

    vellum_reader *get() { return handle_.get(); }

    // for (const vellum::Record &record : reader) reads to the published end, or to an error: then
    // status() has it. A record is lent until the next one is read.
    class iterator {
      public:
        using iterator_category = std::input_iterator_tag;
        using value_type = Record;
        using difference_type = std::ptrdiff_t;
        using pointer = const Record *;
        using reference = const Record &;

        reference operator*() const { return *reader_->record_; }
        pointer operator->() const { return &*reader_->record_; }
        iterator &operator++()
        {
            if (!reader_->advance())
                reader_ = nullptr;
            return *this;
        }
        void operator++(int) { ++*this; }
        bool operator==(const iterator &other) const { return reader_ == other.reader_; }
        bool operator!=(const iterator &other) const { return !(*this == other); }

      private:
        friend class Reader;
        explicit iterator(Reader *reader) : reader_(reader) {}
        Reader *reader_;
    };

    iterator begin() { return iterator(advance() ? this : nullptr); }
    iterator end() { return iterator(nullptr); }

    // How the newest loop over this reader ended.
    Status status() const { return error_ ? Status(*error_) : Status(); }

  private:
    bool advance()
    {
        auto found = next();
        record_ = found ? *found : std::nullopt;
        error_ = found ? std::nullopt : std::optional<Error>(found.error());
        return record_.has_value();
    }

    detail::Handle<vellum_reader, vellum_reader_close> handle_;
    // The record that a loop has read.
    std::optional<Record> record_;
    std::optional<Error> error_;
};

// Records of a log, the newest first. One thread at a time.
class Backwards {
  public:
    explicit Backwards(vellum_backwards *records) : handle_(records) {}

    // The next older record, or nothing where the log begins. It is lent until the next call.
    Result<std::optional<Record>> next()
    {
        vellum_record record;
        return detail::lend(vellum_backwards_next(get(), &record), record);
    }

    // Of the record that was returned last, as for Reader.
    std::chrono::nanoseconds time() const
    {
        return std::chrono::nanoseconds(vellum_backwards_time(handle_.get()));
    }
    std::uint64_t writer() const { return vellum_backwards_writer(handle_.get()); }

    vellum_backwards *get() { return handle_.get(); }

  private:
    detail::Handle<vellum_backwards, vellum_backwards_close> handle_;
};

// Several records that are appended all or none. One thread at a time.
class Batch {
  public:
    explicit Batch(vellum_batch *batch) : handle_(batch) {}

    Status push(std::string_view record)
    {
        return detail::status(vellum_batch_push(get(), record.data(), record.size()));
    }

    // Appends them; the position of the first. The batch is gone, whatever the outcome.
    Result<Lsn> append() &&
    {
        Lsn lsn = 0;
        int code = vellum_batch_append(handle_.release(), &lsn);
        return detail::result(code, lsn);
    }

    vellum_batch *get() { return handle_.get(); }

  private:
    detail::Handle<vellum_batch, vellum_batch_discard> handle_;
};

// A descriptor that becomes readable when a checkpoint is due.
class CheckpointEvent {
  public:
    explicit CheckpointEvent(vellum_checkpoint_event *event) : handle_(event) {}

    // For poll(2); neither to be closed nor read from.
    int fd() const { return vellum_checkpoint_event_fd(handle_.get()); }

    // Makes the descriptor unreadable; whether a checkpoint is due now.
    Result<bool> take() const
    {
        std::uint32_t due = 0;
        int code = vellum_checkpoint_event_take(handle_.get(), &due);
        return detail::result(code, due != 0);
    }

  private:
    detail::Handle<vellum_checkpoint_event, vellum_checkpoint_event_close> handle_;
};

// A commit that is on its way. Any number of threads may use it.
class Completion {
  public:
    explicit Completion(vellum_completion *completion) : handle_(completion) {}

    // Readable (POLLIN), for good, when the commit is done or has failed; not to be closed.
    int fd() const { return vellum_completion_fd(handle_.get()); }

    // Its result; nothing while it is on its way.
    std::optional<Status> outcome() const
    {
        int code = vellum_completion_outcome(handle_.get());
        if (code == VELLUM_PENDING)
            return std::nullopt;
        return detail::status(code);
    }

  private:
    detail::Handle<vellum_completion, vellum_completion_close> handle_;
};

// A thread that commits for callers that must not wait. Its end waits for the submitted positions.
class Committer {
  public:
    explicit Committer(vellum_committer *committer) : handle_(committer) {}

    // Asks for the record at `lsn`, and everything before it, to be made durable.
    Result<Completion> submit(Lsn lsn) const
    {
        return detail::made<Completion, vellum_completion>([&](vellum_completion **completion) {
            return vellum_committer_submit(handle_.get(), lsn, completion);
        });
    }

  private:
    detail::Handle<vellum_committer, vellum_committer_stop> handle_;
};

// A named position in a log, which the log keeps. Its end closes it; the cursor stays. Any number
// of threads may use it, except for skip_overrun().
class Cursor {
  public:
    explicit Cursor(vellum_cursor *cursor) : handle_(cursor) {}

    // The position of the first record that its reader has not finished.
    Result<Lsn> position() const
    {
        Lsn lsn = 0;
        int code = vellum_cursor_position(get(), &lsn);
        return detail::result(code, lsn);
    }

    // A reader that starts there. Reading does not move the cursor.
    Result<Reader> reader() const
    {
        return detail::made<Reader, vellum_reader>([&](vellum_reader **reader) {
            return vellum_cursor_reader(get(), reader);
        });
    }

    // Moves it forward to Record::next_lsn of the last record that is finished, durably.
    Status commit(Lsn lsn) const { return detail::status(vellum_cursor_commit(get(), lsn)); }

    // Moves it to any position; 0 is the oldest record.
    Status set(Lsn lsn) const { return detail::status(vellum_cursor_set(get(), lsn)); }

    // Keeps the records from here on from being removed; 0 is no limit.
    Status hold(std::uint64_t max_bytes = 0,
                std::chrono::seconds max_age = std::chrono::seconds(0)) const
    {
        auto seconds = static_cast<std::uint64_t>(max_age.count());
        return detail::status(vellum_cursor_hold(get(), max_bytes, seconds));
    }
    Status unhold() const { return detail::status(vellum_cursor_unhold(get())); }

    // Continues behind records that were removed in front of it, and reports them; nothing where
    // none were. Texts are lent until the next call.
    Result<std::optional<vellum_gap>> skip_overrun()
    {
        vellum_gap gap{};
        gap.struct_size = sizeof gap;
        int code = vellum_cursor_skip_overrun(get(), &gap);
        if (code == VELLUM_END)
            return std::optional<vellum_gap>();
        return detail::result(code, std::make_optional(gap));
    }

    // Lets no other handle change it, until disown(), the end of this handle or of the process.
    Status own() const { return detail::status(vellum_cursor_own(get())); }
    Status disown() const { return detail::status(vellum_cursor_disown(get())); }

    // Removes it from the log. The handle is gone, whatever the outcome.
    Status remove() && { return detail::status(vellum_cursor_remove(handle_.release())); }

    vellum_cursor *get() const { return handle_.get(); }

  private:
    detail::Handle<vellum_cursor, vellum_cursor_close> handle_;
};

// The state of a log at one moment. Texts in its results are lent until its end. Any number of
// threads may use it.
class Stat {
  public:
    explicit Stat(vellum_stat *stat) : handle_(stat) {}

    Result<vellum_summary> summary() const { return one<vellum_summary, vellum_stat_summary>(); }
    Result<vellum_recovery> recovery() const
    {
        return one<vellum_recovery, vellum_stat_recovery>();
    }
    Result<vellum_commits> commits() const { return one<vellum_commits, vellum_stat_commits>(); }
    Result<vellum_policy> policy() const { return one<vellum_policy, vellum_stat_policy>(); }
    Result<vellum_removed> removed() const { return one<vellum_removed, vellum_stat_removed>(); }
    Result<vellum_ship> ship() const { return one<vellum_ship, vellum_stat_ship>(); }

    // Files, oldest first, spares last.
    Result<std::vector<vellum_segment>> segments() const
    {
        return all<vellum_segment, vellum_stat_segment>();
    }
    Result<std::vector<vellum_participant>> participants() const
    {
        return all<vellum_participant, vellum_stat_participant>();
    }
    Result<std::vector<vellum_hold>> holds() const { return all<vellum_hold, vellum_stat_hold>(); }
    Result<std::vector<vellum_gap>> gaps() const { return all<vellum_gap, vellum_stat_gap>(); }
    Result<std::vector<vellum_cursor_stat>> cursors() const
    {
        return all<vellum_cursor_stat, vellum_stat_cursor>();
    }

    vellum_stat *get() const { return handle_.get(); }

  private:
    template <typename T, auto fill> Result<T> one() const
    {
        return detail::filled<T>([&](T *value) { return fill(get(), value); });
    }

    // One after the other, until there are no more.
    template <typename T, auto fill> Result<std::vector<T>> all() const
    {
        std::vector<T> found;
        for (;;) {
            auto next =
                detail::filled<T>([&](T *value) { return fill(get(), found.size(), value); });
            if (next)
                found.push_back(*next);
            else if (next.error().code() == VELLUM_OUT_OF_RANGE)
                return found;
            else
                return next.error();
        }
    }

    detail::Handle<vellum_stat, vellum_stat_free> handle_;
};

// An open log. Any number of threads may use it; readers, batches and committers of it keep it
// open.
class Log {
  public:
    explicit Log(vellum_log *log) : handle_(log) {}

    // Opens or creates the log in the directory `path`.
    static Result<Log> open(const std::string &path, const Options &options = Options())
    {
        return detail::made<Log, vellum_log>([&](vellum_log **log) {
            return vellum_open(path.c_str(), &options, log);
        });
    }

    // Opens the log at the same path once more. To continue after VELLUM_REMOVED.
    Result<Log> reopen() const
    {
        return detail::made<Log, vellum_log>([&](vellum_log **log) {
            return vellum_reopen(get(), log);
        });
    }

    // Appends a record; its position. It survives every process when this returns.
    Result<Lsn> append(std::string_view record) const
    {
        Lsn lsn = 0;
        int code = vellum_append(get(), record.data(), record.size(), &lsn);
        return detail::result(code, lsn);
    }

    // Appends a record and commits it; its position.
    Result<Lsn> append_durable(std::string_view record) const
    {
        Lsn lsn = 0;
        int code = vellum_append_durable(get(), record.data(), record.size(), &lsn);
        return detail::result(code, lsn);
    }

    // Makes the record at `lsn`, and everything before it, survive a power cut.
    Status commit(Lsn lsn) const { return detail::status(vellum_commit(get(), lsn)); }

    // Commits every record whose append had returned, in any process; the durable end.
    Result<Lsn> sync() const
    {
        Lsn durable = 0;
        int code = vellum_sync(get(), &durable);
        return detail::result(code, durable);
    }

    // A reader that starts at `from`, or at the oldest record for 0.
    Result<Reader> reader(Lsn from = 0) const
    {
        return detail::made<Reader, vellum_reader>([&](vellum_reader **reader) {
            return vellum_reader_open(get(), from, reader);
        });
    }

    // A reader that starts at the first record that was appended at `time` or later, counted from
    // 1970.
    Result<Reader> reader_at_time(std::chrono::nanoseconds time) const
    {
        return detail::made<Reader, vellum_reader>([&](vellum_reader **reader) {
            return vellum_reader_open_at_time(get(), static_cast<std::uint64_t>(time.count()), 0,
                                              reader);
        });
    }

    // The records that start before `before`, the newest first.
    Result<Backwards> backwards(Lsn before = UINT64_MAX) const
    {
        return detail::made<Backwards, vellum_backwards>([&](vellum_backwards **records) {
            return vellum_backwards_open(get(), before, records);
        });
    }

    Result<Batch> batch() const
    {
        return detail::made<Batch, vellum_batch>([&](vellum_batch **batch) {
            return vellum_batch_begin(get(), batch);
        });
    }

    // Starts a thread that commits.
    Result<Committer> committer() const
    {
        return detail::made<Committer, vellum_committer>([&](vellum_committer **committer) {
            return vellum_committer_start(get(), committer);
        });
    }

    // Stores `lsn` as the position from which to recover, and commits.
    Status set_checkpoint(Lsn lsn) const
    {
        return detail::status(vellum_set_checkpoint(get(), lsn));
    }

    // The position stored last, or 0.
    Lsn checkpoint() const { return vellum_checkpoint(get()); }

    // Whether Options::checkpoint_after_bytes are durable behind the checkpoint.
    bool checkpoint_due() const { return vellum_checkpoint_due(get()) != 0; }

    Result<CheckpointEvent> checkpoint_event() const
    {
        using Raw = vellum_checkpoint_event;
        return detail::made<CheckpointEvent, Raw>([&](Raw **event) {
            return vellum_checkpoint_event_open(get(), event);
        });
    }

    // The cursor of this name; a new one is made at `at`, or at the oldest record for 0.
    Result<Cursor> cursor(const std::string &name, Lsn at = 0) const
    {
        return detail::made<Cursor, vellum_cursor>([&](vellum_cursor **cursor) {
            return vellum_cursor_open(get(), name.c_str(), at, cursor);
        });
    }

    // The state of the log, its files and its processes.
    Result<Stat> stat() const
    {
        return detail::made<Stat, vellum_stat>([&](vellum_stat **stat) {
            return vellum_stat_take(get(), stat);
        });
    }

    // Has a text log continue in a new file at the next append.
    Status rotate() const { return detail::status(vellum_rotate(get())); }

    // Drops everything before `before`.
    Result<vellum_trim_report> trim(Lsn before) const
    {
        return detail::filled<vellum_trim_report>([&](vellum_trim_report *report) {
            return vellum_trim(get(), before, report);
        });
    }

    // Drops the record at `from` and everything behind it. The process must be alone in the log.
    Status truncate(Lsn from) const { return detail::status(vellum_truncate(get(), from)); }

    // Waits until every reader sees the record at `lsn` and all before it; a negative timeout is for
    // ever.
    Status wait_published(Lsn lsn, std::chrono::nanoseconds timeout) const
    {
        return detail::status(vellum_wait_published(get(), lsn, timeout.count()));
    }

    Lsn begin() const { return vellum_begin(get()); }
    Lsn durable() const { return vellum_durable(get()); }
    Lsn published() const { return vellum_published(get()); }
    Lsn tail() const { return vellum_tail(get()); }

    // A vellum_layout.
    std::uint32_t layout() const { return vellum_log_layout(get()); }

    std::string_view path() const { return vellum_log_path(get()); }

    // Closes the log as its destructor does, and returns errors. The log is gone afterwards.
    Status close() && { return detail::status(vellum_close(handle_.release())); }

    vellum_log *get() const { return handle_.get(); }

  private:
    detail::Handle<vellum_log, vellum_close> handle_;
};

} // namespace vellum

#endif // VELLUM_HPP
