package otelvellum

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"vellum"
)

const (
	// A checkpoint is made when so much was appended, or counts no longer, since the last one; and
	// not before eight times its own length was. Opening reads no more than that.
	checkpointEvery = 16 * mebibyte
	// Values that are gone make one due only when they are this part of those that are left: a long
	// queue, whose checkpoint has many keys, gives more space back at once.
	garbagePart = 16
	// So much is moved while others wait.
	movedAtOnce = mebibyte
)

// noticeGrowth has a checkpoint made where it is due.
func (c *client) noticeGrowth() {
	due := max(checkpointEvery, 8*c.checkpointBytes)
	grown := uint64(c.log.Published() - c.checkpointed)
	if grown >= due || grown+c.garbage >= max(due, c.live/garbagePart) {
		c.askForCheckpoint()
	}
}

func (c *client) askForCheckpoint() {
	if c.closed {
		return
	}
	select {
	case c.due <- struct{}{}:
	default: // it will be made
	}
}

// maintain gives space back whenever there may be some, and has notes committed. Their timer is made
// here: one that a caller makes in a bubble of testing/synctest ends with the bubble.
func (c *client) maintain() {
	defer c.stopped.Done()
	for {
		select {
		case <-c.noted:
			time.AfterFunc(notedWithin, c.commitNotes)
		case _, isOpen := <-c.due:
			if !isOpen {
				return
			}
			if err := c.tidy(); err != nil {
				c.logger.Warn("giving space back failed; it is tried again", zap.Error(err))
			}
		}
	}
}

func (c *client) tidy() error {
	c.tidying.Lock()
	defer c.tidying.Unlock()
	return errors.Join(c.compact(), c.checkpoint())
}

// reclaim gives space back on a full disk: of values that are gone, if that may be more than a
// checkpoint takes, and of records that wait to be written to their place. It reports whether there
// may be some now.
func (c *client) reclaim() bool {
	c.mu.RLock()
	isWorthIt := !c.closed && c.garbage > mebibyte+2*c.checkpointBytes
	c.mu.RUnlock()
	isTidy := isWorthIt && c.tidy() == nil
	// Nothing waits for a record of its own here: the more is written to its place, the better.
	_, err := c.log.Sync(context.Background())
	return isTidy || err == nil
}

// checkpoint appends the places of all values, which is where recovery begins, and removes what is
// before the oldest value.
//
// It may be interrupted anywhere: until its position is stored with the log, recovery begins at the
// one before, and everything behind that one is still there.
func (c *client) checkpoint() error {
	position, oldest, err := c.appendCheckpoint()
	if err != nil {
		return err
	}
	if err := c.log.SetCheckpoint(position); err != nil {
		return err
	}
	c.waitForReaders()
	_, err = c.log.Trim(oldest)
	return err
}

// waitForReaders waits for readers that looked places up before the checkpoint: the records there
// may count no longer. The places that are looked up now are behind the removed part.
func (c *client) waitForReaders() {
	c.reading.Lock()
	defer c.reading.Unlock()
}

// appendCheckpoint returns the position of the checkpoint, and the oldest one that counts.
func (c *client) appendCheckpoint() (position, oldest vellum.LSN, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	record := encodeCheckpoint(c.places)
	position, err = c.log.Append(context.Background(), record)
	if errors.Is(err, vellum.ErrNoSpace) && c.reserve.use() {
		position, err = c.log.Append(context.Background(), record)
	}
	if err != nil {
		// Not again with the next change, but when there is as much to be won once more.
		c.checkpointed, c.garbage = c.log.Published(), 0
		return 0, 0, err
	}
	oldest = min(position, c.oldest())
	c.checkpointed, c.checkpointBytes, c.garbage = c.log.Published(), uint64(len(record)), 0
	return position, oldest, nil
}

// oldest returns the position of the oldest value, or the end of the log.
func (c *client) oldest() vellum.LSN {
	oldest := c.log.Published()
	for _, place := range c.places {
		oldest = min(oldest, place.position)
	}
	return oldest
}

