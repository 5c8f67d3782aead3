// Package lookup reads records of a log by their positions. Records that are asked for in their
// order are read ahead.
package lookup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"vellum"
)

const (
	// As many readers may be in use or wait to be used. Each has four files open at most.
	readersMax = 4
	// A reader passes over so many bytes of other records rather than to read at another place.
	passedMax = 128 << 10
	// How long one waits for records that are being written in front of a record, and how often. They
	// are complete within microseconds, where its thread is not interrupted.
	pause    = 100 * time.Microsecond
	waitsMax = 100
)

// Lookup has readers of a log that wait where the next record may be asked for. Any number of
// goroutines may use it at once.
type Lookup struct {
	log *vellum.Log
	mu  sync.Mutex
	// The unused ones, the one that was used last at the end.
	idle []*vellum.Reader
	made int
	// Positions that no reader was near, the newest at the end.
	missed [readersMax]vellum.LSN
}

// New makes a Lookup, whose readers are closed with the log.
func New(log *vellum.Log) *Lookup {
	return &Lookup{log: log}
}

// Read returns a copy of the record at a position. Errors are those of vellum.Log.ReadAt.
//
// The record may lie behind one that is still being written, such as that of a commit. Read waits for
// that one.
func (l *Lookup) Read(at vellum.LSN) ([]byte, error) {
	record, err := l.tryRead(at)
	if err == io.EOF || errors.Is(err, vellum.ErrOutOfRange) {
		if err := WaitFor(l.log, at); err != nil {
			return nil, err
		}
		return l.tryRead(at)
	}
	return record, err
}

// WaitFor waits until a record can be read that was appended to a log.
func WaitFor(log *vellum.Log, at vellum.LSN) error {
	for range waitsMax {
		if at < log.Published() || at >= log.Tail() {
			return nil
		}
		time.Sleep(pause)
	}
	// An unfinished range is filled, or there is a reason why it cannot be.
	return log.Commit(context.Background(), at)
}

func (l *Lookup) tryRead(at vellum.LSN) ([]byte, error) {
	reader, err := l.take(at)
	if err != nil {
		return nil, err
	}
	if reader == nil {
		return l.log.ReadAt(at, nil)
	}
	record, err := read(reader, at)
	l.giveBack(reader)
	return record, err
}

// take returns a reader for a position that is read in a row with others; otherwise nil, also where
// all readers are in use.
func (l *Lookup) take(at vellum.LSN) (*vellum.Reader, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, reader := range l.idle {
		if isBehind(reader.Position(), at) {
			return l.takeIdle(i), nil
		}
	}
	switch {
	case !l.isInARow(at):
		return nil, nil
	case l.made < readersMax:
		reader, err := l.log.NewReader(at)
		if err == nil {
			l.made++
		}
		return reader, err
	case len(l.idle) > 0:
		return l.takeIdle(0), nil
	default:
		return nil, nil
	}
}

func (l *Lookup) takeIdle(i int) *vellum.Reader {
	reader := l.idle[i]
	l.idle = append(l.idle[:i], l.idle[i+1:]...)
	return reader
}

// isInARow reports whether a position is a little behind one that was asked for before.
func (l *Lookup) isInARow(at vellum.LSN) bool {
	for i, missed := range l.missed {
		if missed != 0 && isBehind(missed, at) {
			l.missed[i] = 0
			return true
		}
	}
	copy(l.missed[:], l.missed[1:])
	l.missed[readersMax-1] = at
	return false
}

// isBehind reports whether a reader at a position comes to another one without a seek.
func isBehind(position, at vellum.LSN) bool {
	return position <= at && at-position <= passedMax
}

func (l *Lookup) giveBack(reader *vellum.Reader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = append(l.idle, reader)
}

func read(reader *vellum.Reader, at vellum.LSN) ([]byte, error) {
	if isBehind(reader.Position(), at) {
		// Where this fails, the records before may be trimmed, or the log has grown by none.
		if record, err := pass(reader, at); err == nil && record != nil {
			return record, nil
		}
	}
	if err := reader.Seek(at); err != nil {
		return nil, err
	}
	record, err := reader.Next()
	if err != nil {
		return nil, err
	}
	if record.LSN != at {
		return nil, fmt.Errorf("%w: no record begins at %d", vellum.ErrOutOfRange, at)
	}
	return record.Clone().Data, nil
}

// pass continues to a position, and returns its record, or nil where no record begins there.
func pass(reader *vellum.Reader, at vellum.LSN) ([]byte, error) {
	for {
		record, err := reader.Next()
		if err != nil || record.LSN > at {
			return nil, err
		}
		if record.LSN == at {
			return record.Clone().Data, nil
		}
	}
}
