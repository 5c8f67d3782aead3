package vellum

// #cgo noescape vg_append
// #cgo nocallback vg_append
// #cgo noescape vg_read_at
// #cgo nocallback vg_read_at
// #cgo noescape vg_append_batch
// #cgo nocallback vg_append_batch
// #cgo nocallback vellum_begin
// #cgo nocallback vellum_published
// #cgo nocallback vellum_durable
// #cgo nocallback vellum_tail
// #include <stdlib.h>
// #include "bridge.h"
import "C"

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// LSN is the position of a record: a byte position in the log. It grows, it may skip, and is never
// 0.
type LSN uint64

// waitSlice is how long a call of C waits for another process before it looks whether it is still
// wanted.
const waitSlice = 100 * time.Millisecond

// fullPause is how often a full disk is tried again.
const fullPause = 20 * time.Millisecond

// Log is an open log. Any number of goroutines may use it at once.
type Log struct {
	*core
	cleanup runtime.Cleanup
}

// core is the part of a log that stays until the last of its users has left.
type core struct {
	c       *C.vellum_log
	users   users
	appends gate
	slow    gate
	commits committer
	full    chan struct{} // holds one value: the right to try a full disk
	timeout time.Duration
	blocks  bool
	path    string
	closing sync.Once

	// truncations grows with each one: records that readers have read ahead may be gone then.
	truncations atomic.Uint64

	mu      sync.Mutex
	handles map[closer]struct{}
}

// closer is an object that is made from a log, and is closed with it.
type closer interface{ close() }

var guardBusErrors = sync.OnceValue(func() error {
	return failure(C.vg_guard_bus_errors())
})

// Open opens or creates the log in the directory path. Without options an existing log is taken as
// it is, and a new one is as [Events].
//
// Errors: [ErrNotFound], [ErrAlreadyExists] and [ErrPermissionDenied] as for a file;
// [ErrInvalidOption] for an option out of range, or a log of other records; [ErrInUse]
// where another handle wants the log for itself; [ErrIncompatible] where the path is no log;
// [ErrUnsupported] on a filesystem that cannot carry a log; [ErrCorrupt] for damage to committed
// records; [ErrPoisoned] while others have the log open after a failed write.
//
// A new log survives the death of every process; after a power cut it is there whole or not at all.
// Cost: a dozen system calls, two syncs where the log is created, and reading the end that a crash has left.
//
// Storage that fails under a mapping is an error and no SIGBUS that ends the process: the first
// Open has the library answer that signal for its own mappings. All others go to Go's handler.
func Open(path string, options ...Option) (*Log, error) {
	o := newOptions(options)
	// The library's handler comes first, and passes on faults outside of its mappings.
	if err := guardBusErrors(); err != nil {
		return nil, err
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var c *C.vellum_log
	if err := failure(C.vg_open(name, &o.c, &c)); err != nil {
		return nil, err
	}
	return newLog(c, path, o.timeout, o.blocks), nil
}

func newLog(c *C.vellum_log, path string, timeout time.Duration, blocks bool) *Log {
	shared := &core{
		c: c, users: newUsers(), appends: newGate(), slow: newGate(), full: make(chan struct{}, 1),
		timeout: timeout, blocks: blocks, path: path, handles: map[closer]struct{}{},
		commits: committer{bells: newBells()},
	}
	log := &Log{core: shared}
	// For a log that is never closed.
	log.cleanup = runtime.AddCleanup(log, func(c *core) { _ = c.close(true) }, shared)
	return log
}

// Reopen opens the log at the path of l once more: joins the one that is there, or makes one with
// the same layout and policy. To continue after [ErrRemoved]. l stays as it is until it is closed.
//
// Errors and cost as for [Open].
func (l *Log) Reopen() (*Log, error) {
	if err := l.users.enter(); err != nil {
		return nil, err
	}
	defer l.users.leave()
	var c *C.vellum_log
	if err := failure(C.vg_reopen(l.c, &c)); err != nil {
		return nil, err
	}
	return newLog(c, l.path, l.timeout, l.blocks), nil
}

// Close closes the log and all readers and cursors that were made from it. Calls that wait for
// records or for space return [ErrClosed]; calls that append or commit are ended first. A second
// Close waits until the log is closed, and returns nil.
//
// The last process to close a log commits what a [WAL] has, and cuts a text log to its text.
//
// Errors: as for [Log.Commit], and [ErrNoSpace]. The log is closed even if Close returns an error;
// uncommitted records are there as after the death of the process.
//
// Durable: committed records, and all of a [WAL] that no other process has open. Call [Log.Sync]
// before for other logs. Cost: half a dozen system calls; of a [WAL] two writes of the device.
func (l *Log) Close() error {
	l.cleanup.Stop()
	return l.core.close(false)
}

func (l *core) close(wasForgotten bool) (err error) {
	l.closing.Do(func() { err = l.closeFirst(wasForgotten) })
	return err
}

func (l *core) closeFirst(wasForgotten bool) error {
	l.users.close(wasForgotten)
	l.mu.Lock()
	handles := l.handles
	l.handles = nil
	l.mu.Unlock()
	for handle := range handles {
		handle.close()
	}
	return failure(C.vg_close(l.c))
}

// keep has a handle closed with the log. The caller has entered.
func (l *core) keep(handle closer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handles[handle] = struct{}{}
}

func (l *core) drop(handle closer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.handles, handle)
}

