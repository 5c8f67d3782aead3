#include "bridge.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static char *copy_of(const char *text)
{
    return text == NULL ? NULL : strdup(text);
}

// The failure of this thread, before another call on the same thread replaces it.
static vg_error *last_error(int status)
{
    vg_error *error = calloc(1, sizeof *error);
    if (error == NULL)
        abort();
    error->status = status;
    error->os_errno = vellum_last_error_errno();
    error->lsn = vellum_last_error_lsn();
    error->message = copy_of(vellum_last_error_message());
    error->path = copy_of(vellum_last_error_path());
    return error;
}

void vg_error_free(vg_error *error)
{
    free(error->message);
    free(error->path);
    free(error);
}

// The answer for a status that a function of the library has just returned in this thread.
static vg_answer answer_of(int status, uint64_t value)
{
    vg_answer answer = {.status = status, .value = value};
    if (status != VELLUM_OK && status != VELLUM_END && status != VELLUM_PENDING)
        answer.error = last_error(status);
    return answer;
}

vg_answer vg_open(const char *path, const vellum_options *options, vellum_log **log)
{
    return answer_of(vellum_open(path, options, log), 0);
}

vg_answer vg_reopen(const vellum_log *log, vellum_log **reopened)
{
    return answer_of(vellum_reopen(log, reopened), 0);
}

vg_answer vg_close(vellum_log *log)
{
    return answer_of(vellum_close(log), 0);
}

vg_answer vg_recovered(const vellum_log *log, vellum_recovery *recovery)
{
    return answer_of(vellum_recovered(log, recovery), 0);
}

// No bytes of text are nothing: the log ends where they were appended.
static uint64_t last_of(const vellum_log *log, uint64_t lsn)
{
    uint64_t tail = vellum_tail(log);
    return lsn < tail ? lsn : tail - 1;
}

vg_answer vg_append(const vellum_log *log, const uint8_t *data, size_t len)
{
    uint64_t lsn = 0;
    int status = vellum_append(log, data, len, &lsn);
    vg_answer answer = answer_of(status, lsn);
    answer.other = len == 0 ? last_of(log, lsn) : lsn;
    return answer;
}

static int push_all(vellum_batch *batch, const uint8_t *records, size_t len)
{
    for (const uint8_t *end = records + len; records < end;) {
        uint32_t record_len;
        memcpy(&record_len, records, sizeof record_len);
        records += sizeof record_len;
        int status = vellum_batch_push(batch, records, record_len);
        if (status != VELLUM_OK)
            return status;
        records += record_len;
    }
    return VELLUM_OK;
}

vg_answer vg_append_batch(const vellum_log *log,
                          const uint8_t *records,
                          size_t len,
                          uint64_t *lsns,
                          size_t count)
{
    vellum_batch *batch;
    uint64_t lsn = 0;
    int status = vellum_batch_begin(log, &batch);
    if (status != VELLUM_OK)
        return answer_of(status, 0);
    status = push_all(batch, records, len);
    if (status != VELLUM_OK) {
        vg_answer answer = answer_of(status, 0);
        vellum_batch_discard(batch);
        return answer;
    }
    if (lsns == NULL)
        status = vellum_batch_append(batch, &lsn);
    else
        status = vellum_batch_append_each(batch, lsns, count);
    if (lsns == NULL || count == 0)
        return answer_of(status, lsn);
    vg_answer answer = answer_of(status, lsns[0]);
    answer.other = last_of(log, lsns[count - 1]);
    return answer;
}

int vg_place_of(const vellum_log *log, uint64_t lsn)
{
    if (lsn == 0 || lsn >= vellum_tail(log))
        return VG_BEYOND;
    return lsn < vellum_durable(log) ? VG_DURABLE : VG_NOT_DURABLE;
}

vg_answer vg_wait_published(const vellum_log *log, uint64_t lsn, int64_t timeout_ns)
{
    return answer_of(vellum_wait_published(log, lsn, timeout_ns), 0);
}

