/* What callers do wrong, and what the world refuses. The argument is a directory to work in. */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define NULLS(call) RETURNS(VELLUM_INVALID_ARGUMENT, call)

static void nulls(const vellum_log *log)
{
    uint64_t lsn = 7;
    vellum_record record;
    vellum_trim_report trimmed = {.struct_size = sizeof trimmed};
    vellum_recovery recovery = {.struct_size = sizeof recovery};
    struct iovec parts[1] = {{.iov_base = NULL, .iov_len = 3}};
    NULLS(vellum_open(NULL, NULL, NULL));
    NULLS(vellum_open("/tmp", NULL, NULL));
    NULLS(vellum_options_init(NULL, sizeof(vellum_options)));
    NULLS(vellum_append(NULL, "x", 1, &lsn));
    NULLS(vellum_append(log, NULL, 1, &lsn));
    NULLS(vellum_append(log, "x", SIZE_MAX, &lsn));
    NULLS(vellum_appendv(NULL, NULL, 0, &lsn));
    NULLS(vellum_appendv(log, NULL, 1, &lsn));
    NULLS(vellum_appendv(log, parts, 1, &lsn));
    NULLS(vellum_appendv(log, parts, SIZE_MAX, &lsn));
    NULLS(vellum_append_durable(NULL, "x", 1, &lsn));
    NULLS(vellum_commit(NULL, 1));
    NULLS(vellum_sync(NULL, &lsn));
    NULLS(vellum_set_checkpoint(NULL, 1));
    NULLS(vellum_checkpoint_event_open(NULL, NULL));
    NULLS(vellum_checkpoint_event_open(log, NULL));
    NULLS(vellum_checkpoint_event_take(NULL, NULL));
    NULLS(vellum_batch_begin(NULL, NULL));
    NULLS(vellum_batch_begin(log, NULL));
    NULLS(vellum_batch_push(NULL, "x", 1));
    NULLS(vellum_batch_append(NULL, &lsn));
    NULLS(vellum_reserve(NULL, 1, NULL));
    NULLS(vellum_reserve(log, 1, NULL));
    NULLS(vellum_reservation_write(NULL, "x", 1));
    NULLS(vellum_reservation_rewrite(NULL, 0, "x", 1));
    NULLS(vellum_reservation_publish(NULL, &lsn));
    NULLS(vellum_reader_open(NULL, 0, NULL));
    NULLS(vellum_reader_open(log, 0, NULL));
    NULLS(vellum_reader_seek(NULL, 0));
    NULLS(vellum_reader_next(NULL, &record));
    NULLS(vellum_reader_follow(NULL, 0, &record));
    NULLS(vellum_committer_start(NULL, NULL));
    NULLS(vellum_committer_start(log, NULL));
    NULLS(vellum_committer_submit(NULL, 1, NULL));
    NULLS(vellum_completion_outcome(NULL));
    NULLS(vellum_trim(NULL, 1, &trimmed));
    NULLS(vellum_truncate(NULL, 1));
    NULLS(vellum_cursor_open(NULL, "x", 0, NULL));
    NULLS(vellum_cursor_open(log, NULL, 0, NULL));
    NULLS(vellum_cursor_open(log, "x", 0, NULL));
    NULLS(vellum_cursor_position(NULL, &lsn));
    NULLS(vellum_cursor_reader(NULL, NULL));
    NULLS(vellum_cursor_commit(NULL, 1));
    NULLS(vellum_cursor_set(NULL, 1));
    NULLS(vellum_cursor_hold(NULL, 0, 0));
    NULLS(vellum_cursor_unhold(NULL));
    NULLS(vellum_cursor_skip_overrun(NULL, NULL));
    NULLS(vellum_cursor_own(NULL));
    NULLS(vellum_cursor_disown(NULL));
    NULLS(vellum_cursor_remove(NULL));
    NULLS(vellum_stat_cursor(NULL, 0, NULL));
    NULLS(vellum_prepare(NULL, 1, &lsn));
    NULLS(vellum_release_prepared(NULL, &lsn));
    NULLS(vellum_keeper_start(NULL, 1, NULL));
    NULLS(vellum_keeper_start(log, 1, NULL));
    NULLS(vellum_rotate(NULL));
    NULLS(vellum_recovered(NULL, &recovery));
    NULLS(vellum_recovered(log, NULL));
    vellum_position position = {.epoch = 1};
    NULLS(vellum_log_id(NULL, NULL));
    NULLS(vellum_log_id(log, NULL));
    NULLS(vellum_position_of(NULL, 1, &position));
    NULLS(vellum_position_of(log, 1, NULL));
    NULLS(vellum_reader_position_of(NULL, 1, &position));
    NULLS(vellum_resolve(NULL, &position, VELLUM_POSITION_NEXT, &lsn));
    NULLS(vellum_resolve(log, NULL, VELLUM_POSITION_NEXT, &lsn));
    NULLS(vellum_resolve(log, &position, 2, &lsn));
    NULLS(vellum_resolve(log, &position, VELLUM_POSITION_NEXT, NULL));
    NULLS(vellum_reader_open_at(log, &position, VELLUM_POSITION_RECORD, NULL));
    NULLS(vellum_position_to_text(&position, NULL, 80));
    NULLS(vellum_position_from_text(NULL, &position));
    NULLS(vellum_stat_recovery(NULL, &recovery));
    CHECK(vellum_epoch(NULL) == 0);
    NULLS(vellum_stat_take(NULL, NULL));
    NULLS(vellum_stat_take(log, NULL));
    NULLS(vellum_stat_summary(NULL, NULL));
    NULLS(vellum_stat_commits(NULL, NULL));
    NULLS(vellum_stat_policy(NULL, NULL));
    NULLS(vellum_stat_segment(NULL, 0, NULL));
    NULLS(vellum_stat_participant(NULL, 0, NULL));
    NULLS(vellum_stat_hold(NULL, 0, NULL));
    NULLS(vellum_stat_ship(NULL, NULL));
    NULLS(vellum_backwards_open(NULL, 0, NULL));
    NULLS(vellum_backwards_open(log, 0, NULL));
    NULLS(vellum_backwards_next(NULL, NULL));
    NULLS(vellum_backwards_skip_damage(NULL, 1));
    NULLS(vellum_backwards_take_gap(NULL, NULL));
    CHECK(vellum_backwards_time(NULL) == 0 && vellum_backwards_writer(NULL) == 0);
    vellum_backwards_close(NULL);
    NULLS(vellum_commit_within(NULL, 0, 0));
    NULLS(vellum_reopen(NULL, NULL));
    NULLS(vellum_reopen(log, NULL));
    NULLS(vellum_verify(NULL, NULL, NULL));
    NULLS(vellum_repair(NULL, "x", NULL, NULL));
    NULLS(vellum_repair("x", NULL, NULL, NULL));
    NULLS(vellum_damage_list_get(NULL, 0, NULL));
    CHECK(lsn == 7); /* written on success only */
    CHECK(vellum_begin(NULL) == 0 && vellum_durable(NULL) == 0 && vellum_tail(NULL) == 0);
    CHECK(vellum_published(NULL) == 0 && vellum_checkpoint(NULL) == 0);
    CHECK(vellum_log_path(NULL) == NULL && vellum_log_layout(NULL) == 0);
    CHECK(vellum_batch_count(NULL) == 0 && vellum_reservation_lsn(NULL) == 0);
    CHECK(vellum_reservation_remaining(NULL) == 0 && vellum_reader_position(NULL) == 0);
    CHECK(vellum_completion_fd(NULL) == -1 && vellum_damage_list_count(NULL) == 0);
    OK(vellum_close(NULL));
    RETURNS(VELLUM_INVALID_ARGUMENT, vellum_reader_stop_at(NULL, 0));
    vellum_batch_discard(NULL);
    vellum_reservation_abandon(NULL);
    vellum_reader_close(NULL);
    vellum_committer_stop(NULL);
    vellum_completion_close(NULL);
    vellum_keeper_stop(NULL);
    vellum_stat_free(NULL);
    vellum_damage_list_free(NULL);
}

