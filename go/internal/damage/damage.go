// Package damage damages records of a log and has the rest saved, as `vellum repair` does. The package
// vellum has no way to do that.
package damage

// #cgo CFLAGS: -I${SRCDIR}/../..
// #include <stdlib.h>
// #include <vellum.h>
//
// static const char *repair(const char *from, const char *to) {
//     return vellum_repair(from, to, NULL, NULL) == VELLUM_OK ? NULL : vellum_last_error_message();
// }
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"vellum"
)

// The bytes before the first record of a file, and those before the payload of a record.
const (
	fileHeaderBytes   = 4096
	recordHeaderBytes = 8
)

// Repaired damages the records at these positions of the log at path, which is closed, and returns the
// path of a new log with all others.
func Repaired(t testing.TB, path string, records ...vellum.LSN) string {
	t.Helper()
	for _, record := range records {
		flip(t, path, record)
	}
	repaired := path + "-repaired"
	from, to := C.CString(path), C.CString(repaired)
	defer C.free(unsafe.Pointer(from))
	defer C.free(unsafe.Pointer(to))
	if message := C.repair(from, to); message != nil {
		t.Fatal(C.GoString(message))
	}
	return repaired
}

// flip changes the first byte of a record.
func flip(t testing.TB, path string, record vellum.LSN) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(path, "*.seg"))
	if err != nil {
		t.Fatal(err)
	}
	var segment string
	var offset int64
	for _, name := range names { // in the order of their positions
		var first vellum.LSN
		_, err := fmt.Sscanf(strings.TrimSuffix(filepath.Base(name), ".seg"), "%x", &first)
		if err == nil && first <= record {
			segment, offset = name, int64(record-first)+fileHeaderBytes+recordHeaderBytes
		}
	}
	file, err := os.OpenFile(segment, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var one [1]byte
	_, err = file.ReadAt(one[:], offset)
	one[0] ^= 1
	if err == nil {
		_, err = file.WriteAt(one[:], offset)
	}
	if err != nil {
		t.Fatal(err)
	}
}
