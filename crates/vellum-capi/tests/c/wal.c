/* A database in C: recover from the checkpoint, commit, checkpoint when one is due, trim. Its
 * process is killed again and again. The argument is a directory to work in.
 *
 * The database is a sum of numbers, with a file "snapshot" that holds it as it was at some position
 * of the log. */
#define _POSIX_C_SOURCE 200809L

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { ROUNDS = 20, NUMBERS_PER_ROUND = 60 };

typedef struct {
    uint64_t sum;   /* of the numbers 1, 2, ... count */
    uint64_t count;
    uint64_t lsn;   /* everything before it is in the sum */
} snapshot;

typedef struct {
    vellum_log *log;
    snapshot now;
    const char *dir;
} database;

static void load(const char *path, snapshot *loaded)
{
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return; /* there never was one */
    CHECK(read(fd, loaded, sizeof *loaded) == (ssize_t)sizeof *loaded);
    CHECK(close(fd) == 0);
}

/* The snapshot is whole and durable before it takes the place of the one before. */
static void store(const database *db, const snapshot *stored)
{
    char *new_path = below(db->dir, "snapshot.new"), *path = below(db->dir, "snapshot");
    int fd = open(new_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    CHECK(fd >= 0 && write(fd, stored, sizeof *stored) == (ssize_t)sizeof *stored);
    CHECK(fsync(fd) == 0 && close(fd) == 0);
    CHECK(rename(new_path, path) == 0);
    int dir = open(db->dir, O_RDONLY);
    CHECK(dir >= 0 && fsync(dir) == 0 && close(dir) == 0);
    free(new_path);
    free(path);
}

static void apply(snapshot *now, const vellum_record *record)
{
    uint64_t number;
    CHECK(record->len == sizeof number);
    memcpy(&number, record->data, sizeof number);
    CHECK(number == now->count + 1); /* none is missing, and none comes twice */
    now->count = number;
    now->sum += number;
}

static void recover(database *db)
{
    char *path = below(db->dir, "snapshot"), *log_path = below(db->dir, "log");
    vellum_options options;
    OK(vellum_options_init(&options, sizeof options));
    options.kind = VELLUM_KIND_WAL;
    options.segment_capacity_bytes = 16384;
    options.checkpoint_after_bytes = 512;
    load(path, &db->now);
    OK(vellum_open(log_path, &options, &db->log));
    CHECK(db->now.lsn >= vellum_checkpoint(db->log)); /* the snapshot was not lost */

    vellum_reader *reader;
    vellum_record record;
    int status;
    OK(vellum_reader_open(db->log, db->now.lsn, &reader));
    while ((status = vellum_reader_next(reader, &record)) == VELLUM_OK)
        apply(&db->now, &record);
    CHECK(status == VELLUM_END); /* anything else is an error */
    vellum_reader_close(reader);
    /* What a killed process left is shown from now on, so it must survive a power cut too. */
    OK(vellum_sync(db->log, NULL));
    free(path);
    free(log_path);
}

static void checkpoint(database *db)
{
    db->now.lsn = vellum_published(db->log);
    OK(vellum_sync(db->log, NULL));
    store(db, &db->now);
    OK(vellum_set_checkpoint(db->log, db->now.lsn));
    OK(vellum_trim(db->log, db->now.lsn, NULL));
}

static void add_next(database *db)
{
    uint64_t number = db->now.count + 1;
    OK(vellum_append_durable(db->log, &number, sizeof number, NULL));
    db->now.count = number;
    db->now.sum += number;
    if (vellum_checkpoint_due(db->log))
        checkpoint(db);
}

/* Adds numbers for ever, and tells each that is durable. */
static void work(const char *dir, int told)
{
    database db = {.dir = dir};
    for (recover(&db);;) {
        add_next(&db);
        CHECK(write(told, &db.now.count, sizeof db.now.count) == sizeof db.now.count);
    }
}

static pid_t start(const char *dir, int ends[2])
{
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        work(dir, ends[1]);
    CHECK(close(ends[1]) == 0);
    return child;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    uint64_t count = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int ends[2];
        pid_t child = start(argv[1], ends);
        for (int i = 0; i < NUMBERS_PER_ROUND + round; i++)
            CHECK(read(ends[0], &count, sizeof count) == sizeof count);
        CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
        while (read(ends[0], &count, sizeof count) == sizeof count)
            ;
        CHECK(close(ends[0]) == 0);
        database db = {.dir = argv[1]};
        recover(&db);
        CHECK(db.now.count == count || db.now.count == count + 1);
        CHECK(db.now.sum == db.now.count * (db.now.count + 1) / 2);
        CHECK(round < ROUNDS - 1 || vellum_begin(db.log) > 16384); /* it was trimmed */
        vellum_close(db.log);
    }
    return 0;
}