/* Programs compiled with another header: fewer fields, and more. */
static void sizes(const char *dir, const vellum_log *log)
{
    char *path = below(dir, "sizes");
    vellum_log *other = NULL;
    vellum_options options = options_of(VELLUM_KIND_TEXT);
    options.struct_size = 0;
    RETURNS(VELLUM_INVALID_ARGUMENT, vellum_open(path, &options, &other));
    options.struct_size = 13;
    RETURNS(VELLUM_INVALID_ARGUMENT, vellum_open(path, &options, &other));
    options.struct_size = SIZE_MAX - 7;
    RETURNS(VELLUM_INVALID_ARGUMENT, vellum_open(path, &options, &other));
    RETURNS(VELLUM_INVALID_ARGUMENT, vellum_options_init(&options, 0));
    CHECK(other == NULL);

    /* An older header ends before segment_capacity_bytes: what is behind is not looked at. */
    size_t older = offsetof(vellum_options, segment_capacity_bytes);
    memset(&options, 0x5a, sizeof options);
    OK(vellum_options_init(&options, older));
    CHECK(options.segment_capacity_bytes == 0x5a5a5a5a5a5a5a5a);
    options.kind = VELLUM_KIND_TEXT;
    OK(vellum_open(path, &options, &other));
    CHECK(vellum_log_layout(other) == VELLUM_LAYOUT_TEXT);
    vellum_close(other);

    /* A newer header has a field more: it may say nothing. */
    struct {
        vellum_options known;
        uint64_t later;
    } newer;
    memset(&newer, 0x5a, sizeof newer);
    OK(vellum_options_init(&newer.known, sizeof newer));
    CHECK(newer.later == 0 && newer.known.struct_size == sizeof newer);
    OK(vellum_open(path, &newer.known, &other));
    vellum_close(other);
    newer.later = 1;
    RETURNS(VELLUM_INVALID_ARGUMENT, vellum_open(path, &newer.known, &other));

    struct {
        vellum_trim_report known;
        uint64_t later;
    } report = {.known = {.struct_size = sizeof report}, .later = 5};
    OK(vellum_trim(log, 0, &report.known));
    CHECK(report.later == 0 && report.known.struct_size == sizeof report);
    report.known.struct_size = offsetof(vellum_trim_report, segments_removed);
    report.known.segments_removed = 99;
    OK(vellum_trim(log, 0, &report.known));
    CHECK(report.known.segments_removed == 99);
    report.known.struct_size = 0;
    RETURNS(VELLUM_INVALID_ARGUMENT, vellum_trim(log, 0, &report.known));
    free(path);
}

