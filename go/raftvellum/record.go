package raftvellum

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/hashicorp/raft"

	"vellum"
)

// Format is the version of the records. A log that another version wrote is refused when it is
// opened. The digits after the name of the package in hexadecimal are the version.
const Format uint64 = 0x7261_6674_7665_0001

// The first byte of a record is its kind. decision 52 has the table of all bytes.
const (
	kindEntry      = 1
	kindDeletion   = 2
	kindValue      = 3
	kindBlock      = 4
	kindCheckpoint = 5
)

const (
	entryHeaderBytes = 36
	flagAppendedAt   = 1
)

var errNotARecord = errors.New("raftvellum: the log holds a record that is not of a Raft log")

var order = binary.LittleEndian

// appendEntry encodes an entry: kind, type, flags (2), nanoseconds (4), index (8), term (8),
// seconds (8), length of the extensions (4), extensions, data.
func appendEntry(to []byte, entry *raft.Log) ([]byte, error) {
	if uint64(len(entry.Extensions)) > math.MaxUint32 {
		return nil, fmt.Errorf("raftvellum: entry %d: its extensions are too long", entry.Index)
	}
	var flags uint16
	var seconds, nanoseconds int64
	if !entry.AppendedAt.IsZero() {
		flags |= flagAppendedAt
		seconds, nanoseconds = entry.AppendedAt.Unix(), int64(entry.AppendedAt.Nanosecond())
	}
	to = append(to, kindEntry, byte(entry.Type))
	to = order.AppendUint16(to, flags)
	to = order.AppendUint32(to, uint32(nanoseconds))
	to = order.AppendUint64(to, entry.Index)
	to = order.AppendUint64(to, entry.Term)
	to = order.AppendUint64(to, uint64(seconds))
	to = order.AppendUint32(to, uint32(len(entry.Extensions)))
	to = append(to, entry.Extensions...)
	return append(to, entry.Data...), nil
}

// entryIndex reads the index alone.
func entryIndex(record []byte) (uint64, error) {
	if len(record) < entryHeaderBytes || order.Uint64(record[8:]) == math.MaxUint64 {
		return 0, errNotARecord
	}
	return order.Uint64(record[8:]), nil
}

// decodeEntry fills entry, whose data and extensions are parts of record afterwards.
func decodeEntry(record []byte, entry *raft.Log) error {
	if len(record) < entryHeaderBytes || record[0] != kindEntry {
		return errNotARecord
	}
	rest := record[entryHeaderBytes:]
	extensions := uint64(order.Uint32(record[32:]))
	if extensions > uint64(len(rest)) {
		return errNotARecord
	}
	*entry = raft.Log{
		Index:      order.Uint64(record[8:]),
		Term:       order.Uint64(record[16:]),
		Type:       raft.LogType(record[1]),
		Extensions: orNil(rest[:extensions:extensions]),
		Data:       orNil(rest[extensions:]),
	}
	if order.Uint16(record[2:])&flagAppendedAt != 0 {
		seconds := int64(order.Uint64(record[24:]))
		entry.AppendedAt = time.Unix(seconds, int64(order.Uint32(record[4:])))
	}
	return nil
}

func orNil(bytes []byte) []byte {
	if len(bytes) == 0 {
		return nil
	}
	return bytes
}

// encodeDeletion: kind, the first index that goes (8), the last one (8).
func encodeDeletion(first, last uint64) []byte {
	record := order.AppendUint64([]byte{kindDeletion}, first)
	return order.AppendUint64(record, last)
}

func decodeDeletion(record []byte) (first, last uint64, err error) {
	if len(record) != 17 {
		return 0, 0, errNotARecord
	}
	first, last = order.Uint64(record[1:]), order.Uint64(record[9:])
	if first > last {
		return 0, 0, errNotARecord
	}
	return first, last, nil
}

// encodeValue: kind, then key and value, each behind its length (4).
func encodeValue(key, value []byte) []byte {
	return appendPair([]byte{kindValue}, key, value)
}

