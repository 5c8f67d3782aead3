// spdlog behind functions that Rust can call. No exception leaves one of them.

// Nothing to link: the header-only forms of spdlog and of the formatter it may share.
#define FMT_HEADER_ONLY

#include <cstddef>
#include <exception>
#include <memory>

#include <spdlog/async.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

namespace {

// As many as `spdlog::init_thread_pool` has by default.
constexpr std::size_t queue_items = 8192;

struct Peer {
    std::shared_ptr<spdlog::details::thread_pool> pool;
    std::shared_ptr<spdlog::logger> logger;
};

std::shared_ptr<spdlog::logger> make_logger(Peer& peer, const char* path, bool is_async) {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    if (!is_async) return std::make_shared<spdlog::logger>("bench", sink);
    peer.pool = std::make_shared<spdlog::details::thread_pool>(queue_items, 1);
    return std::make_shared<spdlog::async_logger>(
        "bench", sink, peer.pool, spdlog::async_overflow_policy::block);
}

}  // namespace

extern "C" {

unsigned vellum_peers_spdlog_version() noexcept { return SPDLOG_VERSION; }

// A new logger into the file at `path`; null if that can't be opened.
void* vellum_peers_spdlog_open(const char* path, bool is_async) noexcept {
    try {
        auto peer = std::make_unique<Peer>();
        peer->logger = make_logger(*peer, path, is_async);
        peer->logger->set_pattern("%v");
        return peer.release();
    } catch (const std::exception&) {
        return nullptr;
    }
}

// Logs `len` characters as a line. From any thread.
void vellum_peers_spdlog_log(void* peer, const char* text, std::size_t len) noexcept {
    static_cast<Peer*>(peer)->logger->info("{}", spdlog::string_view_t(text, len));
}

// Writes what is queued and buffered, and closes the file. The pool goes first: its thread ends
// when the queue is empty, and the sink flushes when no logger holds it any more.
void vellum_peers_spdlog_close(void* opaque) noexcept {
    std::unique_ptr<Peer> peer(static_cast<Peer*>(opaque));
    peer->pool.reset();
}

}  // extern "C"