// Path is the directory of the log, as it was opened.
func (l *Log) Path() string { return l.path }

// Append appends one record and returns its position.
//
// In a text log the bytes go in as they are: bring the newline, or use [Log.Write].
//
// Errors: [ErrNoSpace] (see [WhenFull]) and [ErrTooLarge] before anything is reserved;
// [ErrReadOnly]; [ErrPoisoned]; [ErrIO]; [ErrTimedOut]; that of ctx while the call waits. After an
// error the record is not in the log, and the log continues.
//
// Durable: on return the record survives the death of this process and of every other. It does not
// yet survive a power cut: [Log.Commit].
//
// Cost: a call of C, two contended atomic operations and a copy. No system call, no allocation and
// no lock, but for making space ready now and then, which takes as long as the device does. Many
// small records are cheaper as a [Batch].
func (l *Log) Append(ctx context.Context, record []byte) (LSN, error) {
	if err := l.enter(ctx, &l.appends); err != nil {
		return 0, err
	}
	answer := C.vg_append(l.c, bytesOf(record), C.size_t(len(record)))
	l.appends.leave()
	if answer.status != C.VELLUM_OK {
		answer = l.again(ctx, answer, time.Now(), &l.appends, func() C.vg_answer {
			return C.vg_append(l.c, bytesOf(record), C.size_t(len(record)))
		})
	}
	l.users.leave()
	return outcome(ctx, answer)
}

// outcome is the result of an answer. One of [VELLUM_PENDING] was given up.
func outcome(ctx context.Context, answer C.vg_answer) (LSN, error) {
	switch {
	case answer.error != nil:
		return 0, takeError(answer.error)
	case answer.status != C.VELLUM_PENDING:
		return LSN(answer.value), nil
	case ctx.Err() != nil:
		return 0, ctx.Err()
	}
	return 0, ErrClosed
}

// enter lets a call in that may wait in C. It is to leave the gate and the users.
func (l *core) enter(ctx context.Context, gate *gate) error {
	if err := l.users.enter(); err != nil {
		return err
	}
	err := ctx.Err()
	if err == nil {
		err = gate.enter(ctx)
	}
	if err != nil {
		l.users.leave()
	}
	return err
}

// again makes a call again that has waited for another process for too long, or for space where it
// is to be waited for. It gives VELLUM_PENDING where the caller has given up.
func (l *core) again(
	ctx context.Context, answer C.vg_answer, since time.Time, gate *gate, call func() C.vg_answer,
) C.vg_answer {
	hasTurn := false
	defer func() {
		if hasTurn {
			<-l.full
		}
	}()
	for l.isToRepeat(answer, since) {
		if answer.status == C.VELLUM_NO_SPACE {
			// One of the waiters looks for space, 50 times a second; the others wait for it.
			if !l.pause(ctx, &hasTurn) {
				return gaveUp(answer)
			}
		} else if l.users.isClosing() {
			return gaveUp(answer)
		}
		if ctx.Err() != nil || gate.enter(ctx) != nil {
			return gaveUp(answer)
		}
		C.vg_error_free(answer.error)
		answer = call()
		gate.leave()
	}
	return answer
}

