package vellum

// #cgo nocallback vg_place_of
// #cgo nocallback vg_commit
// #cgo nocallback vg_sync
// #include "bridge.h"
import "C"

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// leadersMax is how many goroutines of a log commit at the same time, each with a thread that waits
// for the device. The second one begins a group of records while the first one is on its way. One
// processor is left to those who append: Go takes that of a call of C away only after a while.
var leadersMax = min(2, max(1, runtime.GOMAXPROCS(0)-1))

// committer makes what many goroutines wait for durable, by few calls of C. One of those who wait
// leads, where its context cannot end; otherwise a goroutine does that lives until nobody waits.
type committer struct {
	mu      sync.Mutex
	waiting []*waiter
	syncing []*waiter
	leaders int
}

// waiter is a call that waits until a record is durable, or for 0 until everything published is.
type waiter struct {
	lsn     LSN
	durable LSN
	err     error
	isOver  atomic.Bool
	// Held until it is over. No channel: that would belong to the bubble of testing/synctest in which it
	// was made, and what ends the wait may be outside.
	parked sync.Mutex
}

func newWaiter(lsn LSN) *waiter {
	w := &waiter{lsn: lsn}
	w.parked.Lock()
	return w
}

// end says what has come of it, unless the wait has ended before.
func (w *waiter) end(durable LSN, err error) {
	if w.isOver.CompareAndSwap(false, true) {
		w.durable, w.err = durable, err
		w.parked.Unlock()
	}
}

// AppendDurable appends one record and makes it survive a power cut. Any number of goroutines share
// the writes of the device.
//
// Errors: as for [Log.Append] and [Log.Commit]. After an error of the commit, and when ctx has ended
// meanwhile, the record may be in the log; its position is returned with the error then.
func (l *Log) AppendDurable(ctx context.Context, record []byte) (LSN, error) {
	lsn, err := l.Append(ctx, record)
	if err == nil {
		err = l.Commit(ctx, lsn)
	}
	return lsn, err
}

// Commit makes the record at lsn, and everything before it, survive a power cut. ctx ends the wait
// and never the commit.
//
// Errors: [ErrOutOfRange] for a position beyond the end; [ErrPoisoned] after a failed write or sync,
// for every caller in every process, because nothing is tried again; [ErrTimedOut]; that of ctx.
//
// Cost: about one write of the device, which all goroutines of all processes share. Nothing but a
// read of memory where the record is durable already.
func (l *Log) Commit(ctx context.Context, lsn LSN) error {
	if err := l.users.enter(); err != nil {
		return err
	}
	defer l.users.leave()
	switch C.vg_place_of(l.c, C.uint64_t(lsn)) {
	case C.VG_DURABLE:
		return nil
	case C.VG_BEYOND:
		// Refused at once, with the reason. It must not fail for those who wait with it.
		return failure(C.vg_commit(l.c, C.uint64_t(lsn)))
	}
	_, err := l.commits.wait(ctx, l.core, lsn)
	return err
}

// Sync makes every record survive a power cut whose append had returned, in any goroutine of any
// process, and returns the durable end. A record ends there, so [Log.NewReader] and [Log.Trim] take
// it. It waits for appends that are in progress in front of these records.
//
// Errors and cost: as for [Log.Commit].
func (l *Log) Sync(ctx context.Context) (durable LSN, err error) {
	if err := l.users.enter(); err != nil {
		return 0, err
	}
	defer l.users.leave()
	return l.commits.wait(ctx, l.core, 0)
}

// wait waits until the record at lsn is durable, or for 0 until all that was appended is.
func (c *committer) wait(ctx context.Context, log *core, lsn LSN) (LSN, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	own := newWaiter(lsn)
	c.mu.Lock()
	if lsn == 0 {
		c.syncing = append(c.syncing, own)
	} else {
		c.waiting = append(c.waiting, own)
	}
	leads := c.leaders < leadersMax
	if leads {
		c.leaders++
	}
	c.mu.Unlock()
	if leads && ctx.Done() == nil && log.timeout <= 0 {
		c.leadFor(log, own)
	} else if leads {
		c.lead(log)
	}
	return own.outcome(ctx, log)
}