static void options(const char *dir)
{
    char *path = below(dir, "options"), *missing = below(dir, "missing");
    vellum_log *log = NULL, *second = NULL;
    vellum_options options = options_of(VELLUM_KIND_TEXT);
    options.kind = 9;
    RETURNS(VELLUM_INVALID_ARGUMENT, vellum_open(path, &options, &log));
    options = options_of(VELLUM_KIND_TEXT);
    options.flags = 1u << 31;
    RETURNS(VELLUM_INVALID_ARGUMENT, vellum_open(path, &options, &log));
    options = options_of(VELLUM_KIND_TEXT);
    options.on_full = 9;
    RETURNS(VELLUM_INVALID_ARGUMENT, vellum_open(path, &options, &log));
    options = options_of(VELLUM_KIND_TEXT);
    options.segment_capacity_bytes = 5000;
    RETURNS(VELLUM_INVALID_OPTION, vellum_open(path, &options, &log));
    options = options_of(VELLUM_KIND_TEXT);
    options.flags = VELLUM_NO_CREATE;
    RETURNS(VELLUM_NOT_FOUND, vellum_open(missing, &options, &log));
    CHECK(strcmp(vellum_last_error_path(), missing) == 0);

    options.flags = VELLUM_CREATE_NEW | VELLUM_NO_ADVICE;
    options.mode = 0600;
    options.preallocate = VELLUM_PREALLOCATE_OFF;
    options.fill = VELLUM_FILL_PWRITE;
    options.prefault_bytes = 1 << 16;
    options.mapped_bytes_max = 1 << 22;
    OK(vellum_open(path, &options, &log));
    RETURNS(VELLUM_ALREADY_EXISTS, vellum_open(path, &options, &second));
    RETURNS(VELLUM_UNSUPPORTED, vellum_set_checkpoint(log, 0));

    options = options_of(VELLUM_KIND_DEFAULT);
    options.segment_capacity_bytes = 0;
    options.flags = VELLUM_OPEN_READ_ONLY;
    OK(vellum_open(path, &options, &second));
    RETURNS(VELLUM_READ_ONLY, vellum_append(second, "x\n", 2, NULL));
    vellum_committer *committer;
    RETURNS(VELLUM_READ_ONLY, vellum_committer_start(second, &committer));
    vellum_keeper *keeper;
    RETURNS(VELLUM_READ_ONLY, vellum_keeper_start(second, 1, &keeper));
    RETURNS(VELLUM_READ_ONLY, vellum_prepare(second, 1, NULL));
    vellum_close(second);
    vellum_close(log);

    char *wal = below(dir, "wal");
    OK(vellum_options_init(&options, sizeof options));
    options.kind = VELLUM_KIND_WAL;
    OK(vellum_open(wal, &options, &log));
    OK(vellum_append_durable(log, "x", 1, NULL));
    vellum_close(log);
    free(wal);
    free(missing);
    free(path);
}

