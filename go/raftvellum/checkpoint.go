package raftvellum

import (
	"context"
	"errors"
	"fmt"

	"vellum"
	"vellum/internal/lookup"
)

// makeCheckpoint makes one that is due. If it fails it is tried again when the log has grown
// further; the calls that wanted to grow it have met the same failure.
func (s *Store) makeCheckpoint() {
	defer s.making.Unlock()
	_ = s.checkpoint()
}

func (s *Store) checkpointIfGrown() error {
	s.mu.RLock()
	hasGrown := !s.closed && s.log.Published() > s.checkpointed+closingBytes
	s.mu.RUnlock()
	if !hasGrown {
		return nil
	}
	return s.checkpoint()
}

// checkpoint appends what recovery begins with, and trims what no longer counts.
//
// It may be interrupted anywhere: until its position is stored with the log, recovery begins at
// the one before, and passes over the records of this one.
func (s *Store) checkpoint() error {
	s.checkpointing.Lock()
	defer s.checkpointing.Unlock()
	s.flight.Lock()
	position, oldest, err := s.appendCheckpoint()
	s.flight.Unlock()
	if err != nil {
		return err
	}
	if err := s.log.SetCheckpoint(position); err != nil {
		return err
	}
	_, err = s.log.Trim(min(oldest, position))
	return err
}

// reclaim gives back the files that only have deleted entries, and reports whether there were any.
func (s *Store) reclaim() bool {
	before := s.log.Begin()
	return s.checkpoint() == nil && s.log.Begin() > before
}

// appendCheckpoint returns the position of the checkpoint, and that of the oldest entry.
func (s *Store) appendCheckpoint() (position, oldest vellum.LSN, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, 0, ErrClosed
	}
	if err := s.appendBlocks(); err != nil {
		return 0, 0, err
	}
	record := encodeCheckpoint(s.entries, s.values)
	if position, err = s.log.Append(context.Background(), record); err != nil {
		return 0, 0, err
	}
	s.checkpointed = s.log.Published()
	oldest, err = s.oldest()
	return position, oldest, err
}

// appendBlocks appends the positions of entries that no record has.
func (s *Store) appendBlocks() error {
	unstored := s.entries.unstored()
	if len(unstored) == 0 {
		return nil
	}
	batch := s.log.NewBatch()
	for _, block := range unstored {
		batch.Push(encodeBlock(block.positions))
	}
	positions, err := batch.AppendEach(context.Background())
	if err != nil {
		return err
	}
	for i, block := range unstored {
		s.entries.setStored(block, positions[i])
	}
	return nil
}

// recoverStore reads the newest checkpoint and the records behind it.
func recoverStore(log *vellum.Log) (*Store, error) {
	s := &Store{
		log:     log,
		look:    lookup.New(log),
		batch:   log.NewBatch(),
		entries: &index{},
		values:  map[string][]byte{},
	}
	from := log.Checkpoint()
	if err := refuseLost(log, from); err != nil {
		return nil, err
	}
	newest, err := s.readRecords(from)
	if err != nil {
		return nil, err
	}
	if err := s.dropTrimmed(); err != nil {
		return nil, err
	}
	if newest != 0 {
		// A killed process may have left records that are not durable: the node acts on them now.
		if err := log.Commit(context.Background(), newest); err != nil {
			return nil, err
		}
	}
	if last, ok := s.entries.last(); ok {
		s.visible = last + 1
	}
	s.checkpointed = max(from, log.Begin())
	return s, nil
}

// refuseLost refuses a log in which records are missing that recovery needs: the newest vote may be
// one of them.
func refuseLost(log *vellum.Log, from vellum.LSN) error {
	stat, err := log.Stat()
	if err != nil || stat.LostEnd <= from {
		return err
	}
	return fmt.Errorf("raftvellum: %s lacks records between %d and %d, which were lost: the vote of the "+
		"node may be among them, and it must not vote twice in a term. Remove the store, and let the "+
		"node join as a new one", log.Path(), stat.LostFrom, stat.LostEnd)
}

// readRecords reads a checkpoint and the records behind it; all records for 0. It returns the
// position of the newest record, or 0 for none.
func (s *Store) readRecords(from vellum.LSN) (newest vellum.LSN, err error) {
	reader, err := s.log.NewReader(from)
	if err != nil {
		return 0, err
	}
	defer reader.Close()
	if from != 0 {
		record, err := reader.Next()
		if err != nil {
			return 0, err
		}
		if s.entries, s.values, err = decodeCheckpoint(record.Data); err != nil {
			return 0, err
		}
		newest = record.LSN
	}
	for record, err := range reader.All() {
		if err == nil {
			err = s.apply(record)
		}
		if err != nil {
			return 0, err
		}
		newest = record.LSN
	}
	return newest, nil
}

// apply makes the change of a record.
func (s *Store) apply(record vellum.Record) error {
	if len(record.Data) == 0 {
		return errNotARecord
	}
	switch record.Data[0] {
	case kindEntry:
		return s.applyEntry(record)
	case kindDeletion:
		first, last, err := decodeDeletion(record.Data)
		if err == nil {
			s.entries.remove(first, last)
		}
		return err
	case kindValue:
		key, value, _, err := takePair(record.Data[1:])
		if err == nil {
			s.values[string(key)] = value
		}
		return err
	case kindBlock, kindCheckpoint:
		return nil // of a checkpoint that was not finished
	default:
		return errNotARecord
	}
}

func (s *Store) applyEntry(record vellum.Record) error {
	at, err := entryIndex(record.Data)
	if err != nil {
		return err
	}
	if last, ok := s.entries.last(); ok && at <= last {
		return errors.New("raftvellum: the log is damaged: its entries are not in their order")
	}
	s.entries.push(at, record.LSN)
	return nil
}

// dropTrimmed forgets entries that were trimmed on a full disk before their deletion was written.
func (s *Store) dropTrimmed() error {
	begin := s.log.Begin()
	for len(s.entries.blocks) > 0 {
		block := s.entries.blocks[0]
		if block.positions == nil {
			oldest, err := s.readBlock(block, 1)
			if err == nil && len(oldest) > block.skip && oldest[block.skip] >= begin {
				return nil
			}
			if err := s.loadBlock(block); err != nil {
				return err
			}
		}
		if block.positions[0] >= begin {
			return nil
		}
		gone := 0
		for gone < block.count && block.positions[gone] < begin {
			gone++
		}
		s.entries.remove(block.first, block.first+uint64(gone)-1)
	}
	return nil
}
