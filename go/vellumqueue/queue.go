package vellumqueue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"vellum"
	"vellum/internal/lookup"
)

// ErrFull is returned by [Queue.Put] where the queue has [MaxBytes] and is to [Fail].
var ErrFull = errors.New("vellumqueue: the queue is full")

// ErrLeaseLost is returned where a message is not its holder's any more: its lease has ended, it was
// acknowledged or given back before, or [DropOldest] has removed it.
var ErrLeaseLost = errors.New("vellumqueue: the message is not held any more")

// ErrEmpty is returned by [Queue.TryGet] where there is nothing to do.
var ErrEmpty = errors.New("vellumqueue: no message is ready")

// tag marks logs of queues.
const tag = 0x6575_6575_716d_6c76

// cursorName is the cursor of the log that is at the oldest message that was not acknowledged.
const cursorName = "queue"

// recordBytes is the space in the log for a record besides its bytes, at most.
const recordBytes = 40

// fullPause is how often a full disk is tried again.
const fullPause = 50 * time.Millisecond

// unseenPause is how often Get looks for a message that is behind a record which cannot be
// finished, as on a dead device.
const unseenPause = 10 * time.Millisecond

// Queue is an open queue. Any number of goroutines may use it at once. One process has it open at a
// time.
type Queue struct {
	options options
	segment vellum.LSN // bytes of a segment
	log     *vellum.Log
	cursor  *vellum.Cursor
	buffers sync.Pool

	// saving is held for reading where a record is appended together with its change in memory, so
	// that a state that is saved is that of its place in the log.
	saving sync.RWMutex
	saves  sync.Mutex // one goroutine saves at a time
	save   chan struct{}

	front  sync.Mutex // the reader of messages that were not given out yet
	reader *vellum.Reader

	mu      sync.Mutex
	flight  flight
	newest  vellum.LSN // of the messages that were put here
	end     vellum.LSN // behind the last record that was appended here
	claimed uint64     // bytes of messages that are on their way into the log
	saved   savedAt
	stats   Stats
	closed  bool
	seen    positionSet // messages that are read when a queue is opened that has lost some

	wake    chan struct{} // holds a value where a message may be ready
	space   chan struct{} // holds a value where there may be space
	clock   chan struct{} // holds a value where timers are to be set
	closing chan struct{}
	keeper  sync.WaitGroup
	ending  sync.Once

	// For tests: between the log and memory, before a message is read, and where none is left.
	whenAcked, beforeLoad, whenAtEnd func()
}

// savedAt is where a state was saved last.
type savedAt struct {
	at, floor vellum.LSN
	acks      int // since then
}

// Stats is the state of a queue, and its counts.
type Stats struct {
	// Len is how many messages were not acknowledged.
	Len uint64
	// Bytes is the size of the log from the oldest of them on.
	Bytes uint64
	// InFlight is how many of them are in memory; Ready of those were given back.
	InFlight, Ready int
	// Dropped is how many messages were dropped since the queue was opened.
	Dropped uint64
}

// Open opens or creates the queue in the directory path.
//
// Errors: as [vellum.Open]; [vellum.ErrInUse] where the queue is open already, here or in another
// process; [vellum.ErrInvalidOption] where the log is not a queue's.
//
// Cost: that of the log, and reading what was appended since the state was saved last: four segments
// at most.
func Open(path string, opts ...Option) (*Queue, error) {
	q := &Queue{
		options: options{lease: 30 * time.Second, maxInFlight: 1000},
		save:    make(chan struct{}, 1),
		wake:    make(chan struct{}, 1),
		space:   make(chan struct{}, 1),
		clock:   make(chan struct{}, 1),
		closing: make(chan struct{}),
	}
	for _, option := range opts {
		option(&q.options)
	}
	q.options.maxInFlight = max(q.options.maxInFlight, 1)
	q.buffers.New = func() any { return new([]byte) }
	shape := []vellum.Option{
		vellum.WAL(), vellum.ApplicationTag(tag), vellum.SpareSegmentsMax(2),
	}
	if q.options.maxBytes > 0 {
		shape = append(shape, vellum.SegmentBytes(q.options.segmentBytes())) // of a new log
	}
	log, err := vellum.Open(path, append(shape, q.options.log...)...)
	if err != nil {
		return nil, err
	}
	q.log = log
	if err := q.recover(); err != nil {
		_ = log.Close()
		return nil, err
	}
	q.keeper.Add(2)
	go q.keep()
	go q.keepTime()
	return q, nil
}

