package vellum

// #include "bridge.h"
import "C"

import (
	"io"
	"iter"
	"math"
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// Backwards is a place in a log, and the way to the record before it. One goroutine may use it at a
// time; Close may be called by any.
type Backwards struct {
	log     *Log
	handle  *backwardsHandle
	cleanup runtime.Cleanup
	buffer  []byte
}

type backwardsHandle struct {
	log *core
	mu  sync.Mutex
	c   *C.vellum_backwards // nil where it is closed
}

func (h *backwardsHandle) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.c != nil {
		C.vellum_backwards_close(h.c)
		h.c = nil
	}
}

func (h *backwardsHandle) drop() {
	h.close()
	h.log.drop(h)
}

// NewBackwards reads the records that start before a position, the newest first; 0 is all of them.
//
// Errors: [ErrIO] where a file cannot be read. Cost: the first record takes a walk over 64 KiB, of a
// framed log that is not committed over its last segment. The length of the log makes no difference.
func (l *Log) NewBackwards(before LSN) (*Backwards, error) {
	if err := l.users.enter(); err != nil {
		return nil, err
	}
	defer l.users.leave()
	if before == 0 {
		before = math.MaxUint64
	}
	handle := &backwardsHandle{log: l.core}
	if err := failure(C.vg_backwards_open(l.c, C.uint64_t(before), &handle.c)); err != nil {
		return nil, err
	}
	l.keep(handle)
	b := &Backwards{log: l, handle: handle}
	b.cleanup = runtime.AddCleanup(b, func(handle *backwardsHandle) { handle.drop() }, handle)
	return b, nil
}

// Next is the next older record, or [io.EOF] where the log begins. After io.EOF, and after an
// error, it is over. The record is lent until the next call.
//
// Errors: [ErrCorrupt] for damage, with file and position.
func (b *Backwards) Next() (Record, error) {
	h := b.handle
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.c == nil {
		return Record{}, ErrClosed
	}
	var head C.vg_head
	var data *C.uint8_t
	answer := C.vg_backwards_next(h.c, &head, &data)
	if answer.status == C.VELLUM_END {
		return Record{}, io.EOF
	} else if answer.error != nil {
		return Record{}, takeError(answer.error)
	}
	b.buffer = append(b.buffer[:0], unsafe.Slice((*byte)(unsafe.Pointer(data)), head.len)...)
	record := Record{
		LSN: LSN(head.lsn), Next: LSN(head.next_lsn), Data: b.buffer, Writer: uint64(head.writer),
	}
	if head.time_ns != 0 {
		record.Time = time.Unix(0, int64(head.time_ns))
	}
	return record, nil
}

// All yields the records, the newest first. An error comes as the last item.
func (b *Backwards) All() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for {
			record, err := b.Next()
			if err == io.EOF {
				return
			}
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}

// Close ends it.
func (b *Backwards) Close() error {
	b.cleanup.Stop()
	b.handle.drop()
	return nil
}
