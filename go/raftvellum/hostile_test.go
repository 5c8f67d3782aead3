package raftvellum

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"testing"

	"vellum"
)

// Records that no store has written are an error, and neither a panic nor a wait.
func TestRecordsOfAnotherAreRefused(t *testing.T) {
	of := func(blocks ...*block) []byte { return encodeCheckpoint(&index{blocks: blocks}, nil) }
	last := &block{first: math.MaxUint64 - 1, count: 2}
	for name, record := range map[string][]byte{
		"a block without entries":  of(&block{first: 1}),
		"blocks out of order":      of(&block{first: 9, count: 1}, &block{first: 1, count: 1}),
		"blocks that overlap":      of(&block{first: 1, count: 5}, &block{first: 3, count: 1}),
		"a block behind the last":  of(last),
		"more blocks than are in":  order.AppendUint32([]byte{kindCheckpoint}, math.MaxUint32),
		"a deletion of nothing":    encodeDeletion(2, 1),
		"an entry behind the last": append([]byte{kindEntry, 7: 0}, append(order.AppendUint64(nil, math.MaxUint64), make([]byte, 20)...)...),
	} {
		path := filepath.Join(t.TempDir(), "raft")
		log, err := vellum.Open(path, vellum.WAL(), vellum.ApplicationTag(Format))
		must(t, err)
		at, err := log.AppendDurable(context.Background(), record)
		must(t, err)
		if record[0] == kindCheckpoint {
			must(t, log.SetCheckpoint(at))
		}
		must(t, log.Close())
		if _, err := Open(path); !errors.Is(err, errNotARecord) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
