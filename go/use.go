package vellum

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// closedBit marks a log that is being closed, in the count of its users.
const closedBit = 1 << 62

// users counts the calls that use a log, so that it is closed when the last of them has ended.
type users struct {
	count   atomic.Int64
	closing chan struct{} // closed when no call may come in any more
	inUse   *sync.Mutex   // held until all have left
}

func newUsers() users {
	inUse := new(sync.Mutex)
	inUse.Lock()
	return users{closing: make(chan struct{}), inUse: inUse}
}

// enter lets a call in, which is to leave; or says that the log is closed.
func (u *users) enter() error {
	if u.count.Add(1)&closedBit != 0 {
		u.leave()
		return ErrClosed
	}
	return nil
}

func (u *users) leave() {
	if u.count.Add(-1) == closedBit {
		// Late comers enter and leave too, so this may come more than once.
		if u.count.CompareAndSwap(closedBit, closedBit|closedBit>>1) {
			u.inUse.Unlock()
		}
	}
}

// close keeps new calls out and waits for those that are in. It is called once. No call waits where
// the log was forgotten, and a channel may belong to a bubble of testing/synctest that is over.
func (u *users) close(wasForgotten bool) {
	u.count.Or(closedBit)
	if !wasForgotten {
		close(u.closing)
	}
	u.count.Add(1)
	u.leave()
	u.inUse.Lock()
}

// isClosing reports whether no call may come in any more.
func (u *users) isClosing() bool { return u.count.Load()&closedBit != 0 }

// gate lets a limited number of calls into C at the same time. A call that waits there for the
// device holds a thread; without the gate ten thousand goroutines would make ten thousand threads.
type gate struct {
	count  atomic.Int64 // calls that are in, and calls that wait
	limit  int64
	tokens chan struct{} // a place for a waiter
}

func newGate() gate {
	limit := max(16, 2*runtime.GOMAXPROCS(0))
	return gate{limit: int64(limit), tokens: make(chan struct{}, limit)}
}

// enter waits until there is a place, or until ctx ends.
func (g *gate) enter(ctx context.Context) error {
	if g.count.Add(1) <= g.limit {
		return nil
	}
	select {
	case <-g.tokens:
		return nil
	case <-ctx.Done():
	}
	for {
		count := g.count.Load()
		if count <= g.limit {
			// Each waiter has been given a place: take it and give it back.
			<-g.tokens
			g.leave()
			return ctx.Err()
		}
		if g.count.CompareAndSwap(count, count-1) {
			return ctx.Err()
		}
	}
}

func (g *gate) leave() {
	if g.count.Add(-1) >= g.limit {
		g.tokens <- struct{}{}
	}
}
