/* Threads, forks, other programs, and death. The argument is a directory to work in; the program
 * starts itself with a second argument as another process. */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { WRITERS = 4, RECORDS = 500 };

/* The records that one writer appends are numbered; each must be there once, in order. */
typedef struct {
    int writer;
    int number;
} numbered;

static void append_numbered(const vellum_log *log, int writer)
{
    for (int number = 0; number < RECORDS; number++) {
        numbered record = {writer, number};
        OK(vellum_append(log, &record, sizeof record, NULL));
    }
}

static void expect_all(const vellum_log *log, int writers)
{
    int next[WRITERS] = {0};
    vellum_reader *reader;
    OK(vellum_reader_open(log, 0, &reader));
    for (int i = 0; i < writers * RECORDS; i++) {
        vellum_record record;
        numbered found;
        OK(vellum_reader_next(reader, &record));
        CHECK(record.len == sizeof found);
        memcpy(&found, record.data, sizeof found);
        CHECK(found.writer >= 0 && found.writer < writers);
        CHECK(found.number == next[found.writer]++);
    }
    vellum_record record;
    RETURNS(VELLUM_END, vellum_reader_next(reader, &record));
    vellum_reader_close(reader);
}

static void expect_good_end(pid_t child)
{
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Not waited for yet: it is at work, or its end was good. */
static void expect_no_bad_end(pid_t child)
{
    siginfo_t end = {0};
    CHECK(waitid(P_PID, (id_t)child, &end, WEXITED | WNOHANG | WNOWAIT) == 0);
    CHECK(end.si_pid == 0 || (end.si_code == CLD_EXITED && end.si_status == 0));
}

static pid_t start(char **argv, const char *role, int output)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(output < 0 || dup2(output, STDOUT_FILENO) == STDOUT_FILENO);
        execl(argv[0], argv[0], argv[1], role, (char *)NULL);
        _exit(127);
    }
    return child;
}

typedef struct {
    const vellum_log *log;
    int writer;
} task;

static void *run(void *argument)
{
    const task *mine = (const task *)argument;
    append_numbered(mine->log, mine->writer);
    return NULL;
}

static void threads(const char *dir)
{
    char *path = below(dir, "threads");
    vellum_log *log = open_log(path, VELLUM_KIND_EVENTS);
    pthread_t started[WRITERS];
    task tasks[WRITERS];
    for (int writer = 0; writer < WRITERS; writer++) {
        tasks[writer].log = log;
        tasks[writer].writer = writer;
        CHECK(pthread_create(&started[writer], NULL, run, &tasks[writer]) == 0);
    }
    for (int writer = 0; writer < WRITERS; writer++)
        CHECK(pthread_join(started[writer], NULL) == 0);
    expect_all(log, WRITERS);
    vellum_close(log);
    free(path);
}

/* What a child may go on with, and what stayed with its parent. */
static void go_on_in_child(vellum_log *log, vellum_committer *committer,
                           vellum_reservation *reservation)
{
    append_numbered(log, 1);
    vellum_completion *completion;
    RETURNS(VELLUM_UNSUPPORTED, vellum_committer_submit(committer, 1, &completion));
    RETURNS(VELLUM_ABANDONED, vellum_reservation_write(reservation, "child", 5));
    vellum_reservation_abandon(reservation);
    vellum_committer_stop(committer);
    vellum_close(log);
    exit(0);
}

static void forks(const char *dir)
{
    char *path = below(dir, "forks");
    vellum_log *log = open_log(path, VELLUM_KIND_EVENTS);
    vellum_committer *committer;
    OK(vellum_committer_start(log, &committer));
    vellum_reservation *reservation;
    OK(vellum_reserve(log, 5, &reservation));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        go_on_in_child(log, committer, reservation);
    append_numbered(log, 0);
    vellum_reservation_abandon(reservation);
    expect_good_end(child);
    vellum_committer_stop(committer);
    expect_all(log, 2);
    vellum_close(log);
    free(path);
}

/* The next record, as long as its writers have not failed. */
static void follow_writers(vellum_reader *reader, const pid_t *writers, vellum_record *record)
{
    int code;
    while ((code = vellum_reader_follow(reader, 1000000000, record)) == VELLUM_END) {
        expect_no_bad_end(writers[0]);
        expect_no_bad_end(writers[1]);
    }
    OK(code);
}

/* Two other programs append; this one follows what they do, without having opened it first. */
static void follow(char **argv)
{
    char *path = below(argv[1], "follow");
    pid_t writers[2] = {start(argv, "write 0", -1), start(argv, "write 1", -1)};
    vellum_log *log = open_log(path, VELLUM_KIND_EVENTS);
    vellum_reader *reader;
    OK(vellum_reader_open(log, 0, &reader));
    int next[2] = {0, 0};
    for (int i = 0; i < 2 * RECORDS; i++) {
        vellum_record record;
        numbered found;
        follow_writers(reader, writers, &record);
        memcpy(&found, record.data, sizeof found);
        CHECK(found.number == next[found.writer]++);
    }
    vellum_reader_close(reader);
    expect_good_end(writers[0]);
    expect_good_end(writers[1]);
    vellum_close(log);
    free(path);
}

/* A process is killed at whatever instruction: what it said it had appended is there. */
static void kill_and_read(char **argv)
{
    char *path = below(argv[1], "killed");
    vellum_log *log = open_log(path, VELLUM_KIND_EVENTS);
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t victim = start(argv, "append for ever", ends[1]);
    CHECK(close(ends[1]) == 0);
    uint64_t acknowledged = 0, lsn, after = 0;
    for (int i = 0; i < 300; i++)
        CHECK(read(ends[0], &acknowledged, sizeof lsn) == (ssize_t)sizeof lsn);
    CHECK(kill(victim, SIGKILL) == 0 && waitpid(victim, NULL, 0) == victim);
    while (read(ends[0], &lsn, sizeof lsn) == (ssize_t)sizeof lsn)
        acknowledged = lsn;
    CHECK(close(ends[0]) == 0);

    OK(vellum_append(log, "survivor", 8, &after));
    CHECK(after > acknowledged);
    vellum_reader *reader;
    vellum_record record;
    OK(vellum_reader_open(log, 0, &reader));
    int has_seen = 0;
    for (int number = 0; !has_seen; number++) {
        OK(vellum_reader_follow(reader, -1, &record));
        CHECK(record.len == sizeof number && memcmp(record.data, &number, sizeof number) == 0);
        has_seen = record.lsn == acknowledged;
    }
    do
        OK(vellum_reader_follow(reader, -1, &record));
    while (record.lsn != after);
    CHECK(is_text(&record, "survivor"));
    vellum_reader_close(reader);
    vellum_verify_report report = {.struct_size = sizeof report};
    OK(vellum_verify(log, &report, NULL));
    CHECK(report.damage_count == 0);
    vellum_close(log);
    free(path);
}

static void append_for_ever(const char *dir)
{
    char *path = below(dir, "killed");
    vellum_log *log = open_log(path, VELLUM_KIND_EVENTS);
    for (int number = 0;; number++) {
        uint64_t lsn;
        OK(vellum_append(log, &number, sizeof number, &lsn));
        CHECK(write(STDOUT_FILENO, &lsn, sizeof lsn) == (ssize_t)sizeof lsn);
    }
}

static void write_for_follower(const char *dir, int writer)
{
    char *path = below(dir, "follow");
    vellum_log *log = open_log(path, VELLUM_KIND_EVENTS);
    append_numbered(log, writer);
    vellum_close(log);
    free(path);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2 || argc == 3);
    if (argc == 3 && strcmp(argv[2], "append for ever") == 0) {
        append_for_ever(argv[1]);
    } else if (argc == 3) {
        write_for_follower(argv[1], strcmp(argv[2], "write 1") == 0);
    } else {
        threads(argv[1]);
        forks(argv[1]);
        follow(argv);
        kill_and_read(argv);
    }
    return 0;
}
