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
// processor is left to appends: Go takes that of a call of C away only after a while.
var leadersMax = min(2, max(1, runtime.GOMAXPROCS(0)-1))

// committer commits for many goroutines by few calls of C. One of the waiters leads, where its
// context cannot end; otherwise a goroutine does that lives until none waits.
type committer struct {
	mu      sync.Mutex
	waiting []*waiter
	syncing []*waiter
	leaders int
	// Whether the last commit was for several.
	isShared atomic.Bool
	bells    chan chan struct{}
}

// waiter is a call that waits until the record at lsn is durable, or for 0 until a sync has ended.
type waiter struct {
	lsn     LSN
	durable LSN
	err     error
	isOver  atomic.Bool
	// Gets a value when it is over: one of the bells of the log, or nil.
	bell chan struct{}
	// Held until it is over, where there is no bell.
	parked sync.Mutex
}

// bellsOfLog is how many calls wait by a channel. Those beyond wait for a mutex, which costs them more.
// All bells are made with the log: a channel belongs to the bubble of testing/synctest in which it was
// made, and one call may ring for another one that is in no bubble or another.
const bellsOfLog = 256

func newBells() (bells chan chan struct{}) {
	bells = make(chan chan struct{}, bellsOfLog)
	for range bellsOfLog {
		bells <- make(chan struct{}, 1)
	}
	return bells
}

func (c *committer) newWaiter(lsn LSN) *waiter {
	w := &waiter{lsn: lsn}
	select {
	case w.bell = <-c.bells:
	default:
		w.parked.Lock()
	}
	return w
}

// end reports the outcome, unless the wait has ended before.
func (w *waiter) end(durable LSN, err error) {
	if !w.isOver.CompareAndSwap(false, true) {
		return
	}
	w.durable, w.err = durable, err
	if w.bell != nil {
		w.bell <- struct{}{}
	} else {
		w.parked.Unlock()
	}
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
		// Refused at once, with the reason. It must not fail for the other waiters.
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
	own := c.newWaiter(lsn)
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
	return c.outcome(ctx, log, own)
}

// outcome waits for the outcome of the commit.
func (c *committer) outcome(ctx context.Context, log *core, w *waiter) (LSN, error) {
	if log.timeout > 0 {
		timer := time.AfterFunc(log.timeout, func() { w.end(0, commitTimedOut(log, w.lsn)) })
		defer timer.Stop()
	}
	switch {
	case w.bell != nil:
		select {
		case <-w.bell:
		case <-ctx.Done():
			w.end(0, ctx.Err())
			<-w.bell
		}
		c.bells <- w.bell
	case ctx.Done() != nil:
		stop := context.AfterFunc(ctx, func() { w.end(0, ctx.Err()) })
		defer stop()
		w.parked.Lock()
	default:
		w.parked.Lock()
	}
	return w.durable, w.err
}

func commitTimedOut(log *core, lsn LSN) error {
	return &Error{
		Code: ErrTimedOut, LSN: lsn, Path: log.path,
		Message: "commit the records of " + log.path + ": another process holds what it needs" +
			" for longer than the time-out; what was appended is in the log as before",
	}
}

// lead has a goroutine commit until none waits. It is a user of the log of its own: the one that
// has started it may give up before.
func (c *committer) lead(log *core) {
	log.users.count.Add(1)
	go func() {
		defer log.users.leave()
		for c.step(log, 2) {
		}
	}()
}

// leadFor commits on this goroutine until its own waiter has its outcome; then another one leads.
func (c *committer) leadFor(log *core, own *waiter) {
	for !own.isOver.Load() {
		if !c.step(log, 1) {
			return
		}
	}
	c.handOver(log)
}

// handOver ends the lead of this goroutine: another one leads where any wait.
func (c *committer) handOver(log *core) {
	c.mu.Lock()
	isLast := len(c.waiting)+len(c.syncing) == 0
	if isLast {
		c.leaders--
	} else {
		c.isShared.Store(true)
	}
	c.mu.Unlock()
	if !isLast {
		c.lead(log)
	}
}

// isAlone reports whether no others are about to commit: there are no more users than these, and the
// last commit was for one.
func (c *committer) isAlone(log *core, users int64) bool {
	return log.users.count.Load() <= users && !c.isShared.Load()
}

// gather lets goroutines append first that are about to: a commit takes as long for many as for
// one. Without it the goroutines that one commit has released miss the next one, so that each
// serves half of them. One that commits alone does not: it would wait behind all goroutines of the
// program that can run.
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

// step commits for all waiters, in one call of C. It gives the lead up, and reports that, where
// none waits. The users are those that a commit for one has.
func (c *committer) step(log *core, users int64) bool {
	if !c.isAlone(log, users) {
		c.gather()
	}
	c.mu.Lock()
	count := len(c.waiting) + len(c.syncing)
	if count == 0 {
		c.leaders--
		c.mu.Unlock()
		return false
	}
	c.isShared.Store(count > 1)
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
	_ = c.settle(log, syncing, target, answer)
	return true
}

// settle gives the waiters the outcome, and returns the error. The answer's is freed.
func (c *committer) settle(log *core, syncing []*waiter, target LSN, answer C.vg_answer) error {
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
		// A position that is not there any more is the fault of the caller that asked for it.
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
	return err
}
