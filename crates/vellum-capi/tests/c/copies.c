/* Two copies of the library in one process, as where a Python package has its own: a fault of either
 * one's log is an error, whichever was loaded first. The arguments are a directory to work in and
 * the files of the copies. */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { COPIES = 2 };

struct copy {
    int (*options_init)(vellum_options *, size_t);
    int (*open)(const char *, const vellum_options *, vellum_log **);
    int (*append)(const vellum_log *, const void *, size_t, uint64_t *);
    int (*guard_bus_errors)(void);
    const char *(*last_error_message)(void);
    vellum_log *log;
};

/* A function of one copy, without a cast of its pointer, which ISO C does not have. */
#define FIND(name)                                                                         \
    do {                                                                                   \
        void *found_ = dlsym(library, "vellum_" #name);                                    \
        CHECK(found_ != NULL);                                                             \
        memcpy(&copy->name, &found_, sizeof found_);                                       \
    } while (0)

static void load(struct copy *copy, const char *file, const char *path)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    FIND(options_init);
    FIND(open);
    FIND(append);
    FIND(guard_bus_errors);
    FIND(last_error_message);
    vellum_options options;
    CHECK(copy->options_init(&options, sizeof options) == VELLUM_OK);
    options.kind = VELLUM_KIND_EVENTS;
    options.segment_capacity_bytes = 1 << 20;
    CHECK(copy->open(path, &options, &copy->log) == VELLUM_OK);
    /* So many that the next one is stored into a page that is mapped. */
    for (int i = 0; i < 300; i++)
        CHECK(copy->append(copy->log, "one", 3, NULL) == VELLUM_OK);
}

static void check_lost(const struct copy *copy, const char *path)
{
    cut_first_file(path);
    int status = copy->append(copy->log, "two", 3, NULL);
    if (status != VELLUM_CORRUPT)
        fprintf(stderr, "%d: %s\n", status, copy->last_error_message());
    CHECK(status == VELLUM_CORRUPT);
}

/* Ends by a signal in no mapping of either copy, or after a fault in each one's log. */
static void in_child(char **argv, int first, int guards, int is_raised)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        struct copy copies[COPIES];
        char *paths[COPIES];
        for (int i = 0; i < COPIES; i++) {
            char name[32];
            (void)snprintf(name, sizeof name, "%d-%d-%d-%d", first, guards, is_raised, i);
            paths[i] = below(argv[1], name);
            load(&copies[i], argv[2 + i], paths[i]);
        }
        /* Each one before the other: no signal goes round for ever. */
        for (int i = 0; i < guards; i++)
            CHECK(copies[i % COPIES].guard_bus_errors() == VELLUM_OK);
        if (is_raised)
            raise(SIGBUS);
        for (int i = 0; i < COPIES; i++)
            check_lost(&copies[(first + i) % COPIES], paths[(first + i) % COPIES]);
        exit(7);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (is_raised)
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    else
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2 + COPIES);
    for (int first = 0; first < COPIES; first++)
        for (int guards = 0; guards < 4; guards++)
            for (int is_raised = 0; is_raised < 2; is_raised++)
                in_child(argv, first, guards, is_raised);
    return 0;
}
