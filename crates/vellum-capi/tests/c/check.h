/* What the tests in C have in common: checks that say where they failed, and paths to work in. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vellum.h>

#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);        \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

/* The call returns `wanted`; where it is an error, the thread's last error says so too. */
#define RETURNS(wanted, call)                                                              \
    do {                                                                                   \
        int got_ = (call);                                                                 \
        if (got_ != (wanted)) {                                                            \
            fprintf(stderr, "%s:%d: %s is %d (%s), not %s: %s\n", __FILE__, __LINE__,      \
                    #call, got_, vellum_strerror(got_), #wanted,                           \
                    vellum_last_error_message());                                          \
            exit(1);                                                                       \
        }                                                                                  \
        if (got_ != VELLUM_OK && got_ != VELLUM_END && got_ != VELLUM_PENDING)             \
            CHECK(vellum_last_error_code() == got_);                                       \
    } while (0)

#define OK(call) RETURNS(VELLUM_OK, call)

/* A path below the directory that the test was given; the text is the caller's to free. */
static inline char *below(const char *dir, const char *name)
{
    size_t size = strlen(dir) + strlen(name) + 2;
    char *path = (char *)malloc(size);
    CHECK(path != NULL);
    (void)snprintf(path, size, "%s/%s", dir, name);
    return path;
}

static inline vellum_options options_of(uint32_t layout)
{
    vellum_options options;
    OK(vellum_options_init(&options, sizeof options));
    options.kind = layout;
    options.segment_capacity_bytes = 1 << 20;
    return options;
}

static inline vellum_log *open_log(const char *path, uint32_t layout)
{
    vellum_options options = options_of(layout);
    vellum_log *log = NULL;
    OK(vellum_open(path, &options, &log));
    return log;
}

/* Cuts the first file of a log that was opened so, behind the library's back. */
static inline void cut_first_file(const char *log)
{
    char *path = below(log, "0000000000100000.seg");
    FILE *file = fopen(path, "r+");
    CHECK(file != NULL && fclose(file) == 0);
    file = fopen(path, "w");
    CHECK(file != NULL && fclose(file) == 0);
    free(path);
}

static inline uint64_t append_text(const vellum_log *log, const char *text)
{
    uint64_t lsn = 0;
    OK(vellum_append(log, text, strlen(text), &lsn));
    return lsn;
}

static inline int is_text(const vellum_record *record, const char *text)
{
    return record->len == strlen(text) && memcmp(record->data, text, record->len) == 0;
}

#endif