/* A limit on the length of files stands for a full disk: it needs no mount, and no rights. */
static void no_space(const char *dir)
{
    char *path = below(dir, "full");
    pid_t child = fork();
    if (child == 0) {
        vellum_options options = options_of(VELLUM_KIND_TEXT);
        options.fill = VELLUM_FILL_PWRITE;
        options.preallocate = VELLUM_PREALLOCATE_OFF;
        vellum_log *log;
        OK(vellum_open(path, &options, &log));
        struct rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096};
        CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
        uint64_t lsn = 7;
        RETURNS(VELLUM_NO_SPACE, vellum_append(log, "line\n", 5, &lsn));
        CHECK(lsn == 7 && vellum_last_error_errno() == EFBIG);
        vellum_close(log);
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    free(path);
}

/* More than a record may have; nobody reads these bytes. */
static void too_large(const vellum_log *log)
{
    size_t len = (size_t)1 << 32;
    int zero = open("/dev/zero", O_RDONLY);
    void *data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, zero, 0);
    CHECK(data != MAP_FAILED);
    vellum_batch *batch;
    uint64_t lsn = 7;
    RETURNS(VELLUM_RECORD_TOO_LARGE, vellum_append(log, data, len, &lsn));
    OK(vellum_batch_begin(log, &batch));
    RETURNS(VELLUM_RECORD_TOO_LARGE, vellum_batch_push(batch, data, len));
    CHECK(lsn == 7 && vellum_batch_count(batch) == 0);
    vellum_batch_discard(batch);
    CHECK(munmap(data, len) == 0 && close(zero) == 0);
}

/* Positions that are not there any more, or not yet. */
static void positions(const char *dir)
{
    char *path = below(dir, "positions");
    vellum_options options = options_of(VELLUM_KIND_EVENTS);
    options.segment_capacity_bytes = 4096;
    vellum_log *log;
    OK(vellum_open(path, &options, &log));
    char record_of_a_file[4000] = {0};
    uint64_t first = append_text(log, "first"), last = first;
    for (int i = 0; i < 10; i++)
        OK(vellum_append(log, record_of_a_file, sizeof record_of_a_file, &last));
    vellum_trim_report trimmed = {.struct_size = sizeof trimmed, .begin = 7};
    RETURNS(VELLUM_OUT_OF_RANGE, vellum_trim(log, 1 << 30, &trimmed));
    CHECK(trimmed.begin == 7 && vellum_begin(log) == first);
    vellum_reader *reader;
    vellum_record record;
    OK(vellum_reader_open(log, first, &reader));
    OK(vellum_trim(log, last, NULL));
    RETURNS(VELLUM_TRIMMED, vellum_reader_follow(reader, 0, &record));
    CHECK(vellum_last_error_lsn() == first);
    vellum_reader_close(reader);
    vellum_close(log);
    free(path);
}