// Close closes the queue. Calls that wait return [vellum.ErrClosed]. Messages that were not
// acknowledged come again when the queue is opened. A second call waits until the queue is closed.
func (q *Queue) Close() (err error) {
	q.ending.Do(func() { err = q.close() })
	return err
}

func (q *Queue) close() error {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	close(q.closing)
	q.keeper.Wait()
	err := q.saveState()
	q.front.Lock()
	_ = q.reader.Close()
	q.front.Unlock()
	if closed := q.log.Close(); closed != nil {
		err = closed
	}
	return err
}

// Stats returns the state of the queue.
func (q *Queue) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	stats := q.stats
	stats.Bytes = q.bytes()
	stats.InFlight, stats.Ready = len(q.flight.entries), q.flight.ready.Len()
	return stats
}

// bytes is the size of the log from the oldest message on. The caller holds mu.
func (q *Queue) bytes() uint64 { return uint64(q.end - min(q.flight.floor(), q.end)) }

// Put puts a message at the end of the queue; its data is copied. On return it survives a power cut,
// or, with [PutAtOnce], the death of the process.
//
// Errors: [ErrFull]; [vellum.ErrNoSpace] where the disk is full; [vellum.ErrTooLarge] for a message
// of more than [MaxBytes], or of more than 4 GiB - 1; that of ctx, which ends each wait: the message
// may be in the queue then, if Put waited for the device. Otherwise as [vellum.Log.AppendDurable].
//
// Cost: a copy and an append, and about one write of the device, which all waiters at the same time
// share.
func (q *Queue) Put(ctx context.Context, data []byte) error {
	return q.PutKeyed(ctx, "", data)
}

// PutKeyed is as [Queue.Put]. Messages of one key come one after the other: the next one when the one
// before was acknowledged. The key "" is none.
func (q *Queue) PutKeyed(ctx context.Context, key string, data []byte) error {
	buffer := q.buffers.Get().(*[]byte)
	defer q.buffers.Put(buffer)
	*buffer = appendMessage((*buffer)[:0], key, data)
	record := *buffer
	if cap(record) > 1<<20 {
		*buffer = nil
	}
	return q.put(ctx, uint64(len(record))+recordBytes, 1, func() (vellum.LSN, error) {
		return q.log.Append(ctx, record)
	})
}

// PutAll puts several messages, all or none, one after the other with nothing between. Otherwise as
// [Queue.Put].
func (q *Queue) PutAll(ctx context.Context, messages ...[]byte) error {
	if len(messages) == 0 {
		return nil
	}
	var record []byte
	need := uint64(0)
	for _, data := range messages {
		need += uint64(len(data)) + recordBytes + 2
	}
	return q.put(ctx, need, len(messages), func() (vellum.LSN, error) {
		batch := q.log.NewBatch()
		for _, data := range messages {
			record = appendMessage(record[:0], "", data)
			batch.Push(record)
		}
		lsns, err := batch.AppendEach(ctx)
		if err != nil {
			return 0, err
		}
		return lsns[len(lsns)-1], nil
	})
}

// put appends messages when there is space for them.
func (q *Queue) put(ctx context.Context, need uint64, count int, add func() (vellum.LSN, error)) error {
	for {
		if err := q.claim(ctx, need); err != nil {
			return err
		}
		lsn, err := q.append(need, func() (vellum.LSN, error) {
			lsn, err := add()
			if err == nil {
				q.mu.Lock()
				q.stats.Len += uint64(count)
				q.newest = max(q.newest, lsn)
				q.mu.Unlock()
			}
			return lsn, err
		})
		isFull := errors.Is(err, vellum.ErrNoSpace)
		if isFull && q.makeSpace() {
			continue
		}
		if isFull && q.options.whenFull == Block {
			if err = q.waitForSpace(ctx, fullPause); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		ring(q.wake)
		if q.options.putAtOnce {
			return nil
		}
		return q.log.Commit(ctx, lsn)
	}
}

// append makes a record of the log, and counts its bytes. Those were claimed.
func (q *Queue) append(need uint64, add func() (vellum.LSN, error)) (vellum.LSN, error) {
	q.saving.RLock()
	defer q.saving.RUnlock()
	lsn, err := add()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.claimed -= need
	if err == nil {
		q.end = max(q.end, lsn+vellum.LSN(need))
		q.look()
	}
	return lsn, err
}

// claim has space for a message, or makes it.
func (q *Queue) claim(ctx context.Context, need uint64) error {
	limit := q.options.maxBytes
	if limit > 0 && need > limit {
		return fmt.Errorf("vellumqueue: a message of %d bytes, where the queue may take %d: %w",
			need, limit, vellum.ErrTooLarge)
	}
	hasPassed := false
	for {
		q.mu.Lock()
		if q.closed {
			q.mu.Unlock()
			return vellum.ErrClosed
		}
		isEmpty := q.stats.Len == 0 && q.claimed == 0
		fits := limit == 0 || q.bytes()+q.claimed+need <= limit
		if fits || isEmpty && hasPassed {
			q.claimed += need
			q.mu.Unlock()
			// Another one may fit too.
			ring(q.space)
			return nil
		}
		q.mu.Unlock()
		if isEmpty {
			// The rest is acknowledgements.
			if err := q.passAcks(); err != nil {
				return err
			}
			hasPassed = true
			continue
		}
		switch q.options.whenFull {
		case DropOldest:
			if err := q.dropOldest(); err != nil {
				return err
			}
		case Block:
			if err := q.waitForSpace(ctx, 0); err != nil {
				return err
			}
		default:
			return ErrFull
		}
	}
}

// waitForSpace waits until there may be space; no longer than a pause, where there is one.
func (q *Queue) waitForSpace(ctx context.Context, pause time.Duration) error {
	var later <-chan time.Time
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		later = timer.C
	}
	select {
	case <-q.space:
	case <-later:
	case <-ctx.Done():
		return ctx.Err()
	case <-q.closing:
		return vellum.ErrClosed
	}
	return nil
}

