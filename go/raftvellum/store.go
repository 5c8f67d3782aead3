// Package raftvellum stores the log and the state of a node of hashicorp/raft in a Vellum log.
//
//	store, err := raftvellum.Open("/var/lib/app/raft")
//	node, err := raft.NewRaft(config, fsm, store, store, snapshots, transport)
//
// Every call that changes something is durable when it returns.
package raftvellum

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"

	"vellum"
	"vellum/internal/lookup"
)

// A checkpoint is made when the log has grown by this much since the last one: opening reads no
// more than that, and the blocks of the index.
const checkpointBytes = 4 << 20

// Closing makes one for this much.
const closingBytes = 64 << 10

// The memory in which longer batches were put together is given back.
const buffersMax = 4 << 20

// ErrClosed is the error of every call after Close.
var ErrClosed = errors.New("raftvellum: the store is closed")

// Store is a raft.LogStore and a raft.StableStore. Any number of goroutines may use it at once.
//
// Indexes may have gaps, as those of raft-boltdb: it is no raft.MonotonicLogStore. Entries are
// added behind the newest one; a caller that replaces one deletes it first, as raft does.
type Store struct {
	log  *vellum.Log
	look *lookup.Lookup

	// Held shared from an append to the end of its commit, and exclusively by deletions and
	// checkpoints: those meet nothing that is in flight. It comes before the others.
	flight sync.RWMutex
	// The order of appends is that of the index. It guards the two that follow.
	appending sync.Mutex
	batch     *vellum.Batch
	record    []byte
	// The order of changes to one key.
	setting sync.Mutex

	// Guards what follows.
	mu      sync.RWMutex
	entries *index
	// Entries from here on are not durable yet, or their commit has failed.
	visible uint64
	// How many calls wait for the commit of entries.
	inFlight int
	values   map[string][]byte
	// The end of the log at the last checkpoint.
	checkpointed vellum.LSN
	closed       bool

	// Held while a goroutine makes a checkpoint. No sync.WaitGroup: that may not be used in several
	// bubbles of testing/synctest.
	making sync.Mutex
	// One checkpoint at a time.
	checkpointing sync.Mutex
	closing       sync.Once
}

var (
	_ raft.LogStore    = (*Store)(nil)
	_ raft.StableStore = (*Store)(nil)
)

// Open opens the store in the directory path, which is made where it is not there. Options are
// further ones for the log, such as vellum.SegmentBytes.
//
// One process at a time may have it open: others get vellum.ErrInUse.
func Open(path string, options ...vellum.Option) (*Store, error) {
	options = append([]vellum.Option{vellum.WAL(), vellum.ApplicationTag(Format)}, options...)
	log, err := vellum.Open(path, options...)
	if err != nil {
		return nil, err
	}
	store, err := recoverStore(log)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return store, nil
}

// Close closes the store. Acknowledged changes are durable already. A second call waits until the
// store is closed.
func (s *Store) Close() (err error) {
	s.closing.Do(func() {
		// The next opening has little to read then. Without it, it reads a little more.
		_ = s.checkpointIfGrown()
		s.stop()
		s.making.Lock()
		defer s.making.Unlock()
		err = s.log.Close()
	})
	return err
}

// stop has calls refused from now on, when those that are in flight are done.
func (s *Store) stop() {
	s.flight.Lock()
	defer s.flight.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// FirstIndex returns the index of the oldest entry, or 0.
func (s *Store) FirstIndex() (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return 0, ErrClosed
	}
	first, ok := s.entries.first()
	if !ok || first >= s.visible {
		return 0, nil
	}
	return first, nil
}

// LastIndex returns the index of the newest entry, or 0.
func (s *Store) LastIndex() (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return 0, ErrClosed
	}
	last, _ := s.entries.before(s.visible)
	return last, nil
}

// GetLog reads an entry, or returns raft.ErrLogNotFound.
func (s *Store) GetLog(index uint64, entry *raft.Log) error {
	for {
		position, err := s.position(index)
		if err != nil {
			return err
		}
		record, err := s.look.Read(position)
		if errors.Is(err, vellum.ErrTrimmed) && s.isGone(index, position) {
			continue // deleted meanwhile
		}
		if err != nil {
			return fmt.Errorf("raftvellum: reading entry %d: %w", index, err)
		}
		return decodeEntry(record, entry)
	}
}

func (s *Store) isGone(index uint64, position vellum.LSN) bool {
	now, err := s.position(index)
	return err != nil || now != position
}

// position returns where an entry is.
func (s *Store) position(at uint64) (vellum.LSN, error) {
	s.mu.RLock()
	position, stored, err := s.inMemory(at)
	s.mu.RUnlock()
	if err == nil && stored {
		return s.load(at)
	}
	return position, err
}

// inMemory looks an entry up; `stored` says that its block has to be read first.
func (s *Store) inMemory(at uint64) (position vellum.LSN, stored bool, err error) {
	if s.closed {
		return 0, false, ErrClosed
	}
	block := s.entries.block(at)
	switch {
	case block == nil || at >= s.visible:
		return 0, false, raft.ErrLogNotFound
	case block.positions == nil:
		return 0, true, nil
	default:
		return block.positions[at-block.first], false, nil
	}
}

// load reads the block of an entry.
func (s *Store) load(at uint64) (vellum.LSN, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	position, stored, err := s.inMemory(at)
	if err != nil || !stored {
		return position, err
	}
	block := s.entries.block(at)
	if err := s.loadBlock(block); err != nil {
		return 0, err
	}
	return block.positions[at-block.first], nil
}

