// The calls of the package, each as one call of C: a call from Go costs more than most of these
// functions do, and only the calling thread knows the error.
#ifndef VELLUM_GO_BRIDGE_H
#define VELLUM_GO_BRIDGE_H

#include <stddef.h>
#include <stdint.h>
#include <vellum.h>

// The failure: a copy that the caller frees by vg_error_free.
typedef struct {
    int status;
    int os_errno;
    uint64_t lsn;
    char *message;
    char *path;
} vg_error;

// The outcome of a call. `error` is NULL after success, also for VELLUM_END.
typedef struct {
    int status;
    uint64_t value;
    uint64_t other;
    vg_error *error;
} vg_answer;

void vg_error_free(vg_error *error);

vg_answer vg_open(const char *path, const vellum_options *options, vellum_log **log);
vg_answer vg_reopen(const vellum_log *log, vellum_log **reopened);
vg_answer vg_close(vellum_log *log);
vg_answer vg_recovered(const vellum_log *log, vellum_recovery *recovery);

// `other` is the position that makes it durable when it is committed, 0 where it was dropped.
vg_answer vg_append(const vellum_log *log, const uint8_t *data, size_t len);
// As vg_append and vg_commit: `value` is 0 where the append has failed, and `other` the durable end.
vg_answer vg_append_durable(const vellum_log *log, const uint8_t *data, size_t len);
// Records one behind the other, each behind its length in four bytes. `lsns` may be NULL; without it
// `other` is 0.
vg_answer vg_append_batch(const vellum_log *log,
                          const uint8_t *records,
                          size_t len,
                          uint64_t *lsns,
                          size_t count);
// As vg_append_durable, for at least one record.
vg_answer vg_append_batch_durable(const vellum_log *log,
                                  const uint8_t *records,
                                  size_t len,
                                  uint64_t *lsns,
                                  size_t count);

// Whether the record at `lsn` has to be committed.
enum { VG_NOT_DURABLE, VG_DURABLE, VG_BEYOND };
int vg_place_of(const vellum_log *log, uint64_t lsn);
// `other` is the durable end, also behind an error.
vg_answer vg_wait_published(const vellum_log *log, uint64_t lsn, int64_t timeout_ns);
vg_answer vg_commit(const vellum_log *log, uint64_t lsn);
vg_answer vg_sync(const vellum_log *log);
vg_answer vg_set_checkpoint(const vellum_log *log, uint64_t lsn);

vg_answer vg_trim(const vellum_log *log, uint64_t before, vellum_trim_report *report);
vg_answer vg_truncate(const vellum_log *log, uint64_t from);
vg_answer vg_rotate(const vellum_log *log);
vg_answer vg_prepare(const vellum_log *log, uint64_t segments);
vg_answer vg_release_prepared(const vellum_log *log);

// `value` is the length of the record, `other` where the next one starts. A record that does not
// fit is VELLUM_RECORD_TOO_LARGE without an error, and `value` is its size.
vg_answer vg_read_at(const vellum_log *log, uint64_t lsn, uint8_t *buffer, size_t capacity);
vg_answer vg_last_record(const vellum_log *log);

// A reader, and the record that it has lent and that did not fit.
typedef struct vg_reader vg_reader;

vg_answer vg_reader_open(const vellum_log *log, uint64_t from, uint32_t flags, vg_reader **reader);
vg_answer vg_reader_open_at_time(const vellum_log *log,
                                 uint64_t time_ns,
                                 uint32_t flags,
                                 vg_reader **reader);
vg_answer vg_reader_open_at(const vellum_log *log,
                            const vellum_position *position,
                            uint32_t meaning,
                            vg_reader **reader);
vg_answer vg_cursor_reader(const vellum_cursor *cursor, vg_reader **reader);
vg_answer vg_reader_seek(vg_reader *reader, uint64_t to);
vg_answer vg_reader_stop_at(vg_reader *reader, uint64_t end);
vg_answer vg_reader_skip_damage(vg_reader *reader, int skip);
vg_answer vg_reader_take_gap(vg_reader *reader, vellum_gap *gap);
uint64_t vg_reader_position(const vg_reader *reader);
int vg_reader_fd(const vg_reader *reader);
void vg_reader_close(vg_reader *reader);

// Before each record in the buffer of vg_reader_fill, which begins at a multiple of 8.
typedef struct {
    uint64_t lsn;
    uint64_t next_lsn;
    uint64_t time_ns;
    uint64_t writer;
    uint64_t len;
} vg_head;

// Copies records into the buffer until it is full; `value` is how many bytes that are, `other` where
// the reader is then. VELLUM_END is the end of the log, which may come behind records. An error
// comes alone, in the call behind the records. VELLUM_RECORD_TOO_LARGE without an error: the next
// record takes `value` bytes.
vg_answer vg_reader_fill(vg_reader *reader, uint8_t *buffer, size_t capacity);

vg_answer vg_backwards_open(const vellum_log *log, uint64_t before, vellum_backwards **backwards);
// `record` is lent until the next call; `head` says the rest.
vg_answer vg_backwards_next(vellum_backwards *backwards, vg_head *head, const uint8_t **data);

vg_answer vg_log_id(const vellum_log *log, uint8_t (*id)[16]);
vg_answer vg_position_of(const vellum_log *log, uint64_t lsn, vellum_position *position);
vg_answer vg_resolve(const vellum_log *log, const vellum_position *position, uint32_t meaning);
vg_answer vg_position_to_text(const vellum_position *position, char *text, size_t size);
vg_answer vg_position_from_text(const char *text, vellum_position *position);

vg_answer vg_cursor_open(const vellum_log *log,
                         const char *name,
                         uint64_t at,
                         vellum_cursor **cursor);
vg_answer vg_cursor_position(const vellum_cursor *cursor);
vg_answer vg_cursor_commit(const vellum_cursor *cursor, uint64_t lsn);
vg_answer vg_cursor_set(const vellum_cursor *cursor, uint64_t lsn);
vg_answer vg_cursor_hold(const vellum_cursor *cursor, uint64_t max_bytes, uint64_t max_age_s);
vg_answer vg_cursor_unhold(const vellum_cursor *cursor);
vg_answer vg_cursor_own(const vellum_cursor *cursor);
vg_answer vg_cursor_disown(const vellum_cursor *cursor);
vg_answer vg_cursor_skip_overrun(vellum_cursor *cursor, vellum_gap *gap);
vg_answer vg_cursor_remove(vellum_cursor *cursor);

vg_answer vg_stat_take(const vellum_log *log, vellum_stat **stat);
vg_answer vg_guard_bus_errors(void);

#endif
