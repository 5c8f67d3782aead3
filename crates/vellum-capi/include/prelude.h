/*
 * Vellum for C and C++: many threads of many processes append to one log, at the speed of memory.
 *
 *     vellum_log *log;
 *     if (vellum_open("app.log", NULL, &log) != VELLUM_OK) {
 *         fprintf(stderr, "%s\n", vellum_last_error_message());
 *         return 1;
 *     }
 *     uint64_t lsn;
 *     vellum_append(log, "a record", 8, &lsn);   // survives the death of this process
 *     vellum_commit(log, lsn);                   // survives a power cut
 *     vellum_close(log);
 *
 * What holds for every function:
 *
 * Results    A function that can fail returns an int: VELLUM_OK, which is 0, or another
 *            vellum_status. Then vellum_last_error_message() says in a sentence what was wrong.
 *            Answers come through the last arguments, which are written on VELLUM_OK only.
 * Handles    Whoever gets a handle closes it, by the function that its type names. Functions that
 *            close accept NULL, all others answer it with VELLUM_INVALID_ARGUMENT. What is made
 *            from a log keeps it open: handles are closed in any order.
 * Threads    A handle that is taken as const may be used by any number of threads at once; one that
 *            is not, by one thread at a time, whichever. Nobody uses a handle that is being closed.
 * Borrowing  A pointer that a function gives belongs to the library; its comment says until when
 *            it may be read. Data that a function is given is read before it returns, not after.
 * Positions  A record's position (LSN) is a byte position in the log: it grows, it may skip, and is
 *            never 0. Bytes are counted in size_t or uint64_t, times as their names say: _ns, _s.
 * Fork       After fork the child may go on with its copy of every log, reader and batch: it is a
 *            participant of its own from its first append on. Reservations, committers and keepers
 *            stay with the parent; the child makes its own. It may close all of them.
 * Signals    No function may be called from a signal handler. None ends early because of a signal,
 *            and none changes a signal's disposition.
 * Panics     A defect of the library ends as VELLUM_PANIC in the function that met it (and a line
 *            on the standard error); nothing is unwound into the caller.
 * Growth     Structures that begin with struct_size may get more fields. The caller sets it to the
 *            structure's sizeof, before the call: a program compiled with an older header goes on
 *            working, and one with a newer header does unless it asks for what is not there.
 */
#ifndef VELLUM_H
#define VELLUM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif
