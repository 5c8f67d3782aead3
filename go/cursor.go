package vellum

// #include <stdlib.h>
// #include "bridge.h"
import "C"

import (
	"context"
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// Cursor is a named position in a log: its reader has finished everything before it. The position is
// stored with the log. Any number of goroutines may use it at once.
type Cursor struct {
	log     *Log
	handle  *cursorHandle
	cleanup runtime.Cleanup
}

type cursorHandle struct {
	log *core
	mu  sync.RWMutex
	c   *C.vellum_cursor // nil where it is closed
}

func (h *cursorHandle) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.c != nil {
		C.vellum_cursor_close(h.c)
		h.c = nil
	}
}

func (h *cursorHandle) drop() {
	h.close()
	h.log.drop(h)
}

// Cursor opens the cursor of this name; a new one is made at a position, or at the oldest record for
// 0, and holds nothing. A name has 1 to 64 letters, digits, '.', '_' and '-'. A log has up to 128
// cursors.
//
// Errors: [ErrInvalidOption] for another name; [ErrBusy] when the log has 128 cursors; [ErrNotFound]
// when the log was opened for reading only and has no such cursor; otherwise as for [Cursor.Set].
//
// On return a new cursor survives a power cut. Cost: a new one takes two syncs.
func (l *Log) Cursor(name string, at LSN) (*Cursor, error) {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	if err := l.users.enter(); err != nil {
		return nil, err
	}
	defer l.users.leave()
	var c *C.vellum_cursor
	_, err := l.slowly(func() C.vg_answer { return C.vg_cursor_open(l.c, text, C.uint64_t(at), &c) })
	if err != nil {
		return nil, err
	}
	handle := &cursorHandle{log: l.core, c: c}
	l.keep(handle)
	cursor := &Cursor{log: l, handle: handle}
	cursor.cleanup = runtime.AddCleanup(cursor, func(handle *cursorHandle) { handle.drop() }, handle)
	return cursor, nil
}

func (c *Cursor) slowly(call func(*C.vellum_cursor) C.vg_answer) (LSN, error) {
	return c.log.slowly(func() C.vg_answer { return c.handle.with(call) })
}

// with makes a call while the cursor is open; VELLUM_PENDING, which is [ErrClosed], where it is not.
func (h *cursorHandle) with(call func(*C.vellum_cursor) C.vg_answer) C.vg_answer {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.c == nil {
		return C.vg_answer{status: C.VELLUM_PENDING}
	}
	return call(h.c)
}

// Position is where the cursor is: the position of the first record that its reader has not
// finished.
//
// Errors: [ErrNotFound] when the cursor was removed; [ErrIO] and [ErrCorrupt] where its file cannot
// be read.
func (c *Cursor) Position() (LSN, error) {
	return outcome(context.Background(), c.handle.with(func(c *C.vellum_cursor) C.vg_answer {
		return C.vg_cursor_position(c)
	}))
}

// Commit moves the cursor forward to lsn: its reader has finished everything before. That is
// [Record.Next] of the last record that it has finished.
//
// Errors: [ErrOutOfRange] for a position before the cursor, beyond the end of the log, or (framed)
// where no record starts; [ErrBusy] when another handle owns the cursor; [ErrNotFound] when it was
// removed; [ErrReadOnly]; otherwise as for [Log.Commit].
//
// Durable: on return, the records before lsn and the cursor survive a power cut. Cost: a commit of
// the log if something before lsn is not durable, a write of 512 bytes, one fdatasync.
func (c *Cursor) Commit(lsn LSN) error {
	_, err := c.slowly(func(c *C.vellum_cursor) C.vg_answer {
		return C.vg_cursor_commit(c, C.uint64_t(lsn))
	})
	return err
}

// Set moves the cursor to any position of the log, forward or back; 0 is the oldest record.
//
// Errors: [ErrTrimmed] for a position that is no longer kept; otherwise as [Cursor.Commit].
func (c *Cursor) Set(lsn LSN) error {
	_, err := c.slowly(func(c *C.vellum_cursor) C.vg_answer {
		return C.vg_cursor_set(c, C.uint64_t(lsn))
	})
	return err
}

// Hold keeps the records from the cursor on from being removed: no more than maxBytes of them, and
// none older than maxAge, both counted in whole files; 0 is no limit. It lasts until [Cursor.Unhold]
// or [Cursor.Remove], whether the cursor is open or not.
//
// Errors: [ErrTrimmed] if records were removed in front of the cursor already; [ErrUnsupported] for
// an age in a framed log without [Envelope] that removes none by their age; otherwise as
// [Cursor.Set].
func (c *Cursor) Hold(maxBytes uint64, maxAge time.Duration) error {
	_, err := c.slowly(func(c *C.vellum_cursor) C.vg_answer {
		return C.vg_cursor_hold(c, C.uint64_t(maxBytes), seconds(maxAge))
	})
	return err
}

// Unhold keeps nothing from being removed any more. Errors: as [Cursor.Set].
func (c *Cursor) Unhold() error {
	_, err := c.slowly(func(c *C.vellum_cursor) C.vg_answer { return C.vg_cursor_unhold(c) })
	return err
}

// Own makes this process the owner of the cursor, so that no other handle can change it, until
// [Cursor.Disown], Close or the death of the process.
//
// Errors: [ErrBusy] when another handle owns it, here or in another process, which the message
// names; [ErrNotFound] when it was removed; [ErrReadOnly].
func (c *Cursor) Own() error {
	_, err := c.slowly(func(c *C.vellum_cursor) C.vg_answer { return C.vg_cursor_own(c) })
	return err
}

// Disown gives the cursor up, so that another process can own it.
func (c *Cursor) Disown() error {
	_, err := c.slowly(func(c *C.vellum_cursor) C.vg_answer { return C.vg_cursor_disown(c) })
	return err
}

// Reader makes a reader that starts at the cursor. Reading does not move the cursor.
//
// Errors: [ErrTrimmed] if records were removed in front of the cursor; then [Cursor.SkipOverrun]
// continues behind them. Otherwise as [Log.NewReader].
func (c *Cursor) Reader(options ...ReaderOption) (*Reader, error) {
	o := newReaderOptions(options)
	if o.flags != 0 {
		at, err := c.Position()
		if err != nil {
			return nil, err
		}
		return c.log.NewReader(at, options...)
	}
	return c.log.newReader(o, func(to **C.vg_reader) C.vg_answer {
		return c.handle.with(func(c *C.vellum_cursor) C.vg_answer { return C.vg_cursor_reader(c, to) })
	})
}

// SkipOverrun continues behind records that were removed in front of the cursor: it moves the
// cursor to the oldest record, counts the gap and returns it; nil if nothing was removed.
//
// Errors: as [Cursor.Set].
func (c *Cursor) SkipOverrun() (*Gap, error) {
	h := c.handle
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.c == nil {
		return nil, ErrClosed
	}
	gap := C.vellum_gap{struct_size: C.sizeof_vellum_gap}
	answer := C.vg_cursor_skip_overrun(h.c, &gap)
	if answer.status != C.VELLUM_OK {
		return nil, failure(answer)
	}
	left := gapOf(&gap)
	return &left, nil
}

// Remove removes the cursor from the log and closes it, whatever it returns. Errors: as
// [Cursor.Commit].
func (c *Cursor) Remove() error {
	c.cleanup.Stop()
	h := c.handle
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.c == nil {
		return ErrClosed
	}
	own := h.c
	h.c = nil
	defer h.log.drop(h)
	return failure(C.vg_cursor_remove(own))
}

// Close closes the cursor, which stays in the log.
func (c *Cursor) Close() error {
	c.cleanup.Stop()
	c.handle.drop()
	return nil
}