func gaveUp(answer C.vg_answer) C.vg_answer {
	C.vg_error_free(answer.error)
	return C.vg_answer{status: C.VELLUM_PENDING}
}

func (l *core) isToRepeat(answer C.vg_answer, since time.Time) bool {
	switch answer.status {
	case C.VELLUM_TIMED_OUT:
		return l.timeout <= 0 || time.Since(since) < l.timeout
	case C.VELLUM_NO_SPACE:
		return l.blocks
	}
	return false
}

// pause waits until it is time to look for space again. It reports whether there is a point in it.
func (l *core) pause(ctx context.Context, hasTurn *bool) bool {
	if !*hasTurn {
		select {
		case l.full <- struct{}{}:
			*hasTurn = true
			return true
		case <-ctx.Done():
		case <-l.users.closing:
		}
		return false
	}
	timer := time.NewTimer(fullPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-l.users.closing:
	}
	return false
}

// slowly makes a call that may take as long as the device does.
func (l *Log) slowly(call func() C.vg_answer) (LSN, error) {
	return l.slowlyFor(context.Background(), call)
}

func (l *core) slowlyFor(ctx context.Context, call func() C.vg_answer) (LSN, error) {
	if err := l.enter(ctx, &l.slow); err != nil {
		return 0, err
	}
	defer l.users.leave()
	answer := call()
	l.slow.leave()
	return outcome(ctx, l.again(ctx, answer, time.Now(), &l.slow, call))
}

// bytesOf is where the bytes begin, for a call of C.
func bytesOf(bytes []byte) *C.uint8_t {
	return (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(bytes)))
}

// Write appends p as one record, for [fmt.Fprintf] and [log.New]. In a text log that is whole lines:
// a newline is added where p has none at its end. It is as durable as [Log.Append].
//
// Where the log drops records on a full disk ([FullDrop]) a dropped record is no error.
func (l *Log) Write(p []byte) (int, error) {
	if _, err := l.write(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (l *Log) write(p []byte) (LSN, error) {
	if l.isText() && (len(p) == 0 || p[len(p)-1] != '\n') {
		p = append(append(make([]byte, 0, len(p)+1), p...), '\n')
	}
	return l.Append(context.Background(), p)
}

func (l *Log) isText() bool {
	return l.ask(func() C.uint64_t { return C.uint64_t(C.vellum_log_layout(l.c)) }) == C.VELLUM_LAYOUT_TEXT
}

// ask reads memory of the log; 0 where it is closed.
func (l *Log) ask(question func() C.uint64_t) LSN {
	if l.users.enter() != nil {
		return 0
	}
	defer l.users.leave()
	return LSN(question())
}

// Begin is the oldest position that is still kept; 0 where the log is closed, as of the next three.
// Each costs a call of C that reads memory.
func (l *Log) Begin() LSN { return l.ask(func() C.uint64_t { return C.vellum_begin(l.c) }) }

// Durable is the end of the records that survive a power cut.
func (l *Log) Durable() LSN { return l.ask(func() C.uint64_t { return C.vellum_durable(l.c) }) }

// Published is the end of the records that readers can see. The next record starts there.
func (l *Log) Published() LSN { return l.ask(func() C.uint64_t { return C.vellum_published(l.c) }) }

// waitSliceNanos is how long a call of C waits at most before the context is looked at.
const waitSliceNanos = 100e6

// WaitPublished waits until every reader sees the record at lsn, and everything before it. A record
// whose append has returned is seen once each append in front of it is done, in any process: so not
// even the goroutine that appended it may see it yet. It makes nothing durable.
//
// Errors: [ErrOutOfRange] for a position beyond the end; that of ctx.
//
// Cost: a call of C that reads memory where it is published already; otherwise a thread sleeps until
// it is, and ctx is looked at ten times a second.
func (l *Log) WaitPublished(ctx context.Context, lsn LSN) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := l.users.enter(); err != nil {
			return err
		}
		answer := C.vg_wait_published(l.c, C.uint64_t(lsn), waitSliceNanos)
		l.users.leave()
		if answer.status != C.VELLUM_TIMED_OUT {
			return failure(answer)
		}
	}
}