func appendPair(to, key, value []byte) []byte {
	to = append(order.AppendUint32(to, uint32(len(key))), key...)
	return append(order.AppendUint32(to, uint32(len(value))), value...)
}

// encodeBlock: kind, then the positions of consecutive entries: the first one and the difference
// of each to the one before it, as varints.
func encodeBlock(positions []vellum.LSN) []byte {
	record := []byte{kindBlock}
	var last vellum.LSN
	for _, position := range positions {
		record = binary.AppendUvarint(record, uint64(position-last))
		last = position
	}
	return record
}

// decodeBlock returns the first `count` positions of a block, or fewer where it has no more.
func decodeBlock(record []byte, count int) ([]vellum.LSN, error) {
	if len(record) == 0 || record[0] != kindBlock {
		return nil, errNotARecord
	}
	positions := make([]vellum.LSN, 0, min(count, len(record)))
	var last uint64
	for rest := record[1:]; len(rest) > 0 && len(positions) < count; {
		difference, size := binary.Uvarint(rest)
		if size <= 0 {
			return nil, errNotARecord
		}
		last += difference
		positions = append(positions, vellum.LSN(last))
		rest = rest[size:]
	}
	return positions, nil
}

// encodeCheckpoint: kind, number of blocks (4), each with the index of its first entry (8), the
// number of its entries (4), how many of its record come before them (4), the position of its
// record (8); then keys and values up to the end.
func encodeCheckpoint(entries *index, values map[string][]byte) []byte {
	record := order.AppendUint32([]byte{kindCheckpoint}, uint32(len(entries.blocks)))
	for _, block := range entries.blocks {
		record = order.AppendUint64(record, block.first)
		record = order.AppendUint32(record, uint32(block.count))
		record = order.AppendUint32(record, uint32(block.skip))
		record = order.AppendUint64(record, uint64(block.stored))
	}
	for key, value := range values {
		record = appendPair(record, []byte(key), value)
	}
	return record
}

func decodeCheckpoint(record []byte) (*index, map[string][]byte, error) {
	if len(record) < 5 || record[0] != kindCheckpoint {
		return nil, nil, errNotARecord
	}
	blocks := uint64(order.Uint32(record[1:]))
	rest := record[5:]
	const blockBytes = 24
	if uint64(len(rest)) < blocks*blockBytes {
		return nil, nil, errNotARecord
	}
	entries := &index{}
	// Blocks have entries, follow one another, and end before the last index.
	var end uint64
	for range blocks {
		first, count := order.Uint64(rest), int(order.Uint32(rest[8:]))
		if count == 0 || first < end || first > math.MaxUint64-uint64(count) {
			return nil, nil, errNotARecord
		}
		end = first + uint64(count)
		entries.blocks = append(entries.blocks, &block{
			first:       first,
			count:       count,
			skip:        int(order.Uint32(rest[12:])),
			stored:      vellum.LSN(order.Uint64(rest[16:])),
			storedCount: count,
		})
		rest = rest[blockBytes:]
	}
	values := map[string][]byte{}
	for len(rest) > 0 {
		key, value, behind, err := takePair(rest)
		if err != nil {
			return nil, nil, err
		}
		values[string(key)] = value
		rest = behind
	}
	return entries, values, nil
}

func takePair(bytes []byte) (key, value, rest []byte, err error) {
	if key, rest, err = takeBytes(bytes); err != nil {
		return nil, nil, nil, err
	}
	value, rest, err = takeBytes(rest)
	return key, value, rest, err
}

func takeBytes(bytes []byte) (taken, rest []byte, err error) {
	if len(bytes) < 4 {
		return nil, nil, errNotARecord
	}
	length := uint64(order.Uint32(bytes))
	if bytes = bytes[4:]; length > uint64(len(bytes)) {
		return nil, nil, errNotARecord
	}
	return append([]byte{}, bytes[:length]...), bytes[length:], nil
}
