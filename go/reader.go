package vellum

// #cgo noescape vg_reader_fill
// #cgo nocallback vg_reader_fill
// #include "bridge.h"
import "C"

import (
	"context"
	"io"
	"iter"
	"math"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// How much a reader fetches with one call of C. It begins with little, for a caller that reads one
// record.
const (
	fetchMin = 16 << 10
	fetchMax = 512 << 10
)

const headBytes = int(unsafe.Sizeof(C.vg_head{}))

// Record is a record of a log, as a reader lends it.
type Record struct {
	// LSN is the position of the record.
	LSN LSN
	// Next is the position of the next one.
	Next LSN
	// Data is the bytes of the record; in a text log a line with its newline, which only the last
	// may lack. They are lent until the next call with the same reader: see Clone.
	Data []byte
	// Time is when the record was appended. It is zero in a log without [Envelope].
	Time time.Time
	// Writer is the process that appended it, from when it opened the log until it closed it. The low
	// 32 bits are its process id, the high ones are random. 0 in a log without [Envelope].
	Writer uint64
}

// Clone is the same record with a copy of its data, which the caller may keep.
func (r Record) Clone() Record {
	r.Data = append([]byte(nil), r.Data...)
	return r
}

// ReaderOption says how a [Reader] reads.
type ReaderOption func(*readerOptions)

type readerOptions struct {
	stop       LSN
	skipDamage bool
	flags      C.uint32_t
}

func newReaderOptions(options []ReaderOption) readerOptions {
	o := readerOptions{stop: math.MaxUint64}
	for _, option := range options {
		option(&o)
	}
	return o
}

// StopAt has a reader return the records that start before end, and wait for none there.
func StopAt(end LSN) ReaderOption { return func(o *readerOptions) { o.stop = end } }

// SkipDamage has a reader continue behind missing files and damaged ranges, instead of returning
// [ErrCorrupt]. [Reader.Gaps] returns the skipped ranges.
func SkipDamage() ReaderOption { return func(o *readerOptions) { o.skipDamage = true } }

// OnlyDurable has a reader return a record only after some process has committed it. It commits
// nothing itself. After a failed write or sync it returns [ErrPoisoned], when it has returned
// everything that is durable.
func OnlyDurable() ReaderOption {
	return func(o *readerOptions) { o.flags |= C.VELLUM_READ_DURABLE }
}

// Reader is a place in a log, and the way to the next record. One goroutine may use it at a time;
// Close may be called by any.
//
// A reader fetches up to 512 KiB of records with one call of C, so that a record costs little more
// than its bytes.
type Reader struct {
	log     *Log // keeps the log open
	handle  *readerHandle
	options readerOptions
	cleanup runtime.Cleanup
	buffer  []byte
	left    []byte // of the buffer: records that were fetched and not returned
	at      LSN    // where to continue
	seen    uint64 // how often the log had been truncated
}

// readerHandle is the part of a reader that is closed with its log.
type readerHandle struct {
	log  *core
	mu   sync.Mutex
	c    *C.vg_reader // nil where it is closed
	file *os.File     // has the reader's descriptor wait in Go's runtime; nil without one
}

func (h *readerHandle) close() {
	h.mu.Lock()
	file := h.file
	h.release()
	h.mu.Unlock()
	// Not with the lock: this waits for a goroutine that checks for more records, and a check takes
	// the lock.
	if file != nil {
		_ = file.Close()
	}
}

// pollable is the descriptor of a reader that follows; nil where it is closed.
func (h *readerHandle) pollable() *os.File {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.file
}

// release gives back what is C's. The descriptor, which is Go's, is left to the caller.
func (h *readerHandle) release() {
	if h.c != nil {
		C.vg_reader_close(h.c)
	}
	h.c, h.file = nil, nil
}

// NewReader makes a reader that starts at the record at from, or at the oldest for 0.
//
// Errors: [ErrTrimmed] for a position that is no longer kept, [ErrOutOfRange] for one beyond the
// end, or where no record (in a text log: no line) starts.
//
// Close it; a log that is closed closes its readers.
func (l *Log) NewReader(from LSN, options ...ReaderOption) (*Reader, error) {
	o := newReaderOptions(options)
	return l.newReader(o, func(c **C.vg_reader) C.vg_answer {
		return C.vg_reader_open(l.c, C.uint64_t(from), o.flags, c)
	})
}

// NewReaderAtTime makes a reader that starts at the first record that was appended at a time or
// later, or at the end of the log.
//
// Behind it may come records with an earlier time, because clocks are set back and appends overlap.
// In a log without [Envelope] it starts earlier: in a text log at the file whose name has that time
// or the last one before it; in a framed log that removes records by age at the start of a segment.
//
// Errors: [ErrUnsupported] where nothing in the log tells a time; otherwise as for [Log.NewReader].
// Cost: one record is read for each doubling of the number of segments, then up to one segment.
func (l *Log) NewReaderAtTime(from time.Time, options ...ReaderOption) (*Reader, error) {
	o := newReaderOptions(options)
	return l.newReader(o, func(c **C.vg_reader) C.vg_answer {
		return C.vg_reader_open_at_time(l.c, C.uint64_t(max(from.UnixNano(), 0)), o.flags, c)
	})
}

func (l *Log) newReader(o readerOptions, open func(**C.vg_reader) C.vg_answer) (*Reader, error) {
	if err := l.users.enter(); err != nil {
		return nil, err
	}
	defer l.users.leave()
	seen := l.truncations.Load()
	var c *C.vg_reader
	if err := failure(open(&c)); err != nil {
		return nil, err
	} else if c == nil {
		return nil, ErrClosed
	}
	handle := &readerHandle{log: l.core, c: c}
	r := &Reader{log: l, handle: handle, options: o, seen: seen}
	r.at = LSN(C.vg_reader_position(c))
	if err := handle.set(o); err != nil {
		handle.close()
		return nil, err
	}
	l.keep(handle)
	r.cleanup = runtime.AddCleanup(r, func(handle *readerHandle) { handle.drop() }, handle)
	return r, nil
}

// set has a new reader read as the options say.
func (h *readerHandle) set(o readerOptions) error {
	if o.skipDamage {
		if err := failure(C.vg_reader_skip_damage(h.c, 1)); err != nil {
			return err
		}
	}
	return failure(C.vg_reader_stop_at(h.c, C.uint64_t(o.stop)))
}

func (h *readerHandle) drop() {
	h.close()
	h.log.drop(h)
}

// Close closes the reader. A call that waits in another goroutine returns [ErrClosed].
func (r *Reader) Close() error {
	r.cleanup.Stop()
	r.handle.drop()
	return nil
}

// Next is the next record, or [io.EOF] at the end of the published records; later calls continue
// there. The record is lent until the next call.
//
// Errors: [ErrTrimmed] when the position has been trimmed away meanwhile; [ErrOutOfRange] when it
// was truncated away; [ErrCorrupt] for damage, with file and position; [ErrClosed].
//
// Cost: a call of C for up to 512 KiB of records, a read of the file for 256 KiB, a checksum and a
// copy of the record. Behind [io.EOF] each call is one of C.
func (r *Reader) Next() (Record, error) {
	if r.seen != r.log.truncations.Load() {
		if err := r.again(); err != nil {
			return Record{}, err
		}
	}
	if len(r.left) == 0 {
		if err := r.fetch(); err != nil {
			return Record{}, err
		}
	}
	return r.take(), nil
}

// take returns the first record of those that were fetched.
func (r *Reader) take() Record {
	head := (*C.vg_head)(unsafe.Pointer(unsafe.SliceData(r.left)))
	end := headBytes + int(head.len)
	record := Record{
		LSN:    LSN(head.lsn),
		Next:   LSN(head.next_lsn),
		Data:   r.left[headBytes:end:end],
		Writer: uint64(head.writer),
	}
	if head.time_ns != 0 {
		record.Time = time.Unix(0, int64(head.time_ns))
	}
	r.left = r.left[(end+7)&^7:]
	r.at = record.Next
	return record
}

// again returns to the position of the caller: the records that were read ahead may have been
// truncated away.
func (r *Reader) again() error {
	seen := r.log.truncations.Load()
	r.left = nil
	h := r.handle
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.c == nil {
		return ErrClosed
	}
	err := failure(C.vg_reader_seek(h.c, C.uint64_t(r.at)))
	if err == nil {
		r.seen = seen
	}
	return err
}

// fetch fills the buffer, which is empty; io.EOF where there is nothing.
func (r *Reader) fetch() error {
	h := r.handle
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.c == nil {
		return ErrClosed
	}
	r.grow(fetchMin)
	for {
		answer := C.vg_reader_fill(h.c, bytesOf(r.buffer), C.size_t(len(r.buffer)))
		switch {
		case answer.error != nil:
			return takeError(answer.error)
		case answer.status == C.VELLUM_RECORD_TOO_LARGE:
			r.grow(int(answer.value))
			continue
		case answer.value == 0:
			r.at = LSN(answer.other)
			return io.EOF
		}
		r.left = r.buffer[:answer.value]
		// The next call fetches more, where this one could have.
		if answer.status == C.VELLUM_OK && len(r.buffer) < fetchMax {
			r.buffer = make([]byte, min(4*len(r.buffer), fetchMax))
		}
		return nil
	}
}

// grow makes the buffer at least so large; a larger one stays for as long as it is needed.
func (r *Reader) grow(size int) {
	isTooLarge := len(r.buffer) > 2*fetchMax && size <= fetchMax
	if len(r.buffer) < size || isTooLarge {
		r.buffer = make([]byte, max(size, min(len(r.buffer), fetchMax)))
	}
}

// Position is where the next record will be looked for: behind all that was returned or left out,
// and not behind a record that is to come.
func (r *Reader) Position() LSN { return r.at }

// Seek continues at to, where a record starts, or at the oldest record for 0. This is how to read
// many records at random: the reader keeps the files that it read last open.
//
// Errors: as for [Log.NewReader]; the position stays as it was.
func (r *Reader) Seek(to LSN) error {
	h := r.handle
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.c == nil {
		return ErrClosed
	}
	if err := failure(C.vg_reader_seek(h.c, C.uint64_t(to))); err != nil {
		_ = failure(C.vg_reader_seek(h.c, C.uint64_t(r.at)))
		r.left = nil
		return err
	}
	r.left, r.at = nil, LSN(C.vg_reader_position(h.c))
	// A caller that seeks reads little at each place.
	if len(r.buffer) > fetchMin {
		r.buffer = nil
	}
	return nil
}

// All yields the records up to the end of the published ones, or [StopAt]. An error comes as the
// last item. A later call continues there.
func (r *Reader) All() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for {
			record, err := r.Next()
			if err == io.EOF {
				return
			}
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}

// Follow yields the records of all processes as they come, and waits at the end of the published
// ones. It ends when ctx ends, and at [StopAt]; where the log or the reader is closed it yields
// [ErrClosed]. An error comes as the last item.
//
// Cost: three file descriptors as long as the reader is open. No thread: the wait is in Go's
// runtime. At the end of the log it looks again 10 times a second.
func (r *Reader) Follow(ctx context.Context) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if err := r.handle.makePollable(r); err != nil {
			yield(Record{}, err)
			return
		}
		for ctx.Err() == nil {
			record, err := r.Next()
			if err == io.EOF {
				if r.at >= r.options.stop {
					return
				}
				err = r.wait(ctx)
				if err == nil {
					continue
				}
			}
			if ctx.Err() != nil && err != nil {
				return
			}
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}

// makePollable gives the reader a descriptor, which is made together with a reader of C.
func (h *readerHandle) makePollable(r *Reader) error {
	if err := h.log.users.enter(); err != nil {
		return err
	}
	defer h.log.users.leave()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.c == nil {
		return ErrClosed
	}
	if h.file != nil {
		return nil
	}
	r.options.flags |= C.VELLUM_READ_POLLABLE
	other := readerHandle{}
	if err := failure(C.vg_reader_open(h.log.c, C.uint64_t(r.at), r.options.flags, &other.c)); err != nil {
		return err
	}
	if err := other.set(r.options); err != nil {
		other.release()
		return err
	}
	file, err := fileOf(int(C.vg_reader_fd(other.c)))
	if err != nil {
		other.release()
		return err
	}
	C.vg_reader_close(h.c)
	h.c, h.file, r.left = other.c, file, nil
	return nil
}

// fileOf has a descriptor, which stays the library's, wait in Go's runtime.
func fileOf(fd int) (*os.File, error) {
	own, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_DUPFD_CLOEXEC, 0)
	if errno != 0 {
		return nil, &Error{Code: ErrIO, Errno: errno, Message: "copy a file descriptor: " + errno.Error()}
	}
	// Nothing is read from it. This tells os.NewFile that it can be waited for.
	if err := syscall.SetNonblock(int(own), true); err != nil {
		_ = syscall.Close(int(own))
		return nil, err
	}
	return os.NewFile(own, "vellum reader"), nil
}