/* A process that may open no file more, as one that has forgotten to close some. */
static void no_descriptors(const vellum_log *log)
{
    uint64_t lsn = append_text(log, "text");
    vellum_committer *committer;
    OK(vellum_committer_start(log, &committer));
    struct rlimit before, none;
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    none = before;
    none.rlim_cur = 0;
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    vellum_completion *completion = NULL;
    vellum_stat *stat = NULL;
    vellum_damage_list *damage = NULL;
    vellum_verify_report report = {.struct_size = sizeof report, .records = 7};
    OK(vellum_committer_submit(committer, lsn, &completion));
    CHECK(vellum_completion_fd(completion) == -1 && vellum_last_error_errno() == EMFILE);
    RETURNS(VELLUM_IO, vellum_verify(log, &report, &damage));
    RETURNS(VELLUM_IO, vellum_stat_take(log, &stat));
    CHECK(vellum_last_error_errno() == EMFILE && vellum_last_error_path() != NULL);
    CHECK(stat == NULL && damage == NULL && report.records == 7);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(vellum_completion_fd(completion) >= 0);
    vellum_completion_close(completion);
    vellum_committer_stop(committer);
}

static void *fails_elsewhere(void *nothing)
{
    CHECK(vellum_last_error_code() == VELLUM_OK);
    RETURNS(VELLUM_INVALID_ARGUMENT, vellum_commit(NULL, 1));
    return nothing;
}

/* The last error is a thread's own, and is left alone by success. */
static void last_error(const vellum_log *log)
{
    RETURNS(VELLUM_OUT_OF_RANGE, vellum_commit(log, 1 << 30));
    char *message = below("", vellum_last_error_message());
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, fails_elsewhere, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    (void)append_text(log, "fine");
    CHECK(vellum_last_error_code() == VELLUM_OUT_OF_RANGE);
    CHECK(strcmp(message + 1, vellum_last_error_message()) == 0);
    free(message);
}

/* The shape that options ask for is that of a new log; one that is there keeps its own. */
static void reopening(const char *dir)
{
    char *path = below(dir, "reopening");
    vellum_close(open_log(path, VELLUM_KIND_EVENTS));
    for (uint32_t shape = 0; shape < 12; shape++) {
        vellum_options options;
        OK(vellum_options_init(&options, sizeof options));
        options.segment_capacity_bytes = shape < 2 ? 4096u << (8 * shape) : 0;
        options.fill = shape >= 2 && shape < 5 ? shape - 1 : 0;
        options.preallocate = shape >= 5 && shape < 11 ? shape - 4 : 0;
        options.mode = 0600;
        options.retain_bytes = 1 << 30;
        options.retain_age_s = 86400;
        vellum_log *log;
        OK(vellum_open(path, &options, &log));
        vellum_stat *stat;
        vellum_summary summary = {.struct_size = sizeof summary};
        OK(vellum_stat_take(log, &stat));
        OK(vellum_stat_summary(stat, &summary));
        CHECK(summary.segment_capacity_bytes == 1 << 20);
        vellum_stat_free(stat);
        vellum_close(log);
    }
    vellum_log *log = NULL;
    vellum_options refused[4];
    for (int i = 0; i < 4; i++)
        OK(vellum_options_init(&refused[i], sizeof refused[i]));
    refused[0].kind = VELLUM_KIND_TEXT;
    refused[1].flags = VELLUM_ENVELOPE;
    refused[2].application_tag = 7;
    refused[3].rotate_bytes = 4096;
    for (int i = 0; i < 4; i++)
        RETURNS(VELLUM_INVALID_OPTION, vellum_open(path, &refused[i], &log));
    free(path);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    char *path = below(argv[1], "errors");
    vellum_log *log = open_log(path, VELLUM_KIND_EVENTS);
    nulls(log);
    sizes(argv[1], log);
    options(argv[1]);
    reopening(argv[1]);
    no_space(argv[1]);
    too_large(log);
    positions(argv[1]);
    no_descriptors(log);
    last_error(log);
    vellum_close(log);
    free(path);
    return 0;
}
