/* Every function does what the header says. The argument is a directory to work in. */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static void versions_and_texts(void)
{
    char version[32];
    (void)snprintf(version, sizeof version, "%d.%d.%d", VELLUM_VERSION_MAJOR,
                   VELLUM_VERSION_MINOR, VELLUM_VERSION_PATCH);
    CHECK(strcmp(vellum_version(), version) == 0);
    CHECK(vellum_abi_version() == VELLUM_ABI_VERSION);
    CHECK(strcmp(vellum_strerror(VELLUM_NO_SPACE), "no space left") == 0);
    CHECK(vellum_errno_of(VELLUM_OK) == 0 && vellum_errno_of(VELLUM_END) == 0);
    CHECK(vellum_errno_of(VELLUM_NO_SPACE) == ENOSPC && vellum_errno_of(12345) == EIO);
    CHECK(strcmp(vellum_last_error_message(), "") == 0);
    CHECK(vellum_last_error_code() == VELLUM_OK && vellum_last_error_path() == NULL);
    CHECK(vellum_last_error_errno() == 0 && vellum_last_error_lsn() == 0);
}

static void append_and_read(const char *dir)
{
    OK(vellum_guard_bus_errors());
    OK(vellum_guard_bus_errors());
    char *path = below(dir, "append");
    vellum_log *log = open_log(path, VELLUM_KIND_EVENTS);
    CHECK(strcmp(vellum_log_path(log), path) == 0);
    CHECK(vellum_log_layout(log) == VELLUM_LAYOUT_FRAMED);

    uint64_t first = append_text(log, "first");
    struct iovec parts[10];
    char letters[] = "abcdefghij";
    for (size_t i = 0; i < 10; i++) {
        parts[i].iov_base = i == 3 ? NULL : &letters[i];
        parts[i].iov_len = i == 3 ? 0 : 1;
    }
    uint64_t few, many;
    OK(vellum_appendv(log, parts, 2, &few));
    OK(vellum_appendv(log, parts, 10, &many));
    OK(vellum_appendv(log, NULL, 0, NULL));
    OK(vellum_append(log, NULL, 0, NULL));
    CHECK(first != 0 && first < few && few < many);
    CHECK(vellum_published(log) == vellum_tail(log) && vellum_begin(log) <= first);

    vellum_reader *reader;
    vellum_record record;
    OK(vellum_reader_open(log, 0, &reader));
    OK(vellum_reader_next(reader, &record));
    CHECK(is_text(&record, "first") && record.lsn == first && record.next_lsn == few);
    OK(vellum_reader_next(reader, &record));
    CHECK(is_text(&record, "ab"));
    OK(vellum_reader_follow(reader, -1, &record));
    CHECK(is_text(&record, "abcefghij"));
    OK(vellum_reader_next(reader, &record));
    CHECK(record.len == 0 && record.data != NULL);
    OK(vellum_reader_next(reader, &record));
    vellum_record untouched = record;
    RETURNS(VELLUM_END, vellum_reader_next(reader, &record));
    RETURNS(VELLUM_END, vellum_reader_follow(reader, 1000000, &record));
    CHECK(memcmp(&untouched, &record, sizeof record) == 0);
    CHECK(vellum_reader_position(reader) == vellum_published(log));

    OK(vellum_reader_seek(reader, 0));
    OK(vellum_reader_stop_at(reader, many));
    OK(vellum_reader_next(reader, &record));
    OK(vellum_reader_follow(reader, -1, &record));
    CHECK(record.lsn == few && record.next_lsn == many);
    RETURNS(VELLUM_END, vellum_reader_follow(reader, -1, &record));
    CHECK(vellum_reader_position(reader) >= many);
    OK(vellum_reader_stop_at(reader, UINT64_MAX));
    while (vellum_reader_next(reader, &record) == VELLUM_OK) {
    }

    RETURNS(VELLUM_BUSY, vellum_close(log)); /* the reader keeps the log open */
    log = open_log(path, VELLUM_KIND_DEFAULT);
    (void)append_text(log, "last");
    OK(vellum_reader_next(reader, &record));
    CHECK(is_text(&record, "last"));
    vellum_reader_close(reader);
    OK(vellum_close(log));
    free(path);
}

/* A new log follows what was measured for a directory above it, unless it is not to. */
static void advice(const char *dir)
{
    char *file = below(dir, "vellum.toml");
    FILE *toml = fopen(file, "w");
    CHECK(toml != NULL);
    CHECK(fputs("[log]\nsegment_capacity_bytes = 8192\n", toml) > 0 && fclose(toml) == 0);
    for (uint32_t flags = 0; flags <= VELLUM_NO_ADVICE; flags += VELLUM_NO_ADVICE) {
        char *path = below(dir, flags == 0 ? "advised" : "alone");
        vellum_options options;
        OK(vellum_options_init(&options, sizeof options));
        options.flags = flags;
        vellum_log *log;
        OK(vellum_open(path, &options, &log));
        vellum_stat *stat;
        OK(vellum_stat_take(log, &stat));
        vellum_summary summary = {.struct_size = sizeof summary};
        OK(vellum_stat_summary(stat, &summary));
        CHECK((summary.segment_capacity_bytes == 8192) == (flags == 0));
        CHECK((summary.advice != NULL) == (flags == 0));
        vellum_stat_free(stat);
        vellum_close(log);
        free(path);
    }
    CHECK(remove(file) == 0);
    free(file);
}