// Tail is the end of the reserved space: where the next record goes, or a little further.
func (l *Log) Tail() LSN { return l.ask(func() C.uint64_t { return C.vellum_tail(l.c) }) }

// Checkpoint is the position that [Log.SetCheckpoint] has stored last, or 0.
func (l *Log) Checkpoint() LSN { return l.ask(func() C.uint64_t { return C.vellum_checkpoint(l.c) }) }

// CheckpointDue reports whether [CheckpointAfter] bytes are durable behind the checkpoint. Call it
// behind a commit, or now and then. It costs a call of C that reads memory.
func (l *Log) CheckpointDue() bool {
	return l.ask(func() C.uint64_t { return C.uint64_t(C.vellum_checkpoint_due(l.c)) }) != 0
}

// SetCheckpoint stores lsn with the log as the position from which its user recovers, and commits.
// Framed logs only. On return the mark and every record whose append had returned before survive a
// power cut.
//
// Errors: [ErrOutOfRange] for a position outside of the log, [ErrUnsupported] in a text log;
// otherwise as for [Log.Commit]. Cost: one write of the device, or two.
func (l *Log) SetCheckpoint(lsn LSN) error {
	_, err := l.slowly(func() C.vg_answer { return C.vg_set_checkpoint(l.c, C.uint64_t(lsn)) })
	return err
}

// TrimReport is what [Log.Trim] did.
type TrimReport struct {
	// Begin is the oldest position that is kept.
	Begin LSN
	// SegmentsRemoved is how many files were removed, or kept to be used again.
	SegmentsRemoved uint64
	// HeldAt is where a cursor has kept records that were to be dropped, or 0: [Cursor.Hold].
	HeldAt LSN
}

// Trim drops everything before a position: whole files are removed, the rest is no longer shown.
//
// Errors: [ErrOutOfRange] for a position beyond [Log.Published], or (framed) where no record starts.
// A position before [Log.Begin] is fine and changes nothing.
//
// Durable: in a framed log that commits, the new beginning survives a power cut on return. In
// others, dropped records may be there again after one. Cost: a sync of the device, or two; each
// file that goes is renamed or removed. Appends and commits continue meanwhile.
func (l *Log) Trim(before LSN) (TrimReport, error) {
	var report C.vellum_trim_report
	report.struct_size = C.sizeof_vellum_trim_report
	_, err := l.slowly(func() C.vg_answer { return C.vg_trim(l.c, C.uint64_t(before), &report) })
	if err != nil {
		return TrimReport{}, err
	}
	return TrimReport{
		Begin:           LSN(report.begin),
		SegmentsRemoved: uint64(report.segments_removed),
		HeldAt:          LSN(report.held_at),
	}, nil
}

// Truncate drops the newest part of the log: the record at from and all behind it. Positions from
// there on are given out again. Everything before is committed first; on return, dropped records
// stay dropped. A reader of this log continues where it was, and gets [ErrOutOfRange] where that
// was dropped.
//
// Errors: [ErrOutOfRange] for a position outside of the log or (framed) where no record starts;
// [ErrBusy] while another process has the log open for writing, or an append of this process is in
// progress; otherwise as for [Log.Commit].
func (l *Log) Truncate(from LSN) error {
	// Before and behind: records that are read ahead meanwhile may be of either.
	l.truncations.Add(1)
	defer l.truncations.Add(1)
	_, err := l.slowly(func() C.vg_answer { return C.vg_truncate(l.c, C.uint64_t(from)) })
	return err
}

// Rotate has a text log continue in a new file at the next append, whatever its policy says.
//
// Errors: [ErrUnsupported] in a framed log, [ErrReadOnly].
func (l *Log) Rotate() error {
	_, err := l.slowly(func() C.vg_answer { return C.vg_rotate(l.c) })
	return err
}

// Prepare makes sure that so many files are ready beyond the one being written, and returns how
// many had to be made. Errors: [ErrNoSpace]. Cost: a file is written with zeros and synced.
func (l *Log) Prepare(segments uint64) (made uint64, err error) {
	count, err := l.slowly(func() C.vg_answer { return C.vg_prepare(l.c, C.uint64_t(segments)) })
	return uint64(count), err
}