// outcome waits for what comes of it.
func (w *waiter) outcome(ctx context.Context, log *core) (LSN, error) {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { w.end(0, ctx.Err()) })
		defer stop()
	}
	if log.timeout > 0 {
		timer := time.AfterFunc(log.timeout, func() { w.end(0, commitTimedOut(log, w.lsn)) })
		defer timer.Stop()
	}
	w.parked.Lock()
	return w.durable, w.err
}

func commitTimedOut(log *core, lsn LSN) error {
	return &Error{
		Code: ErrTimedOut, LSN: lsn, Path: log.path,
		Message: "commit the records of " + log.path + ": another process holds what it needs" +
			" for longer than the time-out; what was appended is in the log as before",
	}
}

// lead has a goroutine commit until nobody waits. It is a user of the log of its own: the one that
// has started it may give up before.
func (c *committer) lead(log *core) {
	log.users.count.Add(1)
	go func() {
		defer log.users.leave()
		for c.step(log) {
		}
	}()
}

// leadFor commits on this goroutine until its own waiter has its outcome; then another one leads.
func (c *committer) leadFor(log *core, own *waiter) {
	for !own.isOver.Load() {
		if !c.step(log) {
			return
		}
	}
	c.mu.Lock()
	isLast := len(c.waiting)+len(c.syncing) == 0
	if isLast {
		c.leaders--
	}
	c.mu.Unlock()
	if !isLast {
		c.lead(log)
	}
}

// gather lets those append first who are about to: a commit takes as long for many as for one. Without
// it the goroutines that one commit has released miss the next one, so that each serves half of them.
func (c *committer) gather() {
	for before := 0; ; runtime.Gosched() {
		c.mu.Lock()
		count := len(c.waiting) + len(c.syncing)
		c.mu.Unlock()
		if count <= before {
			return
		}
		before = count
	}
}

// step commits what is waited for, in one call of C. It gives the lead up, and reports that, where
// nobody waits.
func (c *committer) step(log *core) bool {
	c.gather()
	c.mu.Lock()
	if len(c.waiting)+len(c.syncing) == 0 {
		c.leaders--
		c.mu.Unlock()
		return false
	}
	syncing := c.syncing
	c.syncing = nil
	var target LSN
	for _, waiter := range c.waiting {
		target = max(target, waiter.lsn)
	}
	c.mu.Unlock()
	var answer C.vg_answer
	if len(syncing) > 0 {
		answer = C.vg_sync(log.c)
	} else {
		answer = C.vg_commit(log.c, C.uint64_t(target))
	}
	c.settle(log, syncing, target, answer)
	return true
}

// settle tells those who waited what has come of it.
func (c *committer) settle(log *core, syncing []*waiter, target LSN, answer C.vg_answer) {
	durable := LSN(answer.other)
	isAgain := answer.status == C.VELLUM_TIMED_OUT
	err := failure(answer)
	if isAgain && log.users.isClosing() {
		isAgain, err = false, ErrClosed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	isOver := func(waiter *waiter) bool { return waiter.isOver.Load() }
	if isAgain {
		c.syncing = append(c.syncing, slices.DeleteFunc(syncing, isOver)...)
	} else {
		for _, waiter := range syncing {
			waiter.end(LSN(answer.value), err)
		}
	}
	rest := c.waiting[:0]
	for _, waiter := range c.waiting {
		// A position that is not there any more is the fault of who asked for it.
		hasFailed := err != nil && !isAgain && waiter.lsn <= target &&
			(answer.status != C.VELLUM_OUT_OF_RANGE || waiter.lsn == target)
		switch {
		case durable > waiter.lsn:
			waiter.end(durable, nil)
		case hasFailed && len(syncing) == 0:
			waiter.end(0, err)
		case isAgain && isOver(waiter):
		default:
			rest = append(rest, waiter)
		}
	}
	clear(c.waiting[len(rest):])
	c.waiting = rest
}
