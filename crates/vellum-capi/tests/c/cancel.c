/* Threads that are cancelled in calls: each call is done, and the thread ends at a point of its own.
 * The argument is a directory to work in. */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "check.h"

enum { ROUNDS = 40, CALLS = 5 };

static vellum_log *shared_log;
static int started;

static void call(int which)
{
    vellum_reader *reader;
    vellum_record record;
    switch (which) {
    case 0:
        OK(vellum_append(shared_log, "record", 6, NULL));
        break;
    case 1:
        OK(vellum_append_durable(shared_log, "record", 6, NULL));
        break;
    case 2:
        OK(vellum_reader_open(shared_log, 0, &reader));
        OK(vellum_reader_next(reader, &record));
        RETURNS(VELLUM_OK, vellum_reader_follow(reader, 1000000, &record));
        vellum_reader_close(reader);
        break;
    case 3:
        OK(vellum_sync(shared_log, NULL));
        break;
    default:
        OK(vellum_append(shared_log, "another", 7, NULL));
        OK(vellum_commit(shared_log, vellum_begin(shared_log)));
    }
}

static void *call_until_cancelled(void *which)
{
    for (;;) {
        call((int)(size_t)which);
        __atomic_store_n(&started, 1, __ATOMIC_SEQ_CST);
        pthread_testcancel();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    char *path = below(argv[1], "log");
    shared_log = open_log(path, VELLUM_KIND_WAL);
    append_text(shared_log, "first");
    append_text(shared_log, "second");
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t which = 0; which < CALLS; which++) {
            pthread_t thread;
            void *result;
            __atomic_store_n(&started, 0, __ATOMIC_SEQ_CST);
            CHECK(pthread_create(&thread, NULL, call_until_cancelled, (void *)which) == 0);
            while (__atomic_load_n(&started, __ATOMIC_SEQ_CST) == 0)
                (void)sched_yield();
            for (int i = 0; i < round; i++)
                (void)sched_yield();
            CHECK(pthread_cancel(thread) == 0);
            CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
            append_text(shared_log, "afterwards");
        }
    }
    vellum_close(shared_log);
    free(path);
    return 0;
}
