package vellumqueue

import (
	"context"
	"errors"
	"slices"
	"time"

	"vellum"
)

// Message is a message that belongs to its receiver, until its lease ends.
type Message struct {
	// LSN is the position of the message in the log: one that was put later has a larger one.
	LSN vellum.LSN
	// Key is that of [Queue.PutKeyed], or "".
	Key string
	// Data is the caller's.
	Data []byte
	// Attempt counts from 1 how often the message was given out since the queue was opened.
	Attempt int

	queue *Queue
	lease uint64
}

// Ack acknowledges the message: it never comes again. On return that survives a power cut, or, with
// [AckAtOnce], the death of the process.
//
// Errors: [ErrLeaseLost]; [vellum.ErrNoSpace], and then the message is still the caller's; that of ctx
// while Ack waits for the device: the message is acknowledged, and may come again after a power cut.
//
// Cost: an append of a few bytes, and about one write of the device, which all waiters at the same
// time share.
func (m *Message) Ack(ctx context.Context) error { return m.queue.AckAll(ctx, m) }

// AckAll acknowledges several messages at once. [ErrLeaseLost] where one of them is not held any more;
// the others are acknowledged.
func (q *Queue) AckAll(ctx context.Context, messages ...*Message) error {
	lsn, lost, err := q.ack(messages)
	if errors.Is(err, vellum.ErrNoSpace) && q.makeSpace() {
		lsn, lost, err = q.ack(messages)
	}
	switch {
	case err != nil:
		return err
	case lsn != 0 && !q.options.ackAtOnce:
		if err := q.log.Commit(ctx, lsn); err != nil {
			return err
		}
	}
	if lost {
		return ErrLeaseLost
	}
	return nil
}

// ack appends that these messages were acknowledged, and forgets them.
func (q *Queue) ack(messages []*Message) (at vellum.LSN, lost bool, err error) {
	q.saving.RLock()
	defer q.saving.RUnlock()
	held := q.hold(messages)
	lost = len(held) < len(messages)
	if len(held) == 0 {
		return 0, lost, nil
	}
	slices.Sort(held)
	record := appendPositions([]byte{isAck}, held)
	// A moment's work: the queue is the only one that has the log.
	at, err = q.log.Append(context.Background(), record)
	if q.whenAcked != nil {
		q.whenAcked()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, lsn := range held {
		e := q.flight.entries[lsn]
		if e == nil {
			continue // dropped meanwhile
		}
		if err == nil {
			q.forget(lsn)
			continue
		}
		e.isAcking = false
		if e.lease == 0 {
			q.flight.makeReady(e)
		}
	}
	if err != nil {
		return 0, lost, err
	}
	q.end = max(q.end, at+vellum.LSN(len(record)+recordBytes))
	q.saved.acks += len(held)
	q.look()
	ring(q.wake)
	ring(q.space)
	return at, lost, nil
}

// hold marks those messages that their holders still have as being acknowledged.
func (q *Queue) hold(messages []*Message) []vellum.LSN {
	q.mu.Lock()
	defer q.mu.Unlock()
	held := make([]vellum.LSN, 0, len(messages))
	for _, m := range messages {
		if e := q.held(m); e != nil && !e.isAcking {
			e.isAcking = true
			held = append(held, m.LSN)
		}
	}
	return held
}

// held is the entry of a message that its holder still has, or nil. The caller holds mu.
func (q *Queue) held(m *Message) *entry {
	e := q.flight.entries[m.LSN]
	if e == nil || m.lease == 0 || e.lease != m.lease {
		return nil
	}
	return e
}

// Nack gives the message back: it comes again after a delay, before those that were put later.
//
// Errors: [ErrLeaseLost].
func (m *Message) Nack(delay time.Duration) error {
	q := m.queue
	q.mu.Lock()
	e := q.held(m)
	if e == nil || e.isAcking {
		q.mu.Unlock()
		return ErrLeaseLost
	}
	// A lease without a holder, so that late calls of the old holder have no effect.
	q.flight.leases++
	e.lease = q.flight.leases
	q.after(e, delay)
	if delay <= 0 {
		e.lease = 0
		q.flight.makeReady(e)
	}
	q.mu.Unlock()
	ring(q.wake)
	return nil
}

// Extend has the lease end so much later than now; 0 or less is never.
//
// Errors: [ErrLeaseLost].
func (m *Message) Extend(lease time.Duration) error {
	q := m.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.held(m)
	if e == nil || e.isAcking || q.closed {
		return ErrLeaseLost
	}
	q.after(e, lease)
	return nil
}
