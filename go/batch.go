package vellum

// #include "bridge.h"
import "C"

import (
	"context"
	"encoding/binary"
	"math"
	"time"
	"unsafe"
)

// Batch is records that are appended together: readers see all of them or none, one after the other
// with nothing between, also after the death of any process. One goroutine may use it at a time.
//
// A batch is in Go's memory until it is appended, by one call of C. It may be used again then: its
// memory stays for the next records.
type Batch struct {
	log     *Log
	records []byte // each behind its length
	count   int
	isLong  bool
}

// NewBatch makes an empty batch.
func (l *Log) NewBatch() *Batch { return &Batch{log: l} }

// Push adds a record, which is copied.
func (b *Batch) Push(record []byte) {
	if uint64(len(record)) > math.MaxUint32 {
		// Appending it says so.
		b.isLong = true
		return
	}
	b.records = binary.NativeEndian.AppendUint32(b.records, uint32(len(record)))
	b.records = append(b.records, record...)
	b.count++
}

// Len is how many records the batch has.
func (b *Batch) Len() int { return b.count }

// Discard empties the batch without appending anything.
func (b *Batch) Discard() { b.records, b.count, b.isLong = b.records[:0], 0, false }

// Append appends all records of the batch and returns the position of the first. The batch is empty
// then, also after an error.
//
// Errors, durability and cost as for [Log.Append], once for all records; [ErrInvalidOption] for a
// batch without records, [ErrTooLarge] for one that takes more than 4 GiB - 1. After an error none
// of them is in the log.
func (b *Batch) Append(ctx context.Context) (LSN, error) {
	return b.append(ctx, nil)
}

// AppendEach is as Append, and returns the position of each record.
func (b *Batch) AppendEach(ctx context.Context) ([]LSN, error) {
	lsns := make([]LSN, b.count)
	if _, err := b.append(ctx, lsns); err != nil {
		return nil, err
	}
	return lsns, nil
}

func (b *Batch) append(ctx context.Context, lsns []LSN) (LSN, error) {
	defer b.Discard()
	if err := b.check(); err != nil {
		return 0, err
	}
	l := b.log.core
	if err := l.enter(ctx, &l.appends); err != nil {
		return 0, err
	}
	answer := b.call(lsns)
	l.appends.leave()
	if answer.status != C.VELLUM_OK {
		answer = l.again(ctx, answer, time.Now(), &l.appends, func() C.vg_answer { return b.call(lsns) })
	}
	l.users.leave()
	return outcome(ctx, answer)
}

func (b *Batch) check() error {
	if b.isLong {
		return &Error{Code: ErrTooLarge, Path: b.log.path, Message: "a record of the batch has more than 4 GiB - 1"}
	}
	return nil
}

func (b *Batch) call(lsns []LSN) C.vg_answer {
	each := (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(lsns)))
	return C.vg_append_batch(b.log.c, bytesOf(b.records), C.size_t(len(b.records)), each, C.size_t(len(lsns)))
}

func (b *Batch) callDurable(lsns []LSN) C.vg_answer {
	each := (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(lsns)))
	return C.vg_append_batch_durable(b.log.c, bytesOf(b.records), C.size_t(len(b.records)), each, C.size_t(len(lsns)))
}