func (s *Store) loadBlock(b *block) error {
	positions, err := s.readBlock(b, b.count)
	if err != nil {
		return err
	}
	return s.entries.setPositions(b, positions)
}

// readBlock reads the positions of the first entries of a block, and of those that were before them.
func (s *Store) readBlock(b *block, count int) ([]vellum.LSN, error) {
	// Most are no longer than this, and are read once.
	buffer := make([]byte, 0, 1+4*blockEntries)
	record, err := s.log.ReadAt(b.stored, buffer)
	if err != nil {
		return nil, fmt.Errorf("raftvellum: reading the index of entries from %d on: %w", b.first, err)
	}
	return decodeBlock(record, b.skip+count)
}

// StoreLog stores an entry.
func (s *Store) StoreLog(entry *raft.Log) error {
	return s.StoreLogs([]*raft.Log{entry})
}

// StoreLogs stores entries, all or none, with one commit. Their indexes grow, and are behind that
// of the newest entry.
//
// On a full disk it returns vellum.ErrNoSpace, and the store continues.
func (s *Store) StoreLogs(entries []*raft.Log) error {
	if len(entries) == 0 {
		return nil
	}
	err := s.storeLogs(entries)
	if errors.Is(err, vellum.ErrNoSpace) && s.reclaim() {
		return s.storeLogs(entries)
	}
	return err
}

func (s *Store) storeLogs(entries []*raft.Log) error {
	s.flight.RLock()
	defer s.flight.RUnlock()
	last, err := s.append(entries)
	if err != nil {
		return err
	}
	err = s.log.Commit(context.Background(), last)
	s.landed(entries[len(entries)-1].Index, err)
	return err
}

// append adds entries to the log and to the index, where no reader sees them yet.
func (s *Store) append(entries []*raft.Log) (vellum.LSN, error) {
	s.appending.Lock()
	defer s.appending.Unlock()
	failed, err := s.checkFollows(entries)
	if err != nil {
		return 0, err
	}
	positions, err := s.appendRecords(entries, failed)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if failed {
		s.entries.remove(s.visible, ^uint64(0))
	}
	for i, entry := range entries {
		s.entries.push(entry.Index, positions[i])
	}
	s.inFlight++
	return positions[len(positions)-1], nil
}

// checkFollows refuses entries that are not behind the newest one. `failed` says that there are
// entries behind the visible ones whose commit has failed: these take their place.
func (s *Store) checkFollows(entries []*raft.Log) (failed bool, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return false, ErrClosed
	}
	last, exists := s.entries.last()
	if failed = exists && last >= s.visible && s.inFlight == 0; failed {
		last, exists = s.entries.before(s.visible)
	}
	for _, entry := range entries {
		if exists && entry.Index <= last {
			return false, fmt.Errorf("raftvellum: entry %d is not behind the newest, %d",
				entry.Index, last)
		}
		last, exists = entry.Index, true
	}
	if last == ^uint64(0) {
		return false, fmt.Errorf("raftvellum: %d is no index", last)
	}
	return failed, nil
}

// appendRecords appends the records of entries, and returns their positions.
func (s *Store) appendRecords(entries []*raft.Log, failed bool) ([]vellum.LSN, error) {
	s.batch.Discard()
	if failed {
		s.batch.Push(encodeDeletion(s.visible, ^uint64(0)))
	}
	bytes := 0
	for _, entry := range entries {
		record, err := appendEntry(s.record[:0], entry)
		if err != nil {
			return nil, err
		}
		s.batch.Push(record)
		bytes += len(record)
		s.record = record
	}
	positions, err := s.batch.AppendEach(context.Background())
	if bytes > buffersMax {
		s.record, s.batch = nil, s.log.NewBatch()
	}
	if err != nil {
		return nil, err
	}
	return positions[len(positions)-len(entries):], nil
}

// landed is called with the result of a commit of entries up to `last`.
func (s *Store) landed(last uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
	if err != nil {
		return
	}
	s.visible = max(s.visible, last+1)
	s.noticeGrowth()
}

// noticeGrowth has a checkpoint made where it is due.
func (s *Store) noticeGrowth() {
	if s.closed || s.log.Published() < s.checkpointed+checkpointBytes {
		return
	}
	if s.making.TryLock() {
		go s.makeCheckpoint()
	}
}

// Set stores a value. The store has all values in memory: they are meant to be few and short, as
// those of raft are.
func (s *Store) Set(key, value []byte) error {
	s.flight.RLock()
	defer s.flight.RUnlock()
	s.setting.Lock()
	defer s.setting.Unlock()
	if s.isClosed() {
		return ErrClosed
	}
	lsn, err := s.log.Append(context.Background(), encodeValue(key, value))
	if err != nil {
		return err
	}
	if err := s.log.Commit(context.Background(), lsn); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[string(key)] = append([]byte{}, value...)
	s.noticeGrowth()
	return nil
}

func (s *Store) isClosed() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.closed
}

// Get returns a value; an empty one where the key was never set.
func (s *Store) Get(key []byte) ([]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, ErrClosed
	}
	return append([]byte{}, s.values[string(key)]...), nil
}

// SetUint64 stores a number.
func (s *Store) SetUint64(key []byte, value uint64) error {
	return s.Set(key, order.AppendUint64(nil, value))
}

// GetUint64 returns a number; 0 where the key was never set.
func (s *Store) GetUint64(key []byte) (uint64, error) {
	value, err := s.Get(key)
	if err != nil || len(value) == 0 {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("raftvellum: the value of %q is no number", key)
	}
	return order.Uint64(value), nil
}
