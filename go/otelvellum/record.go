package otelvellum

import (
	"encoding/binary"
	"errors"

	"go.opentelemetry.io/collector/extension/xextension/storage"

	"vellum"
)

// Format is the version of the records. A log that another version wrote is refused when it is
// opened. The last digits are the version.
const Format uint64 = 0x6f74_656c_7665_0001

// The first byte of a record is its kind. decision 53 has the table of all bytes.
const (
	kindSet        = 1
	kindDelete     = 2
	kindCheckpoint = 3
)

// The size of a record's header and padding, about.
const recordOverhead = 16

var errNotARecord = errors.New("the log holds a record that is not of a storage")

var order = binary.LittleEndian

// appendSet encodes a value: kind, length of the key (4), key, value.
func appendSet(to []byte, key string, value []byte) []byte {
	to = order.AppendUint32(append(to, kindSet), uint32(len(key)))
	return append(append(to, key...), value...)
}

// decodeSet returns parts of the record.
func decodeSet(record []byte) (key, value []byte, err error) {
	if len(record) < 5 || record[0] != kindSet {
		return nil, nil, errNotARecord
	}
	length := uint64(order.Uint32(record[1:]))
	if rest := record[5:]; length <= uint64(len(rest)) {
		return rest[:length], rest[length:], nil
	}
	return nil, nil, errNotARecord
}

// appendDelete encodes a deletion: kind, key.
func appendDelete(to []byte, key string) []byte {
	return append(append(to, kindDelete), key...)
}

// appendOperation encodes what an operation changes; nothing where it changes nothing.
func appendOperation(to []byte, operation *storage.Operation) []byte {
	switch operation.Type {
	case storage.Set:
		return appendSet(to, operation.Key, operation.Value)
	case storage.Delete:
		return appendDelete(to, operation.Key)
	default:
		return to
	}
}

// encodeCheckpoint encodes the places of all values: kind; for each the position of its record (8),
// the length of that (4), the length of the key (4), the key.
func encodeCheckpoint(places map[string]place) []byte {
	bytes := 1
	for key := range places {
		bytes += 16 + len(key)
	}
	record := append(make([]byte, 0, bytes), kindCheckpoint)
	for key, place := range places {
		record = order.AppendUint64(record, uint64(place.position))
		record = order.AppendUint32(record, place.bytes)
		record = order.AppendUint32(record, uint32(len(key)))
		record = append(record, key...)
	}
	return record
}

func decodeCheckpoint(record []byte, put func(key string, place place)) error {
	if len(record) == 0 || record[0] != kindCheckpoint {
		return errNotARecord
	}
	for rest := record[1:]; len(rest) > 0; {
		if len(rest) < 16 {
			return errNotARecord
		}
		place := place{position: vellum.LSN(order.Uint64(rest)), bytes: order.Uint32(rest[8:])}
		length := uint64(order.Uint32(rest[12:]))
		if rest = rest[16:]; length > uint64(len(rest)) {
			return errNotARecord
		}
		put(string(rest[:length]), place)
		rest = rest[length:]
	}
	return nil
}