static vg_answer durable_answer(const vellum_log *log, int status)
{
    vg_answer answer = answer_of(status, 0);
    answer.other = vellum_durable(log);
    return answer;
}

vg_answer vg_commit(const vellum_log *log, uint64_t lsn)
{
    return durable_answer(log, vellum_commit(log, lsn));
}

static vg_answer then_commit(const vellum_log *log, vg_answer appended)
{
    if (appended.status != VELLUM_OK)
        return appended;
    vg_answer answer = vg_commit(log, appended.other);
    answer.value = appended.value;
    return answer;
}

vg_answer vg_append_durable(const vellum_log *log, const uint8_t *data, size_t len)
{
    return then_commit(log, vg_append(log, data, len));
}

vg_answer vg_append_batch_durable(const vellum_log *log,
                                  const uint8_t *records,
                                  size_t len,
                                  uint64_t *lsns,
                                  size_t count)
{
    return then_commit(log, vg_append_batch(log, records, len, lsns, count));
}

vg_answer vg_sync(const vellum_log *log)
{
    uint64_t durable = 0;
    int status = vellum_sync(log, &durable);
    vg_answer answer = durable_answer(log, status);
    answer.value = durable;
    return answer;
}

vg_answer vg_set_checkpoint(const vellum_log *log, uint64_t lsn)
{
    return answer_of(vellum_set_checkpoint(log, lsn), 0);
}

vg_answer vg_trim(const vellum_log *log, uint64_t before, vellum_trim_report *report)
{
    return answer_of(vellum_trim(log, before, report), 0);
}

vg_answer vg_truncate(const vellum_log *log, uint64_t from)
{
    return answer_of(vellum_truncate(log, from), 0);
}

vg_answer vg_rotate(const vellum_log *log)
{
    return answer_of(vellum_rotate(log), 0);
}

vg_answer vg_prepare(const vellum_log *log, uint64_t segments)
{
    uint64_t made = 0;
    int status = vellum_prepare(log, segments, &made);
    return answer_of(status, made);
}

vg_answer vg_release_prepared(const vellum_log *log)
{
    uint64_t released = 0;
    int status = vellum_release_prepared(log, &released);
    return answer_of(status, released);
}

vg_answer vg_read_at(const vellum_log *log, uint64_t lsn, uint8_t *buffer, size_t capacity)
{
    size_t len = 0;
    uint64_t next_lsn = 0;
    int status = vellum_read_at(log, lsn, buffer, capacity, &len, &next_lsn);
    if (status == VELLUM_RECORD_TOO_LARGE && len > capacity)
        return (vg_answer){.status = status, .value = len};
    vg_answer answer = answer_of(status, len);
    answer.other = next_lsn;
    return answer;
}

vg_answer vg_last_record(const vellum_log *log)
{
    uint64_t lsn = 0;
    int status = vellum_last_record(log, &lsn);
    return answer_of(status, lsn);
}

struct vg_reader {
    vellum_reader *reader;
    // The record that the reader lends, where it has not been copied yet.
    vellum_record record;
    bool is_lent;
    // The outcome behind the records that were copied last.
    vg_error *error;
};

static vg_answer held(vg_answer answer, vellum_reader *opened, vg_reader **reader)
{
    if (answer.status != VELLUM_OK)
        return answer;
    *reader = calloc(1, sizeof **reader);
    if (*reader == NULL)
        abort();
    (*reader)->reader = opened;
    return answer;
}

vg_answer vg_reader_open(const vellum_log *log, uint64_t from, uint32_t flags, vg_reader **reader)
{
    vellum_reader *opened = NULL;
    vg_answer answer = answer_of(vellum_reader_open_with(log, from, flags, &opened), 0);
    return held(answer, opened, reader);
}

