package raftvellum

import (
	"context"
	"errors"

	"vellum"
)

// As long as a file of the log is, unless an option of Open says otherwise.
const fileBytes = 16 << 20

// DeleteRange deletes the entries from index first to last: the oldest ones, the newest ones, or
// any others. It is durable when it returns.
//
// Files with no other entries are removed when the oldest entries have taken a file's length.
func (s *Store) DeleteRange(first, last uint64) error {
	s.flight.Lock()
	freed, err := s.deleteRange(first, last)
	s.flight.Unlock()
	if err != nil || freed < fileBytes {
		return err
	}
	return s.checkpoint()
}

// deleteRange returns how many bytes of log lie before the oldest entry now.
func (s *Store) deleteRange(first, last uint64) (freed uint64, err error) {
	if s.isClosed() {
		return 0, ErrClosed
	}
	if first > last {
		return 0, nil
	}
	deletion := encodeDeletion(first, last)
	lsn, err := s.log.Append(context.Background(), deletion)
	if errors.Is(err, vellum.ErrNoSpace) {
		if err := s.trimBehind(first, last); err != nil {
			return 0, err
		}
		lsn, err = s.log.Append(context.Background(), deletion)
	}
	if err == nil {
		err = s.log.Commit(context.Background(), lsn)
	}
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries.remove(first, last)
	if end, ok := s.entries.before(s.visible); ok {
		s.visible = end + 1
	} else {
		s.visible = 0
	}
	oldest, err := s.oldest()
	return uint64(oldest - s.log.Begin()), err
}

// oldest returns the position of the oldest entry, or the end of the log where there is none.
func (s *Store) oldest() (vellum.LSN, error) {
	if len(s.entries.blocks) == 0 {
		return s.log.Published(), nil
	}
	block := s.entries.blocks[0]
	if block.positions == nil {
		if err := s.loadBlock(block); err != nil {
			return 0, err
		}
	}
	return block.positions[0], nil
}

// trimBehind makes room on a full disk, where the oldest entries are to be deleted and that cannot
// be written down. Recovery takes entries before the beginning of the log for deleted.
func (s *Store) trimBehind(first, last uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if oldest, ok := s.entries.first(); !ok || first > oldest {
		return nil
	}
	position := s.log.Checkpoint()
	if i := s.entries.find(last + 1); i < len(s.entries.blocks) {
		block := s.entries.blocks[i]
		if block.positions == nil {
			if err := s.loadBlock(block); err != nil {
				return err
			}
		}
		at := max(last+1, block.first) - block.first
		position = min(position, block.positions[at])
	}
	if position == 0 {
		return nil
	}
	_, err := s.log.Trim(position)
	if err == nil {
		s.entries.remove(first, last)
	}
	return err
}