static void batches(const char *dir)
{
    char *path = below(dir, "batch");
    vellum_log *log = open_log(path, VELLUM_KIND_EVENTS);
    vellum_batch *batch;
    OK(vellum_batch_begin(log, &batch));
    OK(vellum_batch_push(batch, "one", 3));
    OK(vellum_batch_push(batch, "two", 3));
    CHECK(vellum_batch_count(batch) == 2);
    vellum_close(log); /* the batch keeps the log open */
    uint64_t lsn;
    OK(vellum_batch_append(batch, &lsn));

    log = open_log(path, VELLUM_KIND_DEFAULT);
    OK(vellum_batch_begin(log, &batch));
    OK(vellum_batch_push(batch, "never", 5));
    vellum_batch_discard(batch);
    OK(vellum_batch_begin(log, &batch));
    RETURNS(VELLUM_INVALID_OPTION, vellum_batch_append(batch, NULL));

    vellum_reader *reader;
    vellum_record record;
    OK(vellum_reader_open(log, lsn, &reader));
    OK(vellum_reader_next(reader, &record));
    CHECK(is_text(&record, "one") && record.lsn == lsn);
    OK(vellum_reader_next(reader, &record));
    CHECK(is_text(&record, "two"));
    RETURNS(VELLUM_END, vellum_reader_next(reader, &record));
    OK(vellum_reader_seek(reader, lsn));
    RETURNS(VELLUM_OUT_OF_RANGE, vellum_reader_seek(reader, lsn + 8));
    OK(vellum_reader_next(reader, &record));
    CHECK(is_text(&record, "one") && record.lsn == lsn);
    vellum_reader_close(reader);
    vellum_close(log);
    free(path);
}

/* That this process holds a reservation at `lsn`, and nothing else is held. */
static void is_held(const vellum_log *log, uint64_t lsn)
{
    vellum_stat *stat;
    OK(vellum_stat_take(log, &stat));
    vellum_summary summary = {.struct_size = sizeof summary};
    OK(vellum_stat_summary(stat, &summary));
    CHECK(summary.hold_count == 1);
    vellum_hold hold = {.struct_size = sizeof hold};
    OK(vellum_stat_hold(stat, 0, &hold));
    CHECK(hold.what == VELLUM_HOLD_APPEND && hold.pid == (uint32_t)getpid());
    CHECK(hold.other_namespace == 0 && hold.waited_us == 0);
    CHECK(hold.first_lsn == lsn && hold.bytes > 0);
    CHECK(strstr(hold.text, "is held by this process") != NULL);
    RETURNS(VELLUM_OUT_OF_RANGE, vellum_stat_hold(stat, 1, &hold));
    vellum_stat_free(stat);
}

static void reservations(const char *dir)
{
    char *path = below(dir, "reserve");
    vellum_log *log = open_log(path, VELLUM_KIND_EVENTS);
    vellum_reservation *reservation;
    OK(vellum_reserve(log, 8, &reservation));
    OK(vellum_reservation_write(reservation, "????", 4));
    RETURNS(VELLUM_OUT_OF_RANGE, vellum_reservation_write(reservation, "12345", 5));
    RETURNS(VELLUM_OUT_OF_RANGE, vellum_reservation_rewrite(reservation, 3, "12", 2));
    CHECK(vellum_reservation_remaining(reservation) == 4);
    is_held(log, vellum_reservation_lsn(reservation));
    uint64_t behind;
    OK(vellum_append(log, "behind\n", 7, &behind));
    /* This thread would wait for itself. */
    RETURNS(VELLUM_BUSY, vellum_commit_within(log, behind, 50 * 1000));
    CHECK(vellum_last_error_lsn() == vellum_reservation_lsn(reservation));
    RETURNS(VELLUM_BUSY, vellum_sync(log, NULL));
    RETURNS(VELLUM_BUSY, vellum_wait_published(log, behind, -1));
    OK(vellum_reservation_write(reservation, "body", 4));
    OK(vellum_reservation_rewrite(reservation, 0, "head", 4));
    uint64_t promised = vellum_reservation_lsn(reservation), lsn;
    OK(vellum_reservation_publish(reservation, &lsn));
    CHECK(lsn == promised);

    OK(vellum_reserve(log, 8, &reservation));
    vellum_reservation_abandon(reservation);
    OK(vellum_reserve(log, 8, &reservation));
    OK(vellum_reservation_write(reservation, "half", 4));
    RETURNS(VELLUM_ABANDONED, vellum_reservation_publish(reservation, NULL));
    CHECK(vellum_last_error_lsn() > lsn);

    vellum_reader *reader;
    vellum_record record;
    OK(vellum_reader_open(log, 0, &reader));
    OK(vellum_reader_next(reader, &record));
    CHECK(is_text(&record, "headbody"));
    OK(vellum_reader_next(reader, &record));
    CHECK(is_text(&record, "behind\n"));
    RETURNS(VELLUM_END, vellum_reader_next(reader, &record));
    vellum_reader_close(reader);
    vellum_close(log);
    free(path);
}

static void commits(const char *dir)
{
    char *path = below(dir, "commit");
    vellum_log *log = open_log(path, VELLUM_KIND_EVENTS);
    uint64_t lsn = append_text(log, "one"), durable;
    OK(vellum_commit(log, lsn));
    CHECK(vellum_durable(log) > lsn);
    OK(vellum_append_durable(log, "two", 3, &lsn));
    CHECK(vellum_durable(log) > lsn);
    (void)append_text(log, "three");
    OK(vellum_sync(log, &durable));
    CHECK(durable == vellum_durable(log) && durable > lsn);
    OK(vellum_set_checkpoint(log, lsn));
    CHECK(vellum_checkpoint(log) == lsn);
    RETURNS(VELLUM_OUT_OF_RANGE, vellum_commit(log, 1 << 30));
    RETURNS(VELLUM_OUT_OF_RANGE, vellum_set_checkpoint(log, 1 << 30));
    vellum_recovery recovery = {.struct_size = sizeof recovery};
    OK(vellum_recovered(log, &recovery));
    CHECK(recovery.recovered == 0 && recovery.struct_size == sizeof recovery);
    vellum_close(log);
    free(path);
}

