package vellumqueue

import (
	"encoding/binary"
	"fmt"

	"vellum"
)

// The kind of a record of the log: its first byte.
const (
	isMessage = 'm' // length of the key, key, data
	isAck     = 'a' // positions of messages
	isState   = 's' // the outstanding messages, see state
)

func appendMessage(to []byte, key string, data []byte) []byte {
	to = append(to, isMessage)
	to = binary.AppendUvarint(to, uint64(len(key)))
	return append(append(to, key...), data...)
}

func parseMessage(record []byte) (key string, data []byte, err error) {
	length, n := binary.Uvarint(record[1:])
	if n <= 0 || length > uint64(len(record)-1-n) {
		return "", nil, errForeign(record)
	}
	rest := record[1+n:]
	return string(rest[:length]), rest[length:], nil
}

// appendPositions appends positions, which grow, by their distances.
func appendPositions(to []byte, positions []vellum.LSN) []byte {
	to = binary.AppendUvarint(to, uint64(len(positions)))
	before := vellum.LSN(0)
	for _, position := range positions {
		to = binary.AppendUvarint(to, uint64(position-before))
		before = position
	}
	return to
}

// numbers takes numbers from a record.
type numbers struct {
	left   []byte
	failed bool
}

func (n *numbers) next() uint64 {
	number, size := binary.Uvarint(n.left)
	if size <= 0 {
		n.failed, n.left = true, nil
		return 0
	}
	n.left = n.left[size:]
	return number
}

func (n *numbers) positions() []vellum.LSN {
	count := n.next()
	if count > uint64(len(n.left)) {
		n.failed = true
		return nil
	}
	positions := make([]vellum.LSN, count)
	before := vellum.LSN(0)
	for i := range positions {
		before += vellum.LSN(n.next())
		positions[i] = before
	}
	return positions
}

// state is the knowledge at a place of the log from which the queue continues.
type state struct {
	// front is where the next message is that was not given out yet.
	front vellum.LSN
	// outstanding are the messages before front that were not acknowledged.
	outstanding []vellum.LSN
	// acked are the messages from front on that were: in a life of the queue before this one.
	acked []vellum.LSN
	// count is how many messages were not acknowledged.
	count uint64
}

func (s *state) encode() []byte {
	record := []byte{isState}
	record = binary.AppendUvarint(record, uint64(s.front))
	record = binary.AppendUvarint(record, s.count)
	record = appendPositions(record, s.outstanding)
	return appendPositions(record, s.acked)
}

func parseState(record []byte) (*state, error) {
	if len(record) == 0 || record[0] != isState {
		return nil, errForeign(record)
	}
	from := numbers{left: record[1:]}
	s := &state{front: vellum.LSN(from.next()), count: from.next()}
	s.outstanding, s.acked = from.positions(), from.positions()
	if from.failed {
		return nil, errForeign(record)
	}
	return s, nil
}

func parseAcks(record []byte) ([]vellum.LSN, error) {
	from := numbers{left: record[1:]}
	positions := from.positions()
	if from.failed {
		return nil, errForeign(record)
	}
	return positions, nil
}

func errForeign(record []byte) error {
	return fmt.Errorf("vellumqueue: the log has a record that no queue has written: %.20q", record)
}
