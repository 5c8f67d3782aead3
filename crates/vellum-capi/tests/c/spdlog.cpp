// vellum_spdlog.hpp with spdlog itself: what arrives in the log, from how many threads, and what
// becomes of failures. The argument is a directory to work in.

// Nothing to link: the header-only form of the formatter that Debian's spdlog shares.
#define FMT_HEADER_ONLY

#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <spdlog/async.h>
#include <spdlog/spdlog.h>

#include <vellum_spdlog.hpp>

#include "check.h"

namespace {

vellum::spdlog_sink_mt &sink_of(spdlog::logger &logger)
{
    return *std::static_pointer_cast<vellum::spdlog_sink_mt>(logger.sinks().front());
}

std::vector<std::string> records(const std::string &path)
{
    auto log = vellum::Log::open(path);
    CHECK(log);
    auto reader = log->reader();
    CHECK(reader);
    std::vector<std::string> found;
    for (const vellum::Record &record : *reader)
        found.emplace_back(record.data);
    CHECK(reader->status());
    return found;
}

void lines_are_where_the_path_says(const std::string &path)
{
    auto logger = vellum::spdlog_logger_mt("lines", path);
    logger->set_pattern("%l %v");
    logger->info("port {}", 8080);
    logger->debug("not shown");
    logger->error("two\nlines");
    std::ifstream file(path);
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    CHECK(text == "info port 8080\nerror two\nlines\n");
    CHECK(spdlog::get("lines") == logger);
}

void threads_log_at_the_same_time(const std::string &path)
{
    auto logger = vellum::spdlog_logger_mt("threads", path);
    logger->set_pattern("%Y-%m-%d %v");
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; thread++)
        threads.emplace_back([&, thread] {
            for (int i = 0; i < 500; i++)
                logger->info("{} {}", thread, i);
        });
    for (std::thread &thread : threads)
        thread.join();
    std::set<std::string> lines;
    for (const std::string &line : records(path))
        CHECK(line.size() > 13 && line[4] == '-' && lines.insert(line.substr(11)).second);
    CHECK(lines.size() == 2000);
}

void a_flush_syncs_where_that_is_wanted(const std::string &path)
{
    vellum::SpdlogOptions options;
    options.sync_on_flush = true;
    auto logger = vellum::spdlog_logger_mt("durable", path, options);
    logger->flush_on(spdlog::level::err);
    auto log = sink_of(*logger).current();
    logger->info("not yet");
    CHECK(log->durable() < log->published());
    logger->error("now");
    CHECK(log->durable() == log->published());

    auto fast = vellum::spdlog_logger_st("fast", path);
    fast->info("not asked for");
    fast->flush();
    CHECK(log->durable() < log->published());
}

void logs_rotate_and_forget(const std::string &path)
{
    vellum::SpdlogOptions options;
    options.rotate_bytes = 4096;
    options.retain_files = 2;
    auto logger = vellum::spdlog_logger_mt("rotating", path, options);
    for (int i = 0; i < 400; i++)
        logger->info("message {}", i);
    auto stat = sink_of(*logger).current()->stat();
    CHECK(stat && stat->policy()->rotate_bytes == 4096 && stat->removed()->files_by_files > 0);
}

void a_log_that_was_moved_is_made_again(const std::string &path)
{
    auto logger = vellum::spdlog_logger_mt("moved", path);
    logger->set_pattern("%v");
    logger->info("before");
    CHECK(std::rename((path + ".d").c_str(), (path + ".old").c_str()) == 0);
    // A writer looks for its directory once in a while.
    while (!std::ifstream(path))
        logger->info("after");
    CHECK(records(path).front() == "after\n");
    CHECK(records(path + ".old").front() == "before\n");
}

void framed_logs_have_no_ends_of_lines(const std::string &path)
{
    vellum::SpdlogOptions options;
    options.kind = VELLUM_KIND_EVENTS;
    options.flags = 0;
    auto logger = vellum::spdlog_logger_st("framed", path, options);
    logger->set_pattern("%v");
    logger->info("one");
    logger->info("two\n");
    CHECK((records(path) == std::vector<std::string>{"one", "two\n"}));
}

void failures_reach_the_error_handler(const std::string &path)
{
    try {
        vellum::spdlog_sink_mt sink(path + "/no/such/directory");
        CHECK(false);
    } catch (const spdlog::spdlog_ex &error) {
        CHECK(std::string(error.what()).find("no/such") != std::string::npos);
    }
    vellum::spdlog_logger_mt("creates", path)->info("one");
    vellum::SpdlogOptions options;
    options.flags = VELLUM_OPEN_READ_ONLY;
    auto logger = vellum::spdlog_logger_mt("reads", path, options);
    std::string said;
    logger->set_error_handler([&](const std::string &text) { said = text; });
    logger->info("two");
    CHECK(said.find("read") != std::string::npos && records(path).size() == 1);
}

void an_asynchronous_logger_writes_all(const std::string &path)
{
    auto logger = vellum::spdlog_logger_mt<spdlog::async_factory>("async", path);
    for (int i = 0; i < 1000; i++)
        logger->info("{}", i);
    logger.reset();
    spdlog::shutdown();
    CHECK(records(path).size() == 1000);
}

} // namespace

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    const std::string dir = argv[1];
    lines_are_where_the_path_says(dir + "/lines.log");
    threads_log_at_the_same_time(dir + "/threads.log");
    a_flush_syncs_where_that_is_wanted(dir + "/durable.log");
    logs_rotate_and_forget(dir + "/rotating.log");
    a_log_that_was_moved_is_made_again(dir + "/moved.log");
    framed_logs_have_no_ends_of_lines(dir + "/framed.log");
    failures_reach_the_error_handler(dir + "/failures.log");
    an_asynchronous_logger_writes_all(dir + "/async.log");
    return 0;
}