// Get waits for a message, which then belongs to the caller until its lease ends. It is to be
// acknowledged or given back.
//
// Errors: that of ctx; [vellum.ErrClosed]; [vellum.ErrCorrupt] and [vellum.ErrIO] where the log
// cannot be read.
func (q *Queue) Get(ctx context.Context) (*Message, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		message, err := q.TryGet()
		if err != ErrEmpty {
			return message, err
		}
		var again <-chan time.Time
		if q.mayRead() && q.hasUnseen() {
			again = time.After(unseenPause)
		}
		select {
		case <-q.wake:
		case <-again:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-q.closing:
			return nil, vellum.ErrClosed
		}
	}
}

// TryGet is as [Queue.Get], and does not wait: [ErrEmpty] where no message is ready.
func (q *Queue) TryGet() (*Message, error) {
	message, err := q.again()
	if err == ErrEmpty {
		message, err = q.next()
	}
	if err == nil {
		// There may be more, for another waiter.
		ring(q.wake)
	}
	return message, err
}

// Messages yields messages until ctx ends or the queue is closed. An error comes as the last item.
func (q *Queue) Messages(ctx context.Context) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		for {
			message, err := q.Get(ctx)
			if ctx.Err() != nil && err != nil || errors.Is(err, vellum.ErrClosed) {
				return
			}
			if !yield(message, err) || err != nil {
				return
			}
		}
	}
}

// again gives out a message that was given out before.
func (q *Queue) again() (*Message, error) {
	for {
		message, err := q.pop()
		if err != nil {
			return nil, err
		}
		if err = q.load(message); err == nil {
			return message, nil
		}
		// Where its lease has ended already another one may have acknowledged it: it may be gone.
		if message.Nack(0) == nil {
			return nil, err
		}
	}
}

// pop takes the oldest message that is ready, without its data.
func (q *Queue) pop() (*Message, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, vellum.ErrClosed
	}
	e := q.flight.popReady(q.options.inOrder)
	if e == nil {
		return nil, ErrEmpty
	}
	return q.lend(e), nil
}

// load reads the data of a message.
func (q *Queue) load(message *Message) error {
	if q.beforeLoad != nil {
		q.beforeLoad()
	}
	record, err := q.log.ReadAt(message.LSN, nil)
	if err == nil {
		_, message.Data, err = parseMessage(record)
	}
	return err
}

// lend gives a message out. The caller holds mu.
func (q *Queue) lend(e *entry) *Message {
	q.flight.leases++
	e.lease = q.flight.leases
	e.attempts++
	q.after(e, q.options.lease)
	return &Message{LSN: e.lsn, Key: e.key, Attempt: e.attempts, queue: q, lease: e.lease}
}

// after has a message come again after a time, where it is not 0 or less. The caller holds mu.
func (q *Queue) after(e *entry, delay time.Duration) {
	q.flight.after(e, delay)
	ring(q.clock)
}

// keepTime has the timers of all messages: a timer belongs to the bubble of testing/synctest in which it
// was made, and a message may be got in one bubble and acknowledged in another.
func (q *Queue) keepTime() {
	defer q.keeper.Done()
	for isOpen := true; isOpen; {
		select {
		case <-q.clock:
		case <-q.closing:
			isOpen = false
		}
		q.mu.Lock()
		if isOpen {
			q.flight.setTimers(q.expire)
		} else {
			q.flight.stop()
		}
		q.mu.Unlock()
	}
}