vg_answer vg_reader_open_at_time(const vellum_log *log,
                                 uint64_t time_ns,
                                 uint32_t flags,
                                 vg_reader **reader)
{
    vellum_reader *opened = NULL;
    vg_answer answer = answer_of(vellum_reader_open_at_time(log, time_ns, flags, &opened), 0);
    return held(answer, opened, reader);
}

vg_answer vg_reader_open_at(const vellum_log *log,
                            const vellum_position *position,
                            uint32_t meaning,
                            vg_reader **reader)
{
    vellum_reader *opened = NULL;
    vg_answer answer = answer_of(vellum_reader_open_at(log, position, meaning, &opened), 0);
    return held(answer, opened, reader);
}

vg_answer vg_cursor_reader(const vellum_cursor *cursor, vg_reader **reader)
{
    vellum_reader *opened = NULL;
    vg_answer answer = answer_of(vellum_cursor_reader(cursor, &opened), 0);
    return held(answer, opened, reader);
}

static void forget(vg_reader *reader)
{
    reader->is_lent = false;
    if (reader->error != NULL)
        vg_error_free(reader->error);
    reader->error = NULL;
}

vg_answer vg_reader_seek(vg_reader *reader, uint64_t to)
{
    forget(reader);
    return answer_of(vellum_reader_seek(reader->reader, to), 0);
}

vg_answer vg_reader_stop_at(vg_reader *reader, uint64_t end)
{
    return answer_of(vellum_reader_stop_at(reader->reader, end), 0);
}

vg_answer vg_reader_skip_damage(vg_reader *reader, int skip)
{
    return answer_of(vellum_reader_skip_damage(reader->reader, skip), 0);
}

vg_answer vg_reader_take_gap(vg_reader *reader, vellum_gap *gap)
{
    return answer_of(vellum_reader_take_gap(reader->reader, gap), 0);
}

uint64_t vg_reader_position(const vg_reader *reader)
{
    return vellum_reader_position(reader->reader);
}

int vg_reader_fd(const vg_reader *reader)
{
    return vellum_reader_fd(reader->reader);
}

void vg_reader_close(vg_reader *reader)
{
    forget(reader);
    vellum_reader_close(reader->reader);
    free(reader);
}

// The space of a record in the buffer.
static size_t space_of(const vellum_record *record)
{
    return sizeof(vg_head) + (record->len + 7) / 8 * 8;
}

static void copy_record(vg_reader *reader, bool has_time, uint8_t *to)
{
    const vellum_record *record = &reader->record;
    vg_head head = {.lsn = record->lsn, .next_lsn = record->next_lsn, .len = record->len};
    if (has_time) {
        head.time_ns = vellum_reader_time(reader->reader);
        head.writer = vellum_reader_writer(reader->reader);
    }
    memcpy(to, &head, sizeof head);
    memcpy(to + sizeof head, record->data, record->len);
    reader->is_lent = false;
}

vg_answer vg_reader_fill(vg_reader *reader, uint8_t *buffer, size_t capacity)
{
    vg_answer answer = {.status = VELLUM_OK, .error = reader->error};
    bool has_time = true;
    if (answer.error != NULL) {
        answer.status = answer.error->status;
        reader->error = NULL;
        return answer;
    }
    while (answer.status == VELLUM_OK) {
        if (!reader->is_lent)
            answer.status = vellum_reader_next(reader->reader, &reader->record);
        if (answer.status != VELLUM_OK)
            break;
        reader->is_lent = true;
        size_t space = space_of(&reader->record);
        if (space > capacity - answer.value) {
            if (answer.value == 0)
                answer = (vg_answer){.status = VELLUM_RECORD_TOO_LARGE, .value = space};
            break;
        }
        // A log has times for all of its records, or for none.
        has_time = has_time && vellum_reader_time(reader->reader) != 0;
        copy_record(reader, has_time, buffer + answer.value);
        answer.value += space;
    }
    if (answer.status != VELLUM_OK && answer.status != VELLUM_END &&
        answer.status != VELLUM_RECORD_TOO_LARGE) {
        answer.error = last_error(answer.status);
        if (answer.value > 0) {
            reader->error = answer.error;
            answer.error = NULL;
            answer.status = VELLUM_OK;
        }
    }
    answer.other = vellum_reader_position(reader->reader);
    return answer;
}

