package vellum

// #include <stdlib.h>
// #include "bridge.h"
import "C"

import (
	"io/fs"
	"os"
	"syscall"
)

// Code is the kind of an [Error]. It is an error itself, for [errors.Is]. The numbers are those of
// vellum_status in vellum.h.
type Code int

// The codes. Others may be added: treat one that is not known as [ErrIO].
const (
	// ErrIO: the operating system refused, for a reason without a code of its own.
	ErrIO Code = C.VELLUM_IO
	// ErrNoSpace: the disk, the quota or the file-size limit is exhausted. Nothing was reserved.
	ErrNoSpace Code = C.VELLUM_NO_SPACE
	// ErrNotFound: there is no log at this path. Also [fs.ErrNotExist].
	ErrNotFound Code = C.VELLUM_NOT_FOUND
	// ErrAlreadyExists: a new log was asked for, and one is there. Also [fs.ErrExist].
	ErrAlreadyExists Code = C.VELLUM_ALREADY_EXISTS
	// ErrPermissionDenied: the permissions of the log do not allow this. Also [fs.ErrPermission].
	ErrPermissionDenied Code = C.VELLUM_PERMISSION_DENIED
	// ErrReadOnly: the log was opened for reading only.
	ErrReadOnly Code = C.VELLUM_READ_ONLY
	// ErrUnsupported: the filesystem, the kernel or the log's layout cannot do this.
	ErrUnsupported Code = C.VELLUM_UNSUPPORTED
	// ErrInvalidOption: an option is out of range, or the log has another kind of records.
	ErrInvalidOption Code = C.VELLUM_INVALID_OPTION
	// ErrTooLarge: the record or batch is longer than 4 GiB - 1.
	ErrTooLarge Code = C.VELLUM_RECORD_TOO_LARGE
	// ErrTooManyParticipants: 1024 processes are attached, and there is no room for more.
	ErrTooManyParticipants Code = C.VELLUM_TOO_MANY_PARTICIPANTS
	// ErrTrimmed: the position has been trimmed away. Continue at [Log.Begin].
	ErrTrimmed Code = C.VELLUM_TRIMMED
	// ErrOutOfRange: the position is beyond the end, or is not the start of a record.
	ErrOutOfRange Code = C.VELLUM_OUT_OF_RANGE
	// ErrCorrupt: the log holds bytes that no crash explains. `vellum repair` saves the rest.
	ErrCorrupt Code = C.VELLUM_CORRUPT
	// ErrIncompatible: not a log, or a log of another format version.
	ErrIncompatible Code = C.VELLUM_INCOMPATIBLE
	// ErrExhausted: the positions of the log, 16 PiB, are used up.
	ErrExhausted Code = C.VELLUM_EXHAUSTED
	// ErrAbandoned: a reservation was incomplete; its space is passed over.
	ErrAbandoned Code = C.VELLUM_ABANDONED
	// ErrBusy: the log is in use in a way that excludes this.
	ErrBusy Code = C.VELLUM_BUSY
	// ErrPoisoned: a write or sync failed before. Nothing more can be made durable until every
	// process has closed the log and one has opened it again.
	ErrPoisoned Code = C.VELLUM_POISONED
	// ErrTimedOut: another process held what the call needs for longer than [Timeout]. The call
	// has changed nothing. Also [os.ErrDeadlineExceeded].
	ErrTimedOut Code = C.VELLUM_TIMED_OUT
	// ErrRemoved: the log's directory was removed or moved while the log was open.
	ErrRemoved Code = C.VELLUM_REMOVED
	// ErrRewound: a [Position] was taken before a power cut or a truncation took back what was
	// there. The error's LSN is from where on the log may differ, or 0 where that is not known.
	ErrRewound Code = C.VELLUM_REWOUND
	// ErrOtherLog: a [Position] is of another log.
	ErrOtherLog Code = C.VELLUM_OTHER_LOG
	// ErrNoShipper: no process ships the log.
	ErrNoShipper Code = C.VELLUM_NO_SHIPPER
	// ErrFenced: another machine, or another copy of the log, is shipped there now.
	ErrFenced Code = C.VELLUM_FENCED
	// ErrInUse: another handle has the log open for writing, and one of the two wants to be the
	// only one ([Exclusive], [WAL]). The message names its process.
	ErrInUse Code = C.VELLUM_IN_USE
	// ErrInvalidArgument: a number makes no sense.
	ErrInvalidArgument Code = C.VELLUM_INVALID_ARGUMENT
	// ErrPanic: a defect of the library. Close the log; please report it.
	ErrPanic Code = C.VELLUM_PANIC
	// ErrClosed: the log, reader, batch or cursor is closed. Also [os.ErrClosed].
	ErrClosed Code = -1
)

// Error is the meaning of a code, in a few words.
func (c Code) Error() string {
	if c == ErrClosed {
		return "vellum: the log is closed"
	}
	return "vellum: " + C.GoString(C.vellum_strerror(C.int(c)))
}

// Is reports whether target is the error of the standard library with the same meaning.
func (c Code) Is(target error) bool {
	switch c {
	case ErrNotFound:
		return target == fs.ErrNotExist
	case ErrAlreadyExists:
		return target == fs.ErrExist
	case ErrPermissionDenied:
		return target == fs.ErrPermission
	case ErrTimedOut:
		return target == os.ErrDeadlineExceeded
	case ErrClosed:
		return target == os.ErrClosed
	}
	return false
}

// Error is the error of the functions of this package.
type Error struct {
	// Code is the kind of error. errors.Is finds it.
	Code Code
	// LSN is the position that the error is about, or 0.
	LSN LSN
	// Path is the file or directory that the error is about, or "".
	Path string
	// Errno is the error number of the operating system, or 0. errors.Is and errors.As find it.
	Errno syscall.Errno
	// Message is a sentence: the operation, the file, and the remedy.
	Message string
}

func (e *Error) Error() string { return "vellum: " + e.Message }

// Is reports whether target is the error's [Code], or an error of the standard library with the
// same meaning.
func (e *Error) Is(target error) bool {
	if code, ok := target.(Code); ok {
		return e.Code == code
	}
	return e.Code.Is(target)
}

// Unwrap gives the errno of the operating system, where there is one.
func (e *Error) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

// takeError copies an error of C and frees it.
func takeError(from *C.vg_error) error {
	if from == nil {
		return nil
	}
	defer C.vg_error_free(from)
	return &Error{
		Code:    Code(from.status),
		LSN:     LSN(from.lsn),
		Path:    textOf(from.path),
		Errno:   syscall.Errno(from.os_errno),
		Message: textOf(from.message),
	}
}

// failure is the error of an answer, or nil. Where there is one, the answer's is freed.
func failure(answer C.vg_answer) error { return takeError(answer.error) }

func textOf(text *C.char) string {
	if text == nil {
		return ""
	}
	return C.GoString(text)
}