// expire makes a message ready again where no other timer of it counts.
func (q *Queue) expire(lsn vellum.LSN, alarm uint64) {
	q.mu.Lock()
	e := q.flight.entries[lsn]
	isOver := e != nil && e.alarm == alarm && !q.closed
	if isOver {
		e.lease = 0
		// One that is being acknowledged comes again only if that fails.
		if !e.isAcking {
			q.flight.makeReady(e)
		}
	}
	q.mu.Unlock()
	if isOver {
		ring(q.wake)
	}
}

// next gives out the first message that was not given out yet and whose turn it is.
func (q *Queue) next() (*Message, error) {
	q.front.Lock()
	defer q.front.Unlock()
	for hasWaited := false; ; {
		if q.isClosed() {
			return nil, vellum.ErrClosed
		} else if !q.mayRead() {
			return nil, ErrEmpty
		}
		message, err := q.read()
		if err == io.EOF {
			// It may lie behind a record that is being written, such as one of the log itself.
			if hasWaited || !q.hasUnseen() || q.waitForNewest() != nil {
				return nil, ErrEmpty
			}
			hasWaited = true
		} else if message != nil || err != nil {
			return message, err
		}
	}
}

// waitForNewest waits until the newest message can be read.
func (q *Queue) waitForNewest() error {
	q.mu.Lock()
	newest := q.newest
	q.mu.Unlock()
	return lookup.WaitFor(q.log, newest)
}

func (q *Queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// hasUnseen reports whether there is a message that the reader has not come to.
func (q *Queue) hasUnseen() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.stats.Len > uint64(len(q.flight.entries))
}

// mayRead reports whether one more message may be taken in.
func (q *Queue) mayRead() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	inFlight := len(q.flight.entries)
	return inFlight < q.options.maxInFlight && (inFlight == 0 || !q.options.inOrder)
}

// read reads one record; a message whose turn it is, is given out. [io.EOF] where there is none. The
// caller holds front.
func (q *Queue) read() (*Message, error) {
	record, err := q.reader.Next()
	if err == io.EOF && q.whenAtEnd != nil {
		q.whenAtEnd()
	}
	if err != nil {
		return nil, err
	}
	var key string
	var data []byte
	isOne := isMessageOf(record)
	if isOne {
		if key, data, err = parseMessage(record.Data); err != nil {
			return nil, err
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.flight.front = record.Next
	if !isOne {
		return nil, nil
	}
	if q.flight.acked.remove(record.LSN) {
		return nil, nil
	}
	e := q.flight.add(record.LSN, key)
	if e.isHeld {
		return nil, nil
	}
	message := q.lend(e)
	message.Data = bytes.Clone(data)
	return message, nil
}

// passAcks continues at the front as long as there is no message.
func (q *Queue) passAcks() error {
	q.front.Lock()
	defer q.front.Unlock()
	for {
		record, err := q.reader.Next()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		q.mu.Lock()
		isOne := isMessageOf(record) && !q.flight.acked.remove(record.LSN)
		if !isOne {
			q.flight.front = record.Next
		}
		q.mu.Unlock()
		if isOne {
			return q.reader.Seek(record.LSN)
		}
	}
}

func isMessageOf(record vellum.Record) bool {
	return len(record.Data) > 0 && record.Data[0] == isMessage
}

// dropOldest removes the oldest message, even if it is in flight.
func (q *Queue) dropOldest() error {
	q.mu.Lock()
	if oldest, ok := q.flight.oldest(); ok {
		q.forget(oldest)
		q.stats.Dropped++
		q.look()
		q.mu.Unlock()
		return q.keepUp()
	}
	q.mu.Unlock()
	q.front.Lock()
	defer q.front.Unlock()
	for {
		record, err := q.reader.Next()
		if err == io.EOF {
			// Another one got it meanwhile.
			return nil
		} else if err != nil {
			return err
		}
		isOne := isMessageOf(record)
		q.mu.Lock()
		q.flight.front = record.Next
		isDropped := isOne && !q.flight.acked.remove(record.LSN)
		if isDropped {
			q.stats.Len--
			q.stats.Dropped++
		}
		q.look()
		q.mu.Unlock()
		if isDropped {
			return q.keepUp()
		}
	}
}

// forget takes a message out of memory, and lets the next one of its key come. The caller holds mu.
func (q *Queue) forget(lsn vellum.LSN) {
	q.flight.remove(lsn)
	q.stats.Len--
}

// ring leaves a value for one waiter.
func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}