vg_answer vg_backwards_open(const vellum_log *log, uint64_t before, vellum_backwards **backwards)
{
    return answer_of(vellum_backwards_open(log, before, backwards), 0);
}

vg_answer vg_backwards_next(vellum_backwards *backwards, vg_head *head, const uint8_t **data)
{
    vellum_record record;
    int status = vellum_backwards_next(backwards, &record);
    if (status == VELLUM_OK) {
        *head = (vg_head){
            .lsn = record.lsn,
            .next_lsn = record.next_lsn,
            .time_ns = vellum_backwards_time(backwards),
            .writer = vellum_backwards_writer(backwards),
            .len = record.len,
        };
        *data = record.data;
    }
    return answer_of(status, 0);
}

vg_answer vg_log_id(const vellum_log *log, uint8_t (*id)[16])
{
    return answer_of(vellum_log_id(log, id), 0);
}

vg_answer vg_position_of(const vellum_log *log, uint64_t lsn, vellum_position *position)
{
    return answer_of(vellum_position_of(log, lsn, position), 0);
}

vg_answer vg_resolve(const vellum_log *log, const vellum_position *position, uint32_t meaning)
{
    uint64_t lsn = 0;
    int status = vellum_resolve(log, position, meaning, &lsn);
    return answer_of(status, lsn);
}

vg_answer vg_position_to_text(const vellum_position *position, char *text, size_t size)
{
    return answer_of(vellum_position_to_text(position, text, size), 0);
}

vg_answer vg_position_from_text(const char *text, vellum_position *position)
{
    return answer_of(vellum_position_from_text(text, position), 0);
}

vg_answer vg_cursor_open(const vellum_log *log,
                         const char *name,
                         uint64_t at,
                         vellum_cursor **cursor)
{
    return answer_of(vellum_cursor_open(log, name, at, cursor), 0);
}

vg_answer vg_cursor_position(const vellum_cursor *cursor)
{
    uint64_t lsn = 0;
    int status = vellum_cursor_position(cursor, &lsn);
    return answer_of(status, lsn);
}

vg_answer vg_cursor_commit(const vellum_cursor *cursor, uint64_t lsn)
{
    return answer_of(vellum_cursor_commit(cursor, lsn), 0);
}

vg_answer vg_cursor_set(const vellum_cursor *cursor, uint64_t lsn)
{
    return answer_of(vellum_cursor_set(cursor, lsn), 0);
}

vg_answer vg_cursor_hold(const vellum_cursor *cursor, uint64_t max_bytes, uint64_t max_age_s)
{
    return answer_of(vellum_cursor_hold(cursor, max_bytes, max_age_s), 0);
}

vg_answer vg_cursor_unhold(const vellum_cursor *cursor)
{
    return answer_of(vellum_cursor_unhold(cursor), 0);
}

vg_answer vg_cursor_own(const vellum_cursor *cursor)
{
    return answer_of(vellum_cursor_own(cursor), 0);
}

vg_answer vg_cursor_disown(const vellum_cursor *cursor)
{
    return answer_of(vellum_cursor_disown(cursor), 0);
}

vg_answer vg_cursor_skip_overrun(vellum_cursor *cursor, vellum_gap *gap)
{
    return answer_of(vellum_cursor_skip_overrun(cursor, gap), 0);
}

vg_answer vg_cursor_remove(vellum_cursor *cursor)
{
    return answer_of(vellum_cursor_remove(cursor), 0);
}

vg_answer vg_stat_take(const vellum_log *log, vellum_stat **stat)
{
    return answer_of(vellum_stat_take(log, stat), 0);
}

vg_answer vg_guard_bus_errors(void)
{
    return answer_of(vellum_guard_bus_errors(), 0);
}
