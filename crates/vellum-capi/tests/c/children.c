/* Children that close the log of their parent, whether they have used it or not, and end as programs
 * do: with everything given back. The argument is a directory to work in. */
#define _POSIX_C_SOURCE 200809L

#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void in_child(vellum_log *log, int appends)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (appends)
            OK(vellum_append(log, "child", 5, NULL));
        vellum_close(log);
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    char *path = below(argv[1], "children");
    vellum_log *log;
    OK(vellum_open(path, NULL, &log));
    OK(vellum_append(log, "parent", 6, NULL));
    in_child(log, 0);
    in_child(log, 1);
    vellum_close(log);
    free(path);
    return 0;
}
