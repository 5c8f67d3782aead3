// Quill behind functions that Rust can call. No exception leaves one of them.

#include <cstddef>
#include <exception>
#include <string_view>

#include <quill/Backend.h>
#include <quill/Frontend.h>
#include <quill/LogMacros.h>
#include <quill/Logger.h>
#include <quill/sinks/FileSink.h>

extern "C" {

unsigned vellum_peers_quill_version() noexcept { return quill::Version; }

// A new logger into the file at `path`; null if that can't be opened. The thread that writes is
// one for the process.
void* vellum_peers_quill_open(const char* path, bool) noexcept {
    try {
        quill::Backend::start();
        auto sink = quill::Frontend::create_or_get_sink<quill::FileSink>(path);
        return quill::Frontend::create_or_get_logger(
            "bench", std::move(sink), quill::PatternFormatterOptions{"%(message)"});
    } catch (const std::exception&) {
        return nullptr;
    }
}

// Logs `len` characters as a line. From any thread.
void vellum_peers_quill_log(void* logger, const char* text, std::size_t len) noexcept {
    QUILL_LOG_INFO(static_cast<quill::Logger*>(logger), "{}", std::string_view(text, len));
}

// Writes what is queued and buffered, and closes the file.
void vellum_peers_quill_close(void* opaque) noexcept {
    auto* logger = static_cast<quill::Logger*>(opaque);
    logger->flush_log();
    quill::Frontend::remove_logger_blocking(logger);
}

}  // extern "C"
