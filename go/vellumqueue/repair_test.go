package vellumqueue

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"vellum"
	"vellum/internal/damage"
)

// worked is a queue of which every third message was acknowledged, with its positions.
func worked(t *testing.T, opts ...Option) (path string, positions []vellum.LSN) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "queue")
	q := open(t, path, append(opts, MaxInFlight(200))...)
	for number := range 100 {
		put(t, q, fmt.Sprint(number))
	}
	for number := range 100 {
		m := get(t, q)
		positions = append(positions, m.LSN)
		if number%3 == 0 {
			must(t, m.Ack(background))
		}
	}
	must(t, q.Close())
	return path, positions
}

// wantLeft checks that a queue gives out the messages that were not acknowledged, but for some.
func wantLeft(t *testing.T, path string, without ...int) {
	t.Helper()
	q := open(t, path)
	left := uint64(0)
	for number := range 100 {
		if number%3 != 0 && !slices.Contains(without, number) {
			m := get(t, q)
			want(t, string(m.Data), fmt.Sprint(number))
			left++
		}
	}
	_, err := q.TryGet()
	wantError(t, err, ErrEmpty)
	want(t, q.Stats().Len, left)
}

// A repaired queue gives out what was not acknowledged, whichever record was damaged.
func TestARepairedQueueHasWhatWasNotAcknowledged(t *testing.T) {
	path, _ := worked(t)
	wantLeft(t, damage.Repaired(t, path))
	path, positions := worked(t)
	wantLeft(t, damage.Repaired(t, path, positions[70]), 70)
	path, positions = worked(t, PutAtOnce(), AckAtOnce())
	wantLeft(t, damage.Repaired(t, path, positions[30], positions[33], positions[66]))
}

// Without its state a repaired queue reads all messages.
func TestARepairedQueueNeedsNoState(t *testing.T) {
	path, positions := worked(t)
	log, err := vellum.Open(path)
	must(t, err)
	state := log.Checkpoint()
	must(t, log.Close())
	wantLeft(t, damage.Repaired(t, path, state, positions[70], positions[71]), 70, 71)
}
