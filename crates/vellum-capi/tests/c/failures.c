/* A write that fails for real: what becomes of the commits of a log, and of its other functions.
 * The argument is a directory to work in.
 *
 * A staged log writes to its files when it commits. A limit on the length of files, set when the
 * records are in the stage, is an error of that call alone. A device that fails poisons the log; that
 * is noted here as the library would note it, in the shared words: it needs no mount, and no rights. */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"

/* Beyond this no file of the calling process can be written; RLIM_INFINITY is no limit. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = bytes;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* Where the control file has the error number of the first failed write (docs/protocol.md). */
#define POISON_OFFSET (4096 + 197632)

/* Has a write to the device have failed. */
static void fail_device(const char *path)
{
    char *control = below(path, "control");
    uint64_t number = EIO;
    int file = open(control, O_WRONLY);
    CHECK(file >= 0);
    CHECK(pwrite(file, &number, sizeof number, POISON_OFFSET) == (ssize_t)sizeof number);
    CHECK(close(file) == 0);
    free(control);
}

static int submit_and_wait(const vellum_committer *committer, uint64_t lsn, vellum_completion **to)
{
    OK(vellum_committer_submit(committer, lsn, to));
    struct pollfd waiting = {.fd = vellum_completion_fd(*to), .events = POLLIN};
    CHECK(poll(&waiting, 1, -1) == 1 && (waiting.revents & POLLIN) != 0);
    return vellum_completion_outcome(*to);
}

/* The last error of this thread tells of the write that failed, in words and in numbers. */
static void check_told(const char *path)
{
    CHECK(vellum_last_error_code() == VELLUM_POISONED && vellum_last_error_errno() == EIO);
    CHECK(strncmp(vellum_last_error_path(), path, strlen(path)) == 0);
    const char *message = vellum_last_error_message();
    CHECK(strstr(message, path) != NULL && strstr(message, strerror(EIO)) != NULL);
}

/* Nothing more can be made durable, and so nothing is taken any more. */
static void refusals(const vellum_log *log, uint64_t lost)
{
    struct iovec part = {.iov_base = (void *)"x", .iov_len = 1};
    vellum_batch *batch;
    vellum_reservation *reservation = NULL;
    uint64_t lsn = 7;
    RETURNS(VELLUM_POISONED, vellum_commit(log, lost));
    RETURNS(VELLUM_POISONED, vellum_sync(log, &lsn));
    RETURNS(VELLUM_POISONED, vellum_append(log, "x", 1, &lsn));
    RETURNS(VELLUM_POISONED, vellum_appendv(log, &part, 1, &lsn));
    RETURNS(VELLUM_POISONED, vellum_append_durable(log, "x", 1, &lsn));
    OK(vellum_batch_begin(log, &batch));
    OK(vellum_batch_push(batch, "x", 1));
    RETURNS(VELLUM_POISONED, vellum_batch_append(batch, &lsn));
    RETURNS(VELLUM_POISONED, vellum_reserve(log, 1, &reservation));
    RETURNS(VELLUM_POISONED, vellum_set_checkpoint(log, lost));
    RETURNS(VELLUM_POISONED, vellum_truncate(log, lost));
    CHECK(lsn == 7 && reservation == NULL);
}

static void check_stat(const vellum_log *log)
{
    vellum_stat *stat;
    vellum_summary summary = {.struct_size = sizeof summary};
    OK(vellum_stat_take(log, &stat));
    OK(vellum_stat_summary(stat, &summary));
    CHECK(summary.poison != NULL && strstr(summary.poison, strerror(EIO)) != NULL);
    vellum_stat_free(stat);
}

static void commits_that_fail(const char *path, vellum_log *log)
{
    vellum_committer *committer;
    vellum_completion *good, *failed, *late;
    OK(vellum_committer_start(log, &committer));
    OK(submit_and_wait(committer, append_text(log, "kept"), &good));
    uint64_t durable = vellum_durable(log), lost = append_text(log, "lost");
    limit_files(4096);
    RETURNS(VELLUM_NO_SPACE, submit_and_wait(committer, lost, &failed));
    CHECK(vellum_last_error_errno() == EFBIG);
    CHECK(vellum_errno_of(VELLUM_NO_SPACE) == EFBIG && vellum_errno_of(VELLUM_BUSY) == EBUSY);
    limit_files(RLIM_INFINITY);
    fail_device(path);
    RETURNS(VELLUM_POISONED, submit_and_wait(committer, lost, &late));
    check_told(path);
    RETURNS(VELLUM_NO_SPACE, vellum_completion_outcome(failed));
    OK(vellum_completion_outcome(good));
    CHECK(vellum_durable(log) == durable);
    refusals(log, lost);
    check_told(path);
    check_stat(log);
    vellum_log *second = NULL;
    RETURNS(VELLUM_POISONED, vellum_open(path, NULL, &second));
    CHECK(second == NULL);
    vellum_completion_close(late);
    vellum_completion_close(failed);
    vellum_completion_close(good);
    vellum_committer_stop(committer);
}

/* Who opens the log when all have closed it finds what was durable, and goes on. */
static void reopened(const char *path)
{
    vellum_log *log;
    OK(vellum_open(path, NULL, &log));
    vellum_reader *reader;
    vellum_record record;
    OK(vellum_reader_open(log, 0, &reader));
    OK(vellum_reader_next(reader, &record));
    CHECK(is_text(&record, "kept"));
    OK(vellum_append_durable(log, "more", 4, NULL));
    vellum_reader_close(reader);
    vellum_close(log);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    char *path = below(argv[1], "failures");
    vellum_options options = options_of(VELLUM_KIND_EVENTS);
    options.fill = VELLUM_FILL_STAGED;
    vellum_log *log;
    int opened = vellum_open(path, &options, &log);
    if (opened == VELLUM_UNSUPPORTED) {
        (void)fprintf(stderr, "skipped: %s\n", vellum_last_error_message());
    } else {
        OK(opened);
        commits_that_fail(path, log);
        RETURNS(VELLUM_POISONED, vellum_close(log));
        reopened(path);
    }
    free(path);
    return 0;
}