static void checkpoints(const char *dir)
{
    char *path = below(dir, "checkpoint");
    vellum_options options = options_of(VELLUM_KIND_EVENTS);
    options.checkpoint_after_bytes = 4096;
    vellum_log *log;
    OK(vellum_open(path, &options, &log));
    vellum_checkpoint_event *event;
    uint32_t due = 7;
    OK(vellum_checkpoint_event_open(log, &event));
    struct pollfd waiting = {.fd = vellum_checkpoint_event_fd(event), .events = POLLIN};
    CHECK(vellum_checkpoint_due(log) == 0 && poll(&waiting, 1, 0) == 0);
    OK(vellum_checkpoint_event_take(event, &due));
    CHECK(due == 0);
    char record[5000] = "long";
    OK(vellum_append_durable(log, record, sizeof record, NULL));
    CHECK(vellum_checkpoint_due(log) == 1 && poll(&waiting, 1, 0) == 1);
    OK(vellum_checkpoint_event_take(event, &due));
    CHECK(due == 1 && poll(&waiting, 1, 0) == 0);
    OK(vellum_append_durable(log, "more", 4, NULL));
    CHECK(poll(&waiting, 1, 0) == 1); /* as long as it is due, the next commit says so again */
    OK(vellum_set_checkpoint(log, vellum_published(log)));
    OK(vellum_checkpoint_event_take(event, NULL));
    CHECK(vellum_checkpoint_due(log) == 0 && vellum_checkpoint_due(NULL) == 0);
    CHECK(vellum_checkpoint_event_fd(NULL) == -1);
    vellum_close(log);
    vellum_checkpoint_event_close(event);
    vellum_checkpoint_event_close(NULL);
    free(path);
}

static void positions(const char *dir)
{
    char *path = below(dir, "positions"), *elsewhere = below(dir, "elsewhere");
    vellum_options options = options_of(VELLUM_KIND_EVENTS);
    options.application_tag = 7;
    vellum_log *log, *other;
    OK(vellum_open(path, &options, &log));
    OK(vellum_open(elsewhere, NULL, &other));
    uint8_t id[16], other_id[16];
    OK(vellum_log_id(log, &id));
    OK(vellum_log_id(other, &other_id));
    CHECK(memcmp(id, other_id, sizeof id) != 0 && vellum_epoch(log) == 1);
    uint64_t first = append_text(log, "first"), second = append_text(log, "second"), lsn = 0;
    vellum_position position, again;
    OK(vellum_position_of(log, second, &position));
    CHECK(memcmp(position.log, id, sizeof id) == 0);
    char text[VELLUM_POSITION_TEXT_BYTES];
    RETURNS(VELLUM_INVALID_ARGUMENT, vellum_position_to_text(&position, text, 10));
    OK(vellum_position_to_text(&position, text, sizeof text));
    OK(vellum_position_from_text(text, &again));
    CHECK(memcmp(&position, &again, sizeof again) == 0);
    RETURNS(VELLUM_INVALID_OPTION, vellum_position_from_text("12", &again));
    OK(vellum_resolve(log, &position, VELLUM_POSITION_RECORD, &lsn));
    CHECK(lsn == second);
    vellum_reader *reader;
    vellum_record record;
    OK(vellum_reader_open_at(log, &position, VELLUM_POSITION_RECORD, &reader));
    OK(vellum_reader_next(reader, &record));
    CHECK(is_text(&record, "second"));
    OK(vellum_reader_position_of(reader, record.next_lsn, &again));
    OK(vellum_resolve(log, &again, VELLUM_POSITION_NEXT, &lsn));
    vellum_reader_close(reader);
    RETURNS(VELLUM_OTHER_LOG, vellum_resolve(other, &position, VELLUM_POSITION_RECORD, &lsn));

    OK(vellum_truncate(log, second));
    CHECK(vellum_epoch(log) == 2 && append_text(log, "another") == second);
    RETURNS(VELLUM_REWOUND, vellum_resolve(log, &position, VELLUM_POSITION_RECORD, &lsn));
    CHECK(vellum_last_error_lsn() == second);
    OK(vellum_resolve(log, &position, VELLUM_POSITION_NEXT, &lsn));
    position.lsn = first;
    OK(vellum_resolve(log, &position, VELLUM_POSITION_RECORD, &lsn));
    CHECK(lsn == first);

    vellum_stat *stat;
    vellum_summary summary = {.struct_size = sizeof summary};
    vellum_recovery recovery = {.struct_size = sizeof recovery};
    OK(vellum_stat_take(log, &stat));
    OK(vellum_stat_summary(stat, &summary));
    CHECK(strncmp(summary.log_id, text, 32) == 0 && summary.epoch == 2);
    CHECK(summary.application_tag == 7);
    OK(vellum_stat_recovery(stat, &recovery));
    CHECK(recovery.recovered == 0 && recovery.reason == VELLUM_RECOVERY_NONE);
    vellum_stat_free(stat);
    vellum_close(log);
    vellum_close(other);
    options.application_tag = 8;
    RETURNS(VELLUM_INVALID_OPTION, vellum_open(path, &options, &log));
    free(path);
    free(elsewhere);
}

