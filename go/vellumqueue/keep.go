package vellumqueue

import (
	"context"
	"errors"

	"vellum"
)

// How much there may be to read when the queue is opened, in segments and acknowledgements.
const (
	unsavedSegments = 4
	unsavedAcks     = 16 << 10
)

// look has the state saved where enough has changed. The caller holds mu.
func (q *Queue) look() {
	segment := q.segment
	isDue := q.saved.acks >= unsavedAcks || q.end-min(q.saved.at, q.end) >= unsavedSegments*segment ||
		q.flight.floor()-min(q.saved.floor, q.flight.floor()) >= segment
	if isDue {
		ring(q.save)
	}
}

// keep saves the state when it is due.
func (q *Queue) keep() {
	defer q.keeper.Done()
	for {
		select {
		case <-q.save:
			// A failed step is tried again at the next occasion; Close returns the error.
			_ = q.saveState()
		case <-q.closing:
			return
		}
	}
}

// keepUp waits for files to go where those that are left take more than they should.
func (q *Queue) keepUp() error {
	q.mu.Lock()
	behind := q.flight.floor() - min(q.saved.floor, q.flight.floor())
	q.mu.Unlock()
	if behind < q.segment {
		return nil
	}
	return q.saveState()
}

// makeSpace removes unneeded files, on a disk that is full. False where none has gone since the
// state was saved last.
func (q *Queue) makeSpace() bool {
	q.mu.Lock()
	saved, floor := q.saved.floor, q.flight.floor()
	q.mu.Unlock()
	if floor == saved {
		return false
	}
	// There may be no space for a state, and some for the next records.
	_ = q.saveState()
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.saved.floor != saved
}

// saveState appends what is outstanding, has recovery begin there, and removes files before the
// oldest message. Without space for a record it does only the last.
func (q *Queue) saveState() error {
	q.saves.Lock()
	defer q.saves.Unlock()
	floor, err := q.appendState()
	if err != nil && !errors.Is(err, vellum.ErrNoSpace) {
		return err
	}
	q.mu.Lock()
	hasMoved := floor != q.saved.floor
	q.mu.Unlock()
	if !hasMoved {
		return err
	}
	if moved := q.cursor.Commit(floor); moved != nil {
		return moved
	}
	if _, trimmed := q.log.Trim(floor); trimmed != nil {
		return trimmed
	}
	q.mu.Lock()
	q.saved.floor = floor
	q.mu.Unlock()
	ring(q.space)
	return err
}

func (q *Queue) appendState() (floor vellum.LSN, err error) {
	// No goroutine appends an acknowledgement meanwhile: it would be neither in the state nor behind
	// it.
	q.saving.Lock()
	q.mu.Lock()
	now := state{
		front:       q.flight.front,
		outstanding: q.flight.outstanding(),
		acked:       q.flight.acked.sorted(),
		count:       q.stats.Len,
	}
	floor = q.flight.floor()
	q.mu.Unlock()
	record := now.encode()
	at, err := q.log.Append(context.Background(), record)
	if err == nil {
		q.mu.Lock()
		q.end = max(q.end, at+vellum.LSN(len(record)+recordBytes))
		q.saved.at, q.saved.acks = at, 0
		q.mu.Unlock()
	}
	q.saving.Unlock()
	if err != nil {
		return floor, err
	}
	return floor, q.log.SetCheckpoint(at)
}

// recover finds out what was not acknowledged.
func (q *Queue) recover() error {
	cursor, err := q.log.Cursor(cursorName, 0)
	if err != nil {
		return err
	}
	q.cursor = cursor
	if err := cursor.Hold(0, 0); err != nil {
		return err
	}
	floor, err := cursor.Position()
	if err != nil {
		return err
	}
	stat, err := q.log.Stat()
	if err != nil {
		return err
	}
	now, from := &state{front: floor}, floor
	q.segment = vellum.LSN(stat.SegmentBytes)
	if stat.LostEnd > floor {
		// The state counts what was lost. All that is left is from the floor on.
		q.seen = positionSet{}
	} else if saved := q.log.Checkpoint(); saved != 0 && saved >= floor {
		record, err := q.log.ReadAt(saved, nil)
		if err != nil {
			return err
		}
		if now, err = parseState(record); err != nil {
			return err
		}
		from = saved
	}
	if err := q.replay(now, from); err != nil {
		return err
	}
	q.seen = nil
	q.saved = savedAt{at: from, floor: floor}
	q.end = q.log.Published()
	q.reader, err = q.log.NewReader(now.front)
	return err
}

// replay applies the records from a position on to the state that was there.
func (q *Queue) replay(now *state, from vellum.LSN) error {
	outstanding := positionSet{}
	for _, lsn := range now.outstanding {
		outstanding[lsn] = struct{}{}
	}
	q.flight = newFlight(now.front)
	q.flight.acked = positionSet{}
	for _, lsn := range now.acked {
		q.flight.acked[lsn] = struct{}{}
	}
	q.stats.Len = now.count
	reader, err := q.log.NewReader(from)
	if err != nil {
		return err
	}
	defer reader.Close()
	for record, err := range reader.All() {
		if err != nil {
			return err
		}
		if len(record.Data) == 0 {
			return errForeign(nil)
		}
		switch record.Data[0] {
		case isMessage:
			q.stats.Len++
			if q.seen != nil {
				q.seen[record.LSN] = struct{}{}
			}
		case isAck:
			if err := q.replayAck(outstanding, record.Data); err != nil {
				return err
			}
		}
	}
	return q.takeIn(outstanding.sorted())
}

func (q *Queue) replayAck(outstanding positionSet, record []byte) error {
	positions, err := parseAcks(record)
	for _, lsn := range positions {
		_, isKnown := q.flight.acked[lsn]
		switch {
		case lsn < q.flight.front:
			if outstanding.remove(lsn) {
				q.stats.Len--
			}
		case !isKnown && (q.seen == nil || q.seen.remove(lsn)):
			q.flight.acked[lsn] = struct{}{}
			q.stats.Len--
		}
	}
	return err
}

// takeIn makes messages ready that had been given out before.
func (q *Queue) takeIn(outstanding []vellum.LSN) error {
	var buffer []byte
	for _, lsn := range outstanding {
		record, err := q.log.ReadAt(lsn, buffer)
		if err != nil {
			return err
		}
		buffer = record
		if len(record) == 0 || record[0] != isMessage {
			return errForeign(record)
		}
		key, _, err := parseMessage(record)
		if err != nil {
			return err
		}
		if e := q.flight.add(lsn, key); !e.isHeld {
			q.flight.makeReady(e)
		}
	}
	return nil
}
