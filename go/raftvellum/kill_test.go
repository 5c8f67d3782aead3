package raftvellum

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"testing"

	"vellum"
	"vellum/internal/proving"
)

func TestMain(m *testing.M) {
	proving.Main(m, map[string]func([]string) error{
		"store":       func(arguments []string) error { return changeForever(arguments[0], arguments[1]) },
		"node":        runNode,
		proving.Work:  changeSome,
		proving.Check: checkSome,
	})
}

func openSmall(path string) (*Store, error) {
	return Open(path, vellum.SegmentBytes(64<<10))
}

// changeForever changes a store as the seed says, and writes a line when a change is done.
func changeForever(path, seed string) error {
	store, err := openSmall(path)
	if err != nil {
		return err
	}
	m, err := modelOf(store)
	if err != nil {
		return err
	}
	random := proving.Seeded(seed)
	for step := 0; ; step++ {
		change := m.plan(random)
		if err := change.apply(store); err != nil {
			return err
		}
		m.apply(change)
		if _, err := fmt.Println(step); err != nil {
			return err
		}
		if step%7 == 6 { // often, for the kill to meet one
			if err := store.checkpoint(); err != nil {
				return err
			}
		}
	}
}

// Acknowledged changes are there after a kill, and the change that was under way is there whole or
// not at all.
func TestAKilledProcessLeavesWhatItAcknowledged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raft")
	m := &model{values: map[string][]byte{}}
	for round := range proving.Count(t, "VELLUM_GO_KILLS", 2, 20) {
		seed := strconv.Itoa(round)
		steps := rand.New(rand.NewPCG(uint64(round), 3)).IntN(30) + 1
		done := proving.KillAfter(t, steps, proving.Child(t, "store", path, seed))
		random := proving.Seeded(seed)
		for range done {
			m.apply(m.plan(random))
		}
		next := m.plan(random)
		store, err := openSmall(path)
		must(t, err)
		got, err := modelOf(store)
		must(t, err)
		if !got.equals(m) {
			m.apply(next)
			if !got.equals(m) {
				t.Fatalf("round %d, step %d: the store is not as it was left", round, done)
			}
		}
		must(t, store.Close())
	}
}
