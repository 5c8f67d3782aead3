// Package hold reserves space in a log and keeps it: the hold of a process that is stuck. The
// package vellum has no way to do that.
package hold

// #cgo CFLAGS: -I${SRCDIR}/../..
// #include <stdlib.h>
// #include <vellum.h>
//
// static const char *hold(const char *path) {
//     vellum_log *log;
//     vellum_reservation *reservation;
//     if (vellum_open(path, NULL, &log) != VELLUM_OK || vellum_reserve(log, 100, &reservation) != VELLUM_OK)
//         return vellum_last_error_message();
//     return NULL;
// }
import "C"

import (
	"errors"
	"unsafe"
)

// Space reserves space at the end of the log at path, until the process ends.
func Space(path string) error {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	if message := C.hold(name); message != nil {
		return errors.New(C.GoString(message))
	}
	return nil
}