// wait waits until there may be more records, which are then fetched.
func (r *Reader) wait(ctx context.Context) error {
	file := r.handle.pollable()
	if file == nil {
		return ErrClosed
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = file.SetReadDeadline(time.Unix(1, 0))
		close(ended)
	})
	defer func() {
		if !stop() {
			<-ended
			_ = file.SetReadDeadline(time.Time{})
		}
	}()
	conn, err := file.SyscallConn()
	if err != nil {
		return ErrClosed
	}
	var fetched error
	err = conn.Read(func(uintptr) bool {
		// A record that comes after this check makes the descriptor readable once more.
		fetched = r.fetch()
		return fetched != io.EOF || r.at >= r.options.stop || r.seen != r.log.truncations.Load()
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case r.handle.pollable() == nil:
		return ErrClosed
	case err != nil:
		return err
	case fetched == io.EOF:
		return nil
	}
	return fetched
}

// Gap is a stretch of a log that cannot be read: a file that is gone, empty or cut short, or damage.
type Gap struct {
	// From is where it begins, and To where the log continues.
	From, To LSN
	// BytesMax is how many bytes are missing, at most.
	BytesMax uint64
	// After is when what is missing was appended, at the earliest, and Before at the latest; zero
	// where nothing tells.
	After, Before time.Time
	// Path is the file; of a text log's that is gone, the pattern of its name.
	Path string
	// Text is its fault and the remedy: a sentence without its end.
	Text string
}

func gapOf(from *C.vellum_gap) Gap {
	return Gap{
		From:     LSN(from.from),
		To:       LSN(from.to),
		BytesMax: uint64(from.bytes_max),
		After:    timeOf(from.after_s),
		Before:   timeOf(from.before_s),
		Path:     textOf(from.path),
		Text:     textOf(from.text),
	}
}

// timeOf is a time in seconds since 1970, where it is known.
func timeOf(seconds C.uint64_t) time.Time {
	if seconds == 0 || seconds == math.MaxUint64 {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0)
}

// Gaps is the ranges that a reader with [SkipDamage] has skipped since the last call, oldest first.
func (r *Reader) Gaps() ([]Gap, error) {
	h := r.handle
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.c == nil {
		return nil, ErrClosed
	}
	var gaps []Gap
	for {
		gap := C.vellum_gap{struct_size: C.sizeof_vellum_gap}
		answer := C.vg_reader_take_gap(h.c, &gap)
		if answer.status != C.VELLUM_OK {
			return gaps, failure(answer)
		}
		gaps = append(gaps, gapOf(&gap))
	}
}
