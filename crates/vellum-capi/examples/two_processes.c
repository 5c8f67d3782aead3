/* Two processes append to one log; a third reads it while they do.
 *
 *     cc two_processes.c $(pkg-config --cflags --libs vellum) -o two_processes
 *     ./two_processes app.log
 */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vellum.h>

enum { WRITERS = 2, RECORDS = 1000 };

static void must(int status)
{
    if (status != VELLUM_OK) {
        fprintf(stderr, "%s\n", vellum_last_error_message());
        exit(1);
    }
}

static void append_lines(const vellum_log *log, int writer)
{
    for (int number = 0; number < RECORDS; number++) {
        char line[64];
        int len = snprintf(line, sizeof line, "writer %d, record %d\n", writer, number);
        must(vellum_append(log, line, (size_t)len, NULL));
    }
}

int main(int argc, char **argv)
{
    vellum_options options;
    must(vellum_options_init(&options, sizeof options));
    options.kind = VELLUM_KIND_TEXT;

    vellum_log *log;
    must(vellum_open(argc > 1 ? argv[1] : "app.log", &options, &log));

    for (int writer = 0; writer < WRITERS; writer++) {
        if (fork() == 0) { /* the child goes on with the log that its parent opened */
            append_lines(log, writer);
            vellum_close(log);
            return 0;
        }
    }

    vellum_reader *reader;
    must(vellum_reader_open(log, 0, &reader));
    for (int count = 0; count < WRITERS * RECORDS; count++) {
        vellum_record record;
        must(vellum_reader_follow(reader, -1, &record));
        fwrite(record.data, 1, record.len, stdout);
    }
    vellum_reader_close(reader);

    while (wait(NULL) > 0)
        ;
    must(vellum_sync(log, NULL)); /* from here on even a power cut loses nothing */
    vellum_close(log);
    return 0;
}
