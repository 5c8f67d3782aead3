// Package plain makes the same calls from C, with nothing of Go between.
package plain

// #cgo CFLAGS: -I${SRCDIR}/../..
// #include <stdlib.h>
// #include <string.h>
// #include <vellum.h>
//
// static vellum_log *open_log(const char *path, uint32_t kind) {
//     vellum_options options;
//     vellum_options_init(&options, sizeof options);
//     options.kind = kind;
//     vellum_log *log = NULL;
//     vellum_open(path, &options, &log);
//     return log;
// }
// static uint64_t append(vellum_log *log, size_t size, int count, int commits) {
//     static char record[1 << 20];
//     uint64_t lsn = 0;
//     for (int i = 0; i < count; i++) {
//         if (vellum_append(log, record, size, &lsn) != 0 || (commits && vellum_commit(log, lsn) != 0))
//             abort();
//     }
//     return lsn;
// }
// static int read_all(vellum_log *log) {
//     vellum_reader *reader;
//     vellum_record record;
//     int count = 0;
//     if (vellum_reader_open(log, 0, &reader) != 0)
//         abort();
//     while (vellum_reader_next(reader, &record) == 0)
//         count++;
//     vellum_reader_close(reader);
//     return count;
// }
import "C"

import "unsafe"

// Log is an open log.
type Log struct{ c *C.vellum_log }

// Open opens a log, as a write-ahead log or as one of events.
func Open(path string, isWAL bool) Log {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	kind := C.uint32_t(C.VELLUM_KIND_EVENTS)
	if isWAL {
		kind = C.VELLUM_KIND_WAL
	}
	return Log{C.open_log(name, kind)}
}

// Append appends so many records of a size, and commits each where it is to.
func (l Log) Append(size, count int, commits bool) {
	isCommit := C.int(0)
	if commits {
		isCommit = 1
	}
	C.append(l.c, C.size_t(size), C.int(count), isCommit)
}

// ReadAll reads all records and returns how many there are.
func (l Log) ReadAll() int { return int(C.read_all(l.c)) }

// Close closes the log.
func (l Log) Close() { C.vellum_close(l.c) }