static void durable_readers(const char *dir)
{
    char *path = below(dir, "durable");
    vellum_log *log = open_log(path, VELLUM_KIND_EVENTS);
    vellum_reader *reader, *polled;
    vellum_record record;
    RETURNS(VELLUM_INVALID_ARGUMENT, vellum_reader_open_with(log, 0, 4, &reader));
    OK(vellum_reader_open_with(log, 0, VELLUM_READ_DURABLE, &reader));
    OK(vellum_reader_open_with(log, 0, VELLUM_READ_DURABLE | VELLUM_READ_POLLABLE, &polled));
    CHECK(vellum_reader_fd(reader) == -1 && vellum_reader_fd(NULL) == -1);
    struct pollfd waiting = {.fd = vellum_reader_fd(polled), .events = POLLIN};
    CHECK(waiting.fd >= 0);
    uint64_t lsn = append_text(log, "one");
    RETURNS(VELLUM_END, vellum_reader_next(reader, &record));
    RETURNS(VELLUM_END, vellum_reader_next(polled, &record));
    RETURNS(VELLUM_OUT_OF_RANGE, vellum_wait_published(log, vellum_tail(log), -1));
    OK(vellum_wait_published(log, lsn, -1));
    RETURNS(VELLUM_TIMED_OUT, vellum_wait_durable(log, lsn, 1000));
    RETURNS(VELLUM_OUT_OF_RANGE, vellum_wait_durable(log, vellum_tail(log), -1));
    OK(vellum_commit(log, lsn));
    OK(vellum_wait_durable(log, lsn, -1));
    RETURNS(VELLUM_NO_SHIPPER, vellum_commit_remote(log, lsn));
    RETURNS(VELLUM_NO_SHIPPER, vellum_wait_shipped(log, lsn, -1));
    RETURNS(VELLUM_OUT_OF_RANGE, vellum_wait_shipped(log, vellum_tail(log), -1));
    CHECK(vellum_shipped(log) == 0);
    OK(vellum_reader_next(reader, &record));
    CHECK(is_text(&record, "one") && record.lsn == lsn);
    int result;
    while ((result = vellum_reader_next(polled, &record)) == VELLUM_END)
        CHECK(poll(&waiting, 1, -1) == 1);
    CHECK(result == VELLUM_OK && is_text(&record, "one"));
    (void)append_text(log, "two");
    RETURNS(VELLUM_END, vellum_reader_follow(polled, 1000, &record));
    CHECK(vellum_reader_position(polled) > lsn);
    OK(vellum_reader_skip_damage(polled, 1));
    vellum_gap gap = {.struct_size = sizeof gap};
    RETURNS(VELLUM_END, vellum_reader_take_gap(polled, &gap));
    vellum_reader_close(polled);
    vellum_reader_close(reader);
    vellum_close(log);
    free(path);
}

