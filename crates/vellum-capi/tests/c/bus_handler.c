/* Handlers of the program for SIGBUS, with Vellum's before them: each fault of the program comes to
 * its handler, however the handler is left, and each fault of a log is an error of the call. The
 * argument is a directory to work in. */
#define _GNU_SOURCE

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { FAULTS = 50, THREADS = 4 };

/* A page of a file that is empty: reading it is a fault. */
static volatile char *empty_page;

static __thread sigjmp_buf back;
static __thread volatile int caught;

static void jump(int number)
{
    (void)number;
    caught++;
    siglongjmp(back, 1);
}

static void jump_with_signal_open(int number)
{
    (void)number;
    caught++;
    _longjmp(back, 1);
}

static void leave_thread(int number)
{
    (void)number;
    pthread_exit((void *)&empty_page);
}

static void set(void (*handler)(int), int flags)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags;
    CHECK(sigaction(SIGBUS, &action, NULL) == 0);
}

static void *fault_often(void *keeps_mask)
{
    for (int i = 0; i < FAULTS; i++) {
        caught = i;
        if (keeps_mask != NULL ? sigsetjmp(back, 1) == 0 : _setjmp(back) == 0)
            (void)*empty_page;
        CHECK(caught == i + 1);
    }
    return NULL;
}

static void *fault_once(void *unused)
{
    (void)*empty_page;
    return unused;
}

static void in_threads(void *(*work)(void *), void *with, void *wanted)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, with) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        CHECK(pthread_join(threads[i], &result) == 0);
        CHECK((result != NULL) == (wanted != NULL));
    }
}

/* The program's faults come back, and so does one of a log. */
static void both(const char *dir, const char *name)
{
    char *path = below(dir, name);
    vellum_log *log = open_log(path, VELLUM_KIND_EVENTS);
    for (int i = 0; i < 300; i++)
        append_text(log, "one");
    fault_often(&back);
    in_threads(fault_often, &back, NULL);
    cut_first_file(path);
    RETURNS(VELLUM_CORRUPT, vellum_append(log, "two", 3, NULL));
    fault_often(&back);
    vellum_close(log);
    free(path);
}

static void (*set_before)(int, siginfo_t *, void *);
static int is_above_called;

/* A handler that was set over another one, and calls it. */
static void above(int number, siginfo_t *info, void *context)
{
    is_above_called++;
    set_before(number, info, context);
}

static void set_above(void)
{
    struct sigaction action, old;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = above;
    action.sa_flags = SA_SIGINFO;
    CHECK(sigaction(SIGBUS, &action, &old) == 0 && (old.sa_flags & SA_SIGINFO) != 0);
    set_before = old.sa_sigaction;
    OK(vellum_guard_bus_errors());
}

/* Whether a child that does `work` dies of the signal. */
static int dies(void (*work)(void))
{
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        work();
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS;
}

static void fault_twice_with_one_shot(void)
{
    set(jump, (int)SA_RESETHAND);
    OK(vellum_guard_bus_errors());
    if (sigsetjmp(back, 1) == 0)
        (void)*empty_page;
    CHECK(caught == 1);
    (void)*empty_page;
}

static void fault_with_loop(void)
{
    set(SIG_DFL, 0);
    OK(vellum_guard_bus_errors());
    set_above();
    (void)*empty_page;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    char *path = below(argv[1], "empty");
    int file = open(path, O_RDWR | O_CREAT, 0600);
    CHECK(file >= 0);
    empty_page = (volatile char *)mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    CHECK((void *)empty_page != MAP_FAILED);
    free(path);

    CHECK(dies(fault_twice_with_one_shot));
    caught = 0;

    set(jump, 0);
    OK(vellum_guard_bus_errors());
    both(argv[1], "jumps");

    /* On a stack for signals, where each one finds the same addresses. */
    static char memory[1 << 16];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory, .ss_flags = 0};
    CHECK(sigaltstack(&stack, NULL) == 0);
    set(jump, SA_ONSTACK);
    OK(vellum_guard_bus_errors());
    both(argv[1], "stack");

    /* Without putting the mask back. */
    set(jump_with_signal_open, SA_NODEFER);
    OK(vellum_guard_bus_errors());
    fault_often(NULL);
    in_threads(fault_often, NULL, NULL);

    set(leave_thread, 0);
    OK(vellum_guard_bus_errors());
    in_threads(fault_once, NULL, &back);

    /* The handler of before is called by one that was set over it, with Vellum's between and over. */
    set(jump, 0);
    OK(vellum_guard_bus_errors());
    set_above();
    both(argv[1], "above");
    CHECK(is_above_called > FAULTS);
    CHECK(dies(fault_with_loop));
    return 0;
}
