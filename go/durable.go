package vellum

// #cgo noescape vg_append_durable
// #cgo nocallback vg_append_durable
// #cgo noescape vg_append_batch_durable
// #cgo nocallback vg_append_batch_durable
// #include "bridge.h"
import "C"

import (
	"context"
	"errors"
	"slices"
	"time"
)

// AppendDurable appends one record and makes it survive a power cut. Any number of goroutines share
// the writes of the device.
//
// Errors: as for [Log.Append] and [Log.Commit]. After an error of the commit, and when ctx has ended
// meanwhile, the record may be in the log; its position is returned with the error then.
//
// Cost: that of [Log.Append] and [Log.Commit]. It is one call of C where no other goroutine uses the
// log and ctx cannot end.
func (l *Log) AppendDurable(ctx context.Context, record []byte) (LSN, error) {
	return l.appendDurable(ctx, func(commits bool) (LSN, C.vg_answer) {
		if commits {
			answer := C.vg_append_durable(l.c, bytesOf(record), C.size_t(len(record)))
			return LSN(answer.value), answer
		}
		answer := C.vg_append(l.c, bytesOf(record), C.size_t(len(record)))
		return LSN(answer.other), answer
	})
}

// AppendDurable is as [Batch.AppendEach], and makes the records survive a power cut: as
// [Log.AppendDurable], once for all records. After an error of the commit the records may be in the
// log; their positions are returned with the error then.
func (b *Batch) AppendDurable(ctx context.Context) ([]LSN, error) {
	defer b.Discard()
	if err := b.check(); err != nil {
		return nil, err
	} else if b.count == 0 {
		return b.AppendEach(ctx) // which says that there is nothing
	}
	lsns := make([]LSN, b.count)
	lsn, err := b.log.appendDurable(ctx, func(commits bool) (LSN, C.vg_answer) {
		if commits {
			answer := b.callDurable(lsns)
			return slices.Max(lsns), answer
		}
		answer := b.call(lsns)
		return LSN(answer.other), answer
	})
	if lsn == 0 && err != nil {
		return nil, err
	}
	return lsns, err
}

// adding is a call that appends, and commits on request. It returns up to where that is to be.
type adding func(commits bool) (LSN, C.vg_answer)

// appendDurable appends and commits. Where this goroutine alone uses the log, one call does both.
func (l *core) appendDurable(ctx context.Context, call adding) (LSN, error) {
	if err := l.users.enter(); err != nil {
		return 0, err
	}
	defer l.users.leave()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if ctx.Done() == nil && l.timeout <= 0 && l.commits.leadAlone(l) {
		return l.appendAlone(call)
	}
	if err := l.appends.enter(ctx); err != nil {
		return 0, err
	}
	target, answer := call(false)
	l.appends.leave()
	return l.appended(ctx, call, target, answer)
}

// appended repeats an append where it is to be repeated, and commits.
func (l *core) appended(ctx context.Context, call adding, target LSN, answer C.vg_answer) (LSN, error) {
	if answer.status != C.VELLUM_OK {
		target, answer = l.repeated(ctx, call, answer)
	}
	lsn, err := outcome(ctx, answer)
	if err == nil && target != 0 {
		_, err = l.commits.wait(ctx, l, target)
	}
	return lsn, err
}

func (l *core) repeated(ctx context.Context, call adding, answer C.vg_answer) (target LSN, _ C.vg_answer) {
	answer = l.again(ctx, answer, time.Now(), &l.appends, func() (again C.vg_answer) {
		target, again = call(false)
		return again
	})
	return target, answer
}

// leadAlone has the only goroutine that uses the log lead, and reports whether it is that.
func (c *committer) leadAlone(log *core) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaders > 0 || len(c.waiting)+len(c.syncing) > 0 || !c.isAlone(log, 1) {
		return false
	}
	c.leaders++
	return true
}

// appendAlone appends and commits with one call, as a leader.
func (l *core) appendAlone(call adding) (LSN, error) {
	target, answer := call(true)
	hasAppended := answer.value != 0 || answer.status == C.VELLUM_OK
	var err error
	if hasAppended {
		err = l.commits.settle(l, nil, target, answer)
	}
	l.commits.handOver(l)
	if !hasAppended {
		return l.appended(context.Background(), call, 0, answer)
	} else if errors.Is(err, ErrTimedOut) {
		// The commit waits for another process, as those of others do.
		_, err = l.commits.wait(context.Background(), l, target)
	}
	return LSN(answer.value), err
}