// compact moves the oldest values to the end of the log, where too much behind them is no values.
func (c *client) compact() error {
	keys := c.keysToMove()
	for len(keys) > 0 {
		moved, err := c.move(keys)
		if err != nil {
			return err
		}
		keys = keys[moved:]
	}
	return nil
}

type keyPlace struct {
	key   string
	place place
}

// keysToMove returns the keys of the oldest values, as many as have to go for the rest of the log to
// be as much garbage as it may be.
func (c *client) keysToMove() []keyPlace {
	c.mu.RLock()
	defer c.mu.RUnlock()
	minimum := uint64(c.config.Compaction.MinimumMiB) * mebibyte
	allowed := max(minimum, uint64(float64(c.live)/(1-c.config.Compaction.GarbageRatio)))
	end := c.log.Published()
	if uint64(end-c.oldest()) <= allowed {
		return nil
	}
	var all []keyPlace
	for key, place := range c.places {
		all = append(all, keyPlace{key, place})
	}
	slices.SortFunc(all, func(a, b keyPlace) int {
		if a.place.position < b.place.position {
			return -1
		}
		return 1
	})
	var moved uint64
	for i, at := range all {
		if uint64(end-at.place.position)+moved <= allowed {
			return all[:i]
		}
		moved += recordOverhead + uint64(at.place.bytes)
	}
	return all
}

// move appends some of the values once more, if they are still where they were. It returns how many
// of the keys it has seen to.
func (c *client) move(keys []keyPlace) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, errClosed
	}
	batch := c.log.NewBatch()
	var moving []keyPlace
	seen, bytes := 0, 0
	for _, at := range keys {
		if seen++; c.places[at.key] != at.place {
			continue
		}
		record, err := c.look.Read(at.place.position)
		if err != nil {
			return 0, err
		}
		batch.Push(record)
		moving = append(moving, at)
		if bytes += len(record); bytes >= movedAtOnce {
			break
		}
	}
	if len(moving) == 0 {
		return seen, nil
	}
	positions, err := batch.AppendEach(context.Background())
	if err != nil {
		return 0, err
	}
	for i, at := range moving {
		c.put(at.key, place{position: positions[i], bytes: at.place.bytes})
	}
	return seen, nil
}

// recover reads the newest checkpoint and the records behind it.
func (c *client) recover() error {
	from := c.log.Checkpoint()
	if from != 0 {
		record, err := c.log.ReadAt(from, nil)
		if err == nil {
			err = decodeCheckpoint(record, c.put)
		}
		if err != nil {
			return err
		}
		c.checkpointBytes = uint64(len(record))
	}
	newest, err := c.replay(from)
	if err != nil {
		return err
	}
	c.checkpointed = max(from, c.log.Begin())
	if all := uint64(c.log.Published() - c.log.Begin()); all > c.live {
		c.garbage = all - c.live
	}
	if newest == 0 {
		return nil
	}
	// The records of a killed collector are acted on now: no power cut may take it back.
	return c.log.Commit(context.Background(), newest)
}

// replay takes records in, and returns the position of the newest, or 0 for none.
func (c *client) replay(from vellum.LSN) (newest vellum.LSN, err error) {
	reader, err := c.log.NewReader(from)
	if err != nil {
		return 0, err
	}
	defer reader.Close()
	for record, err := range reader.All() {
		if err == nil {
			err = c.replayOne(record)
		}
		if err != nil {
			return 0, err
		}
		newest = record.LSN
	}
	return newest, nil
}

func (c *client) replayOne(record vellum.Record) error {
	if len(record.Data) == 0 {
		return errNotARecord
	}
	switch record.Data[0] {
	case kindSet:
		key, _, err := decodeSet(record.Data)
		if err == nil {
			c.put(string(key), place{position: record.LSN, bytes: uint32(len(record.Data))})
		}
		return err
	case kindDelete:
		c.drop(string(record.Data[1:]))
		return nil
	case kindCheckpoint:
		return nil // the one that was read, or one that was not finished
	default:
		return errNotARecord
	}
}
