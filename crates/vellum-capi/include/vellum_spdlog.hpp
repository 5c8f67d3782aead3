// A sink for spdlog 1.x: loggers of any number of processes write to one Vellum log, C++17.
//
//     vellum::SpdlogOptions options;
//     options.rotate_bytes = 10000000;
//     options.retain_files = 5;
//     auto logger = vellum::spdlog_logger_mt("app", "app.log", options);
//     logger->info("listening on port {}", 8080);
//
// A message survives the death of every process when the call that logs it returns; only
// SpdlogOptions::sync_on_flush makes it survive a power cut. A message that cannot be written is
// handed to the logger's error handler, as spdlog does for all sinks.
#ifndef VELLUM_SPDLOG_HPP
#define VELLUM_SPDLOG_HPP

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <spdlog/details/null_mutex.h>
#include <spdlog/details/synchronous_factory.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/sink.h>

#include <vellum.hpp>

namespace vellum {

// vellum_options for a log of lines: rotation (rotate_*), retention (retain_*), a full disk
// (on_full) and so on are set here.
struct SpdlogOptions : Options {
    // A new log is a text log whose path is that of a file: app.log is a link to the newest file,
    // and the files are in app.log.d.
    SpdlogOptions()
    {
        kind = VELLUM_KIND_TEXT;
        flags = VELLUM_FILE_LINK;
    }

    // Whether flush() makes what was logged survive a power cut. With it, flush_on(level::err) of
    // the logger does so for each error before the call returns. Without it, flush() does nothing:
    // nothing is buffered.
    bool sync_on_flush = false;
};

// The sink. With std::mutex any number of threads may log at once. Only formatting is done under
// the mutex: threads append and flush at the same time, so one sync serves all that wait. So lines
// of two threads may come in another order than their times.
template <typename Mutex> class SpdlogSink final : public spdlog::sinks::sink {
  public:
    // Opens or creates the log at `path`; throws spdlog::spdlog_ex where that fails.
    explicit SpdlogSink(const std::string &path, const SpdlogOptions &options = SpdlogOptions())
        : formatter_(std::make_unique<spdlog::pattern_formatter>()),
          log_(held(Log::open(path, options))), sync_on_flush_(options.sync_on_flush)
    {
    }

    void log(const spdlog::details::log_msg &message) override
    {
        spdlog::memory_buf_t line;
        std::shared_ptr<const Log> log = format(message, line);
        Result<Lsn> lsn = append(*log, line);
        if (!lsn && lsn.error().code() == VELLUM_REMOVED)
            lsn = append(*go_on(log), line);
        if (!lsn)
            fail(lsn.error());
    }

    void flush() override
    {
        if (!sync_on_flush_)
            return;
        Result<Lsn> durable = current()->sync();
        if (!durable)
            fail(durable.error());
    }

    void set_pattern(const std::string &pattern) override
    {
        set_formatter(std::make_unique<spdlog::pattern_formatter>(pattern));
    }

    void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override
    {
        std::lock_guard<Mutex> lock(mutex_);
        formatter_ = std::move(formatter);
    }

    // The log that is written to, for functions that the sink does not have: rotate(), stat().
    std::shared_ptr<const Log> current() const
    {
        std::lock_guard<Mutex> lock(mutex_);
        return log_;
    }

  private:
    [[noreturn]] static void fail(const Error &error)
    {
        spdlog::throw_spdlog_ex(error.message());
    }

    static std::shared_ptr<const Log> held(Result<Log> log)
    {
        if (!log)
            fail(log.error());
        return std::make_shared<const Log>(*std::move(log));
    }

    // Formatters keep the time of the newest message and more, so they are not to be shared.
    std::shared_ptr<const Log> format(const spdlog::details::log_msg &message,
                                      spdlog::memory_buf_t &line)
    {
        std::lock_guard<Mutex> lock(mutex_);
        formatter_->format(message, line);
        return log_;
    }

    // A framed log has records, which need no end of line.
    static Result<Lsn> append(const Log &log, const spdlog::memory_buf_t &line)
    {
        std::string_view text(line.data(), line.size());
        std::string_view end(spdlog::details::os::default_eol);
        bool ends = text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
        if (ends && log.layout() == VELLUM_LAYOUT_FRAMED)
            text.remove_suffix(end.size());
        return log.append(text);
    }

    // The log after the directory of `gone` was moved away; one thread opens it.
    std::shared_ptr<const Log> go_on(const std::shared_ptr<const Log> &gone)
    {
        std::lock_guard<Mutex> lock(mutex_);
        if (log_ == gone)
            log_ = held(gone->reopen());
        return log_;
    }

    mutable Mutex mutex_;
    std::unique_ptr<spdlog::formatter> formatter_;
    std::shared_ptr<const Log> log_;
    const bool sync_on_flush_;
};

using spdlog_sink_mt = SpdlogSink<std::mutex>;
// For programs that log from one thread.
using spdlog_sink_st = SpdlogSink<spdlog::details::null_mutex>;

// A registered logger with one such sink; spdlog::async_factory makes an asynchronous one.
template <typename Factory = spdlog::synchronous_factory>
std::shared_ptr<spdlog::logger> spdlog_logger_mt(const std::string &name, const std::string &path,
                                                 const SpdlogOptions &options = SpdlogOptions())
{
    return Factory::template create<spdlog_sink_mt>(name, path, options);
}

template <typename Factory = spdlog::synchronous_factory>
std::shared_ptr<spdlog::logger> spdlog_logger_st(const std::string &name, const std::string &path,
                                                 const SpdlogOptions &options = SpdlogOptions())
{
    return Factory::template create<spdlog_sink_st>(name, path, options);
}

} // namespace vellum

#endif // VELLUM_SPDLOG_HPP