// ReleasePrepared gives back the files that are ready beyond the written ones, and returns how many
// those were. Errors: [ErrBusy] as for [Log.Truncate].
func (l *Log) ReleasePrepared() (released uint64, err error) {
	count, err := l.slowly(func() C.vg_answer { return C.vg_release_prepared(l.c) })
	return uint64(count), err
}

// ReadAt copies the record at lsn into buf from its beginning, and returns the record: buf[:len], or
// a longer slice where buf has no room for it.
//
// Errors: [ErrTrimmed] for a position that is no longer kept; [ErrOutOfRange] for one that is not
// published, or where no whole record starts: in a text log in the middle of a line. In a framed log
// that is also how damage shows.
//
// Cost: one read of little more than the last record took, and another one for a longer record. The
// log keeps up to four files open for it. Where buf is nil, a record of more than 1 KiB is read twice.
func (l *Log) ReadAt(lsn LSN, buf []byte) ([]byte, error) {
	if err := l.users.enter(); err != nil {
		return buf[:0], err
	}
	defer l.users.leave()
	if buf == nil {
		var small [1024]byte
		answer := C.vg_read_at(l.c, C.uint64_t(lsn), bytesOf(small[:]), C.size_t(len(small)))
		if answer.status == C.VELLUM_OK {
			return append(make([]byte, 0, answer.value), small[:answer.value]...), nil
		}
		if answer.error != nil {
			return nil, takeError(answer.error)
		}
		buf = make([]byte, answer.value)
	}
	for {
		buf = buf[:cap(buf)]
		answer := C.vg_read_at(l.c, C.uint64_t(lsn), bytesOf(buf), C.size_t(len(buf)))
		if answer.status == C.VELLUM_OK {
			return buf[:answer.value], nil
		}
		if answer.error != nil {
			return buf[:0], takeError(answer.error)
		}
		buf = make([]byte, answer.value)
	}
}

// Last is the position of the newest record that is published, for [Log.ReadAt]; false where the log
// is empty.
//
// Errors: [ErrCorrupt] for damage on the way to it. Cost: a walk over 64 KiB at the end of a log that
// is committed, of a framed log that is not over its last segment.
func (l *Log) Last() (LSN, bool, error) {
	if err := l.users.enter(); err != nil {
		return 0, false, err
	}
	defer l.users.leave()
	answer := C.vg_last_record(l.c)
	return LSN(answer.value), answer.status == C.VELLUM_OK, failure(answer)
}

// Recovery is the recovery on opening a log.
type Recovery struct {
	// End is the end of the recovered records.
	End LSN
	// Durable is the end of the records that were known to be durable before.
	Durable LSN
	// CutBytes is how many bytes behind End were cut, because a power cut had torn them.
	CutBytes uint64
	// PaddedBytes is how many bytes before End were filled in: pads, marker lines.
	PaddedBytes uint64
	// From is from where on positions may hold something else than before. At most End.
	From LSN
	// Time is when that was.
	Time time.Time
	// Reason is a vellum_recovery_reason of vellum.h.
	Reason int
}

func recoveryOf(from *C.vellum_recovery) *Recovery {
	if from.recovered == 0 {
		return nil
	}
	return &Recovery{
		End:         LSN(from.end),
		Durable:     LSN(from.durable),
		CutBytes:    uint64(from.cut_bytes),
		PaddedBytes: uint64(from.padded_bytes),
		From:        LSN(from.from),
		Time:        time.Unix(int64(from.time_s), 0),
		Reason:      int(from.reason),
	}
}

// Recovered is the recovery that this opening of the log made, or nil. Only the first opener after
// a power cut, or after the loss of the control file, makes one.
func (l *Log) Recovered() (*Recovery, error) {
	if err := l.users.enter(); err != nil {
		return nil, err
	}
	defer l.users.leave()
	var recovery C.vellum_recovery
	recovery.struct_size = C.sizeof_vellum_recovery
	if err := failure(C.vg_recovered(l.c, &recovery)); err != nil {
		return nil, err
	}
	return recoveryOf(&recovery), nil
}