static void random_access(const char *dir)
{
    char *path = below(dir, "random");
    vellum_log *log = open_log(path, VELLUM_KIND_EVENTS);
    uint64_t last = 7, next, lsns[3] = {0, 0, 99};
    RETURNS(VELLUM_END, vellum_last_record(log, &last));
    CHECK(last == 7);
    vellum_batch *batch;
    OK(vellum_batch_begin(log, &batch));
    OK(vellum_batch_push(batch, "first", 5));
    OK(vellum_batch_push(batch, "second", 6));
    OK(vellum_batch_append_each(batch, lsns, 3));
    CHECK(lsns[0] > 0 && lsns[1] > lsns[0] && lsns[2] == 99);
    OK(vellum_last_record(log, &last));
    CHECK(last == lsns[1]);
    char buffer[6] = "......";
    size_t len = 0;
    RETURNS(VELLUM_RECORD_TOO_LARGE, vellum_read_at(log, last, NULL, 0, &len, NULL));
    CHECK(len == 6);
    OK(vellum_read_at(log, lsns[0], buffer, sizeof buffer, &len, &next));
    CHECK(len == 5 && memcmp(buffer, "first.", 6) == 0 && next == lsns[1]);
    OK(vellum_read_at(log, last, buffer, sizeof buffer, NULL, NULL));
    CHECK(memcmp(buffer, "second", 6) == 0);
    RETURNS(VELLUM_OUT_OF_RANGE, vellum_read_at(log, last + 8, buffer, 6, &len, &next));
    RETURNS(VELLUM_INVALID_ARGUMENT, vellum_read_at(log, last, NULL, 6, &len, &next));
    vellum_close(log);
    free(path);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_REALTIME, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void times(const char *dir)
{
    char *path = below(dir, "times");
    vellum_options options;
    OK(vellum_options_init(&options, sizeof options));
    options.flags = VELLUM_ENVELOPE;
    vellum_log *log;
    OK(vellum_open(path, &options, &log));
    uint64_t before = now_ns();
    (void)append_text(log, "one");
    uint64_t between = now_ns();
    uint64_t second = append_text(log, "two");
    uint64_t after = now_ns();

    vellum_reader *reader;
    vellum_record record;
    OK(vellum_reader_open(log, 0, &reader));
    CHECK(vellum_reader_time(reader) == 0 && vellum_reader_writer(reader) == 0);
    OK(vellum_reader_next(reader, &record));
    CHECK(is_text(&record, "one"));
    CHECK(before <= vellum_reader_time(reader) && vellum_reader_time(reader) <= between);
    uint64_t writer = vellum_reader_writer(reader);
    CHECK((writer & 0xffffffff) == (uint64_t)getpid());
    vellum_reader_close(reader);

    OK(vellum_reader_open_at_time(log, between, 0, &reader));
    OK(vellum_reader_follow(reader, 0, &record));
    CHECK(is_text(&record, "two") && record.lsn == second);
    CHECK(between <= vellum_reader_time(reader) && vellum_reader_time(reader) <= after);
    CHECK(vellum_reader_writer(reader) == writer);
    vellum_reader_close(reader);
    OK(vellum_reader_open_at_time(log, after, VELLUM_READ_DURABLE, &reader));
    RETURNS(VELLUM_END, vellum_reader_next(reader, &record));
    vellum_reader_close(reader);
    RETURNS(VELLUM_INVALID_ARGUMENT, vellum_reader_open_at_time(log, 0, 64, &reader));
    CHECK(vellum_reader_time(NULL) == 0 && vellum_reader_writer(NULL) == 0);

    uint64_t start, end;
    OK(vellum_positions_of_time(log, between, UINT64_MAX, &start, &end));
    CHECK(start <= second && end == UINT64_MAX);
    OK(vellum_positions_of_time(log, 0, before, NULL, NULL));
    vellum_close(log);
    free(path);
    path = below(dir, "append");
    RETURNS(VELLUM_INVALID_OPTION, vellum_open(path, &options, &log));
    log = open_log(path, VELLUM_KIND_EVENTS);
    RETURNS(VELLUM_UNSUPPORTED, vellum_reader_open_at_time(log, 0, 0, &reader));
    OK(vellum_reader_open(log, 0, &reader));
    OK(vellum_reader_next(reader, &record));
    CHECK(vellum_reader_time(reader) == 0 && vellum_reader_writer(reader) == 0);
    vellum_reader_close(reader);
    vellum_close(log);
    free(path);
}

/* The newest record first, over a stretch that is damaged if it is to. */
static void backwards(const char *dir)
{
    char *path = below(dir, "backwards");
    vellum_options options;
    OK(vellum_options_init(&options, sizeof options));
    options.flags = VELLUM_ENVELOPE;
    vellum_log *log;
    OK(vellum_open(path, &options, &log));
    uint64_t first = append_text(log, "one");
    uint64_t second = append_text(log, "two");
    (void)append_text(log, "three");

    vellum_backwards *records;
    vellum_record record;
    OK(vellum_backwards_open(log, UINT64_MAX, &records));
    CHECK(vellum_backwards_time(records) == 0 && vellum_backwards_writer(records) == 0);
    OK(vellum_backwards_next(records, &record));
    CHECK(is_text(&record, "three") && record.next_lsn == vellum_published(log));
    CHECK(vellum_backwards_time(records) > 0 && vellum_backwards_writer(records) != 0);
    OK(vellum_backwards_next(records, &record));
    CHECK(is_text(&record, "two") && record.lsn == second);
    vellum_close(log); /* it keeps the log open */
    OK(vellum_backwards_next(records, &record));
    CHECK(is_text(&record, "one") && record.lsn == first && record.next_lsn == second);
    RETURNS(VELLUM_END, vellum_backwards_next(records, &record));
    RETURNS(VELLUM_END, vellum_backwards_next(records, &record));
    CHECK(vellum_backwards_time(records) == 0);
    vellum_gap gap = {.struct_size = sizeof gap};
    RETURNS(VELLUM_END, vellum_backwards_take_gap(records, &gap));
    vellum_backwards_close(records);

    OK(vellum_open(path, &options, &log));
    OK(vellum_backwards_open(log, second, &records));
    OK(vellum_backwards_skip_damage(records, 1));
    OK(vellum_backwards_next(records, &record));
    CHECK(is_text(&record, "one"));
    vellum_backwards_close(records);

    vellum_stat *stat;
    OK(vellum_stat_take(log, &stat));
    vellum_summary summary = {.struct_size = sizeof summary};
    OK(vellum_stat_summary(stat, &summary));
    CHECK(summary.has_envelope == 1);
    vellum_ship ship = {.struct_size = sizeof ship};
    OK(vellum_stat_ship(stat, &ship));
    CHECK(ship.status == VELLUM_SHIP_NONE && ship.pid == 0 && ship.shipped == 0);
    CHECK(ship.held_from == UINT64_MAX && ship.puts == 0);
    vellum_stat_free(stat);
    vellum_close(log);
    free(path);
}

static void completions(const char *dir)
{
    char *path = below(dir, "completion");
    vellum_log *log = open_log(path, VELLUM_KIND_EVENTS);
    vellum_committer *committer;
    OK(vellum_committer_start(log, &committer));
    uint64_t lsn = append_text(log, "later");
    vellum_completion *completion, *second;
    OK(vellum_committer_submit(committer, lsn, &completion));
    struct pollfd waiting = {.fd = vellum_completion_fd(completion), .events = POLLIN};
    CHECK(poll(&waiting, 1, -1) == 1 && (waiting.revents & POLLIN) != 0);
    OK(vellum_completion_outcome(completion));
    CHECK(vellum_durable(log) > lsn);
    CHECK(poll(&waiting, 1, 0) == 1); /* stays readable */
    vellum_completion_close(completion);

    waiting.fd = vellum_committer_fd(committer);
    uint64_t durable = 0;
    lsn = append_text(log, "one descriptor for all");
    OK(vellum_committer_submit(committer, lsn, NULL));
    while (durable <= lsn) {
        CHECK(poll(&waiting, 1, -1) == 1);
        OK(vellum_committer_take(committer, &durable));
    }
    OK(vellum_committer_take(committer, NULL));
    CHECK(vellum_committer_fd(NULL) == -1);

    RETURNS(VELLUM_OUT_OF_RANGE, vellum_committer_submit(committer, 1 << 30, &second));
    OK(vellum_committer_submit(committer, append_text(log, "and on"), &second));
    int outcome = vellum_completion_outcome(second);
    CHECK(outcome == VELLUM_PENDING || outcome == VELLUM_OK);
    vellum_close(log);
    vellum_committer_stop(committer); /* waits for what was submitted */
    OK(vellum_completion_outcome(second));
    vellum_completion_close(second);
    free(path);
}

static void upkeep(const char *dir)
{
    char *path = below(dir, "upkeep");
    vellum_options options = options_of(VELLUM_KIND_EVENTS);
    options.segment_capacity_bytes = 4096;
    vellum_log *log;
    OK(vellum_open(path, &options, &log));
    char record[500];
    memset(record, 'r', sizeof record);
    uint64_t lsns[40];
    for (size_t i = 0; i < 40; i++)
        OK(vellum_append(log, record, sizeof record, &lsns[i]));

    vellum_trim_report trimmed = {.struct_size = sizeof trimmed};
    OK(vellum_trim(log, lsns[20], &trimmed));
    CHECK(trimmed.begin == lsns[20] && trimmed.segments_removed > 0);
    CHECK(vellum_begin(log) == lsns[20]);
    OK(vellum_trim(log, lsns[1], NULL));
    vellum_reader *reader;
    RETURNS(VELLUM_TRIMMED, vellum_reader_open(log, lsns[1], &reader));
    CHECK(vellum_last_error_lsn() == lsns[1]);

    OK(vellum_truncate(log, lsns[30]));
    CHECK(vellum_tail(log) <= lsns[31]);
    uint64_t made = 0;
    OK(vellum_prepare(log, 3, &made));
    uint64_t released = 0;
    OK(vellum_release_prepared(log, &released));
    CHECK(released >= 3);
    OK(vellum_prepare(log, 3, NULL));
    CHECK(made > 0);
    vellum_keeper *keeper;
    OK(vellum_keeper_start(log, 4, &keeper));
    vellum_keeper_stop(keeper);
    RETURNS(VELLUM_UNSUPPORTED, vellum_rotate(log));
    vellum_close(log);
    free(path);
}

/* A trim keeps segments ready for new records, or none. */
static void spares(const char *dir)
{
    static const char *const names[] = {"spares", "no-spares"};
    static const uint64_t most[] = {0, VELLUM_NO_SPARES};
    uint64_t left[2];
    for (size_t i = 0; i < 2; i++) {
        char *path = below(dir, names[i]);
        vellum_options options = options_of(VELLUM_KIND_WAL);
        options.segment_capacity_bytes = 16384;
        options.spare_segments_max = most[i];
        vellum_log *log;
        OK(vellum_open(path, &options, &log));
        char record[1000];
        memset(record, 'r', sizeof record);
        for (size_t count = 0; count < 320; count++)
            OK(vellum_append_durable(log, record, sizeof record, NULL));
        OK(vellum_trim(log, vellum_published(log), NULL));
        OK(vellum_release_prepared(log, &left[i]));
        vellum_close(log);
        free(path);
    }
    CHECK(left[0] >= 3 && left[1] <= 1);
}

/* A cursor goes forward, holds records, is owned, is overrun and removed. */
static void cursors(const char *dir)
{
    char *path = below(dir, "cursors");
    vellum_log *log = open_log(path, VELLUM_KIND_EVENTS);
    uint64_t lsns[10], lsn;
    for (size_t i = 0; i < 10; i++)
        OK(vellum_append(log, "a record", 8, &lsns[i]));
    vellum_cursor *cursor, *second;
    RETURNS(VELLUM_INVALID_OPTION, vellum_cursor_open(log, "a b", 0, &cursor));
    OK(vellum_cursor_open(log, "x", lsns[2], &cursor));
    OK(vellum_cursor_open(log, "x", 0, &second));
    OK(vellum_cursor_own(cursor));
    RETURNS(VELLUM_BUSY, vellum_cursor_own(second));
    RETURNS(VELLUM_BUSY, vellum_cursor_commit(second, lsns[3]));
    OK(vellum_cursor_hold(cursor, 1 << 20, 0));
    vellum_trim_report trimmed = {.struct_size = sizeof trimmed};
    OK(vellum_trim(log, lsns[5], &trimmed));
    CHECK(trimmed.begin == lsns[2] && trimmed.held_at == lsns[2]);
    vellum_reader *reader;
    vellum_record record;
    OK(vellum_cursor_reader(cursor, &reader));
    OK(vellum_reader_next(reader, &record));
    CHECK(record.lsn == lsns[2]);
    OK(vellum_cursor_commit(cursor, record.next_lsn));
    vellum_reader_close(reader);
    RETURNS(VELLUM_OUT_OF_RANGE, vellum_cursor_commit(cursor, lsns[2]));
    OK(vellum_cursor_set(cursor, 0));
    OK(vellum_cursor_position(cursor, &lsn));
    CHECK(lsn == lsns[2]);

    vellum_stat *stat;
    vellum_summary summary = {.struct_size = sizeof summary};
    vellum_cursor_stat told = {.struct_size = sizeof told};
    OK(vellum_stat_take(log, &stat));
    OK(vellum_stat_summary(stat, &summary));
    OK(vellum_stat_cursor(stat, 0, &told));
    CHECK(summary.cursor_count == 1 && summary.cursors_fault == NULL);
    CHECK(strcmp(told.name, "x") == 0 && told.lsn == lsns[2] && told.lag_records == 8);
    CHECK(told.holds == 1 && told.max_held_bytes == 1 << 20 && told.max_held_age_s == 0);
    CHECK(told.owned == 1 && told.owner == (uint32_t)getpid() && told.lag_s == UINT64_MAX);
    RETURNS(VELLUM_OUT_OF_RANGE, vellum_stat_cursor(stat, 1, &told));
    vellum_stat_free(stat);

    vellum_gap gap = {.struct_size = sizeof gap};
    CHECK(vellum_cursor_skip_overrun(cursor, &gap) == VELLUM_END);
    OK(vellum_cursor_unhold(cursor));
    OK(vellum_trim(log, lsns[5], NULL));
    RETURNS(VELLUM_TRIMMED, vellum_cursor_reader(cursor, &reader));
    OK(vellum_cursor_skip_overrun(cursor, &gap));
    CHECK(gap.from == lsns[2] && gap.to == lsns[5] && gap.bytes_max == lsns[5] - lsns[2]);
    CHECK(strstr(gap.text, "cursor x") != NULL);
    OK(vellum_cursor_disown(cursor));
    OK(vellum_cursor_own(second));
    vellum_cursor_close(cursor);
    OK(vellum_cursor_remove(second));
    vellum_cursor_close(NULL);
    vellum_close(log);
    free(path);
}

static void state(const char *dir)
{
    char *path = below(dir, "state");
    vellum_log *log = open_log(path, VELLUM_KIND_TEXT);
    uint64_t lsn;
    OK(vellum_append_durable(log, "a line\n", 7, &lsn));
    vellum_stat *stat;
    OK(vellum_stat_take(log, &stat));
    vellum_summary summary = {.struct_size = sizeof summary};
    OK(vellum_stat_summary(stat, &summary));
    CHECK(summary.layout == VELLUM_LAYOUT_TEXT && summary.segment_capacity_bytes == 1 << 20);
    CHECK(summary.tail == vellum_tail(log) && summary.durable == vellum_durable(log));
    CHECK(strlen(summary.filesystem) > 0 && strlen(summary.fill_reason) > 0);
    CHECK(summary.poison == NULL && summary.stage == NULL && summary.dropped == 0);
    CHECK(summary.can_sync_name == 1 && summary.gap_count == 0);
    vellum_gap gap = {.struct_size = sizeof gap};
    RETURNS(VELLUM_OUT_OF_RANGE, vellum_stat_gap(stat, 0, &gap));
    CHECK(summary.segment_count >= 1 && summary.participant_count == 1);

    vellum_commits counts = {.struct_size = sizeof counts};
    OK(vellum_stat_commits(stat, &counts));
    CHECK(counts.commits == 1 && counts.syncs >= 1);

    vellum_segment segment = {.struct_size = sizeof segment};
    struct stat file;
    OK(vellum_stat_segment(stat, 0, &segment));
    CHECK(lstat(segment.path, &file) == 0 && segment.state == VELLUM_SEGMENT_ACTIVE);
    CHECK((uint64_t)file.st_size == segment.file_bytes);
    RETURNS(VELLUM_OUT_OF_RANGE, vellum_stat_segment(stat, 100, &segment));

    vellum_participant participant = {.struct_size = sizeof participant};
    OK(vellum_stat_participant(stat, 0, &participant));
    CHECK(participant.alive == 1 && participant.stopped == 0);
    CHECK(participant.in_flight_count == 0);
    RETURNS(VELLUM_OUT_OF_RANGE, vellum_stat_participant(stat, 1, &participant));
    vellum_stat_free(stat);
    vellum_close(log);
    free(path);
}

/* A file that is gone is told, and a reader goes on behind it if it is to. */
static void gaps(const char *dir)
{
    char *path = below(dir, "gaps");
    vellum_options options = options_of(VELLUM_KIND_TEXT);
    options.rotate_bytes = 4096;
    options.retain_files = 3;
    vellum_log *log;
    uint64_t lsn;
    OK(vellum_open(path, &options, &log));
    char line[1000];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    for (int i = 0; i < 24; i++)
        OK(vellum_append(log, line, sizeof line, &lsn));

    vellum_stat *stat;
    OK(vellum_stat_take(log, &stat));
    vellum_removed removed = {.struct_size = sizeof removed};
    OK(vellum_stat_removed(stat, &removed));
    CHECK(removed.files_by_files == 2 && removed.bytes_by_files == 8 * sizeof line);
    CHECK(removed.files_by_bytes == 0 && removed.files_by_age == 0);
    vellum_segment segment = {.struct_size = sizeof segment};
    OK(vellum_stat_segment(stat, 1, &segment));
    CHECK(unlink(segment.path) == 0);
    vellum_stat_free(stat);

    OK(vellum_stat_take(log, &stat));
    vellum_summary summary = {.struct_size = sizeof summary};
    OK(vellum_stat_summary(stat, &summary));
    CHECK(summary.gap_count == 1);
    vellum_gap told = {.struct_size = sizeof told}, gap = {.struct_size = sizeof gap};
    OK(vellum_stat_gap(stat, 0, &told));
    CHECK(told.to > told.from && told.bytes_max >= 4 * sizeof line && told.before_s > 0);
    CHECK(strstr(told.path, ".log") && strstr(told.text, "missing"));

    vellum_reader *reader;
    vellum_record record;
    int found = 0, result;
    OK(vellum_reader_open(log, 0, &reader));
    while ((result = vellum_reader_next(reader, &record)) == VELLUM_OK)
        found++;
    CHECK(result == VELLUM_CORRUPT && found == 4);
    OK(vellum_reader_skip_damage(reader, 1));
    while ((result = vellum_reader_next(reader, &record)) == VELLUM_OK)
        found++;
    CHECK(result == VELLUM_END && found == 12);
    OK(vellum_reader_take_gap(reader, &gap));
    CHECK(gap.from == told.from && gap.to == told.to && strcmp(gap.text, told.text) == 0);
    CHECK(vellum_reader_take_gap(reader, &gap) == VELLUM_END);
    vellum_reader_close(reader);
    vellum_stat_free(stat);
    vellum_close(log);
    free(path);
}

static vellum_policy policy_of(const vellum_log *log)
{
    vellum_stat *stat;
    vellum_policy policy = {.struct_size = sizeof policy};
    OK(vellum_stat_take(log, &stat));
    OK(vellum_stat_policy(stat, &policy));
    vellum_stat_free(stat);
    return policy;
}

/* What one opener says about rotation holds for all, until another says something else. */
static void policies(const char *dir)
{
    char *path = below(dir, "policy");
    vellum_log *log = open_log(path, VELLUM_KIND_TEXT), *second;
    vellum_policy policy = policy_of(log);
    CHECK(policy.rotate_bytes == 0 && policy.rotate_every_s == 0 && policy.retain_age_s == 0);
    CHECK(policy.retain_files == VELLUM_ALL_FILES && policy.compress == VELLUM_COMPRESS_OFF);

    vellum_options options = options_of(VELLUM_KIND_TEXT);
    options.rotate_bytes = 8192;
    options.rotate_every_s = 86400;
    options.rotate_offset_s = 3600;
    options.retain_bytes = 1 << 20;
    options.retain_age_s = 7 * 86400;
    options.retain_files = 5;
    options.compress = VELLUM_COMPRESS_OFF;
    OK(vellum_open(path, &options, &second));
    policy = policy_of(log);
    CHECK(policy.rotate_bytes == 8192 && policy.rotate_every_s == 86400);
    CHECK(policy.rotate_offset_s == 3600 && policy.retain_bytes == 1 << 20);
    CHECK(policy.retain_age_s == 7 * 86400 && policy.retain_files == 5);
    vellum_close(second);

    options = options_of(VELLUM_KIND_TEXT);
    options.retain_bytes = 0;
    options.retain_files = VELLUM_ALL_FILES;
    OK(vellum_open(path, &options, &second));
    policy = policy_of(log);
    CHECK(policy.rotate_bytes == 8192 && policy.retain_bytes == 0);
    CHECK(policy.retain_files == VELLUM_ALL_FILES);
    vellum_close(second);
    vellum_close(log);
    free(path);
}

/* A record goes on in a new file, which is there under the name that `current` has. */
static void rotation(const char *dir)
{
    char *path = below(dir, "rotate");
    vellum_log *log = open_log(path, VELLUM_KIND_TEXT);
    (void)append_text(log, "before\n");
    OK(vellum_rotate(log));
    uint64_t after = append_text(log, "after\n");
    vellum_stat *stat;
    vellum_segment first = {.struct_size = sizeof first}, second = first;
    OK(vellum_stat_take(log, &stat));
    OK(vellum_stat_segment(stat, 0, &first));
    OK(vellum_stat_segment(stat, 1, &second));
    CHECK(first.state == VELLUM_SEGMENT_SEALED && first.file_bytes == strlen("before\n"));
    CHECK(second.state == VELLUM_SEGMENT_ACTIVE && second.first_lsn == after);
    vellum_stat_free(stat);

    vellum_reader *reader;
    vellum_record record;
    OK(vellum_reader_open(log, 0, &reader));
    OK(vellum_reader_next(reader, &record));
    CHECK(is_text(&record, "before\n"));
    OK(vellum_reader_next(reader, &record));
    CHECK(is_text(&record, "after\n") && record.lsn == after);
    vellum_reader_close(reader);
    vellum_close(log);
    free(path);
}

/* Turns a byte of the record around, in the file that holds it. */
static void damage_record(const vellum_log *log, const char *text)
{
    vellum_stat *stat;
    vellum_segment segment = {.struct_size = sizeof segment};
    OK(vellum_stat_take(log, &stat));
    OK(vellum_stat_segment(stat, 0, &segment));
    FILE *file = fopen(segment.path, "r+b");
    CHECK(file != NULL);
    char bytes[9000];
    size_t len = fread(bytes, 1, sizeof bytes, file), at = 0;
    while (at < len && memcmp(&bytes[at], text, strlen(text)) != 0)
        at++;
    CHECK(at < len && fseek(file, (long)at, SEEK_SET) == 0);
    CHECK(fputc('!', file) == '!' && fclose(file) == 0);
    vellum_stat_free(stat);
}

static void damage(const char *dir)
{
    char *path = below(dir, "damage"), *saved = below(dir, "saved");
    vellum_log *log = open_log(path, VELLUM_KIND_EVENTS);
    (void)append_text(log, "good");
    (void)append_text(log, "unlucky");
    (void)append_text(log, "good too");
    vellum_verify_report report = {.struct_size = sizeof report};
    OK(vellum_verify(log, &report, NULL));
    CHECK(report.records == 3 && report.record_bytes == 19 && report.damage_count == 0);

    damage_record(log, "unlucky");
    vellum_damage_list *list;
    OK(vellum_verify(log, &report, &list));
    CHECK(report.damage_count == 1 && vellum_damage_list_count(list) == 1);
    vellum_damage found = {.struct_size = sizeof found};
    OK(vellum_damage_list_get(list, 0, &found));
    CHECK(strncmp(found.path, path, strlen(path)) == 0 && strlen(found.reason) > 0);
    CHECK(found.lsn != 0 && found.offset != 0);
    RETURNS(VELLUM_OUT_OF_RANGE, vellum_damage_list_get(list, 1, &found));
    vellum_damage_list_free(list);
    vellum_reader *reader;
    vellum_record record;
    OK(vellum_reader_open(log, 0, &reader));
    OK(vellum_reader_next(reader, &record));
    RETURNS(VELLUM_CORRUPT, vellum_reader_next(reader, &record));
    CHECK(vellum_last_error_path() != NULL);
    vellum_reader_close(reader);
    vellum_close(log);

    vellum_repair_report repaired = {.struct_size = sizeof repaired};
    OK(vellum_repair(path, saved, &repaired, &list));
    CHECK(repaired.records == 2 && repaired.damage_count == 1);
    CHECK(vellum_damage_list_count(list) == 1);
    vellum_damage_list_free(list);
    RETURNS(VELLUM_ALREADY_EXISTS, vellum_repair(path, saved, NULL, NULL));
    free(saved);
    free(path);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    versions_and_texts();
    append_and_read(argv[1]);
    advice(argv[1]);
    batches(argv[1]);
    reservations(argv[1]);
    commits(argv[1]);
    checkpoints(argv[1]);
    positions(argv[1]);
    durable_readers(argv[1]);
    random_access(argv[1]);
    times(argv[1]);
    backwards(argv[1]);
    completions(argv[1]);
    upkeep(argv[1]);
    spares(argv[1]);
    cursors(argv[1]);
    state(argv[1]);
    gaps(argv[1]);
    policies(argv[1]);
    rotation(argv[1]);
    damage(argv[1]);
    return 0;
}
