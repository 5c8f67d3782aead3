package vellumqueue

import (
	"container/heap"
	"slices"
	"time"

	"vellum"
)

// flight is the messages that are in memory: before front, and not acknowledged.
type flight struct {
	front   vellum.LSN
	entries map[vellum.LSN]*entry
	// order has the positions of entries, growing, and of some that are not there any more.
	order []vellum.LSN
	ready readyHeap
	// lines has for each key the message that may be given out, and those that wait behind.
	lines map[string]*line
	// acked is the messages behind front that were acknowledged in an earlier life of the queue.
	acked  positionSet
	leases uint64
	// untimed has those whose timers are to be set anew, and alarms counts the timers.
	untimed []*entry
	alarms  uint64
}

// entry is a message in memory, without its data.
type entry struct {
	lsn      vellum.LSN
	key      string
	lease    uint64 // 0 where it has no holder
	attempts int
	timer    *time.Timer
	delay    time.Duration // until it comes again, from when its timer is set
	alarm    uint64        // of the timer that counts, 0 for none
	isHeld   bool          // it waits behind another one of its key
	isReady  bool
	isAcking bool
	isGone   bool
	isTimed  bool // its timer is as it should be
}

type line struct{ waiting []*entry }

func newFlight(front vellum.LSN) flight {
	return flight{front: front, entries: map[vellum.LSN]*entry{}, lines: map[string]*line{}}
}

// add takes in the message at lsn, which is behind all others. It is held where another one of its
// key comes first.
func (f *flight) add(lsn vellum.LSN, key string) *entry {
	e := &entry{lsn: lsn, key: key, isTimed: true}
	f.entries[lsn] = e
	f.order = append(f.order, lsn)
	if key == "" {
		return e
	}
	if first := f.lines[key]; first != nil {
		e.isHeld = true
		first.waiting = append(first.waiting, e)
	} else {
		f.lines[key] = &line{}
	}
	return e
}

// remove takes a message out, and makes the next one of its key ready.
func (f *flight) remove(lsn vellum.LSN) {
	e := f.entries[lsn]
	if e == nil {
		return
	}
	delete(f.entries, lsn)
	e.isGone, e.lease = true, 0
	f.after(e, 0)
	if e.key != "" {
		f.leave(e)
	}
	f.compact()
}

// leave takes a message out of the line of its key.
func (f *flight) leave(e *entry) {
	own := f.lines[e.key]
	switch {
	case e.isHeld:
		own.waiting = slices.DeleteFunc(own.waiting, func(other *entry) bool { return other == e })
	case len(own.waiting) == 0:
		delete(f.lines, e.key)
	default:
		next := own.waiting[0]
		own.waiting = own.waiting[1:]
		next.isHeld = false
		f.makeReady(next)
	}
}

// compact forgets positions of messages that are not there any more.
func (f *flight) compact() {
	for len(f.order) > 0 && f.entries[f.order[0]] == nil {
		f.order = f.order[1:]
	}
	if len(f.order) > 2*len(f.entries)+64 {
		kept := make([]vellum.LSN, 0, 2*len(f.entries))
		for _, lsn := range f.order {
			if f.entries[lsn] != nil {
				kept = append(kept, lsn)
			}
		}
		f.order = kept
	}
}

func (f *flight) oldest() (vellum.LSN, bool) {
	if len(f.order) == 0 {
		return 0, false
	}
	return f.order[0], true
}

// floor is where the oldest message is that was not acknowledged.
func (f *flight) floor() vellum.LSN {
	if oldest, ok := f.oldest(); ok {
		return oldest
	}
	return f.front
}

func (f *flight) makeReady(e *entry) {
	if !e.isReady {
		e.isReady = true
		heap.Push(&f.ready, e)
	}
}

// popReady takes the oldest message that may be given out; in order only the oldest of all.
func (f *flight) popReady(inOrder bool) *entry {
	for f.ready.Len() > 0 {
		if oldest, _ := f.oldest(); inOrder && !f.ready[0].isGone && f.ready[0].lsn != oldest {
			return nil
		}
		e := heap.Pop(&f.ready).(*entry)
		e.isReady = false
		if !e.isGone {
			return e
		}
	}
	return nil
}

// after has a message come again after a time, where that is not 0 or less.
func (f *flight) after(e *entry, delay time.Duration) {
	e.delay, e.alarm = delay, 0
	if delay > 0 {
		f.alarms++
		e.alarm = f.alarms
	}
	if e.isTimed && (delay > 0 || e.timer != nil) {
		e.isTimed = false
		f.untimed = append(f.untimed, e)
	}
}

// setTimers sets timers anew, where a message is to come again or is not any more.
func (f *flight) setTimers(expire func(vellum.LSN, uint64)) {
	for _, e := range f.untimed {
		e.isTimed = true
		if e.timer != nil {
			e.timer.Stop()
			e.timer = nil
		}
		if lsn, alarm := e.lsn, e.alarm; alarm != 0 {
			e.timer = time.AfterFunc(e.delay, func() { expire(lsn, alarm) })
		}
	}
	clear(f.untimed)
	f.untimed = f.untimed[:0]
}

func (f *flight) stop() {
	for _, e := range f.entries {
		f.after(e, 0)
	}
	f.setTimers(nil)
}

// outstanding is the positions of all messages in memory, growing.
func (f *flight) outstanding() []vellum.LSN {
	positions := make([]vellum.LSN, 0, len(f.entries))
	for lsn := range f.entries {
		positions = append(positions, lsn)
	}
	slices.Sort(positions)
	return positions
}

// readyHeap has the oldest message first.
type readyHeap []*entry

func (h readyHeap) Len() int           { return len(h) }
func (h readyHeap) Less(i, j int) bool { return h[i].lsn < h[j].lsn }
func (h readyHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *readyHeap) Push(e any)        { *h = append(*h, e.(*entry)) }
func (h *readyHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}

type positionSet map[vellum.LSN]struct{}

// remove reports whether the position was there.
func (s positionSet) remove(lsn vellum.LSN) bool {
	_, ok := s[lsn]
	delete(s, lsn)
	return ok
}

func (s positionSet) sorted() []vellum.LSN {
	positions := make([]vellum.LSN, 0, len(s))
	for lsn := range s {
		positions = append(positions, lsn)
	}
	slices.Sort(positions)
	return positions
}
