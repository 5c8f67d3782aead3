package raftvellum

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"

	"vellum"
	"vellum/internal/proving"
)

// On a full disk entries are refused, the oldest ones can be deleted, and that makes room.
func TestAFullDiskIsAnErrorAndDeletingMakesRoom(t *testing.T) {
	store := openStore(t, filepath.Join(proving.SmallDisk(t, "16m"), "raft"))
	data := make([]byte, 50<<10)
	fill := func(index uint64) uint64 {
		for ; ; index++ {
			err := store.StoreLog(&raft.Log{Index: index, Data: data})
			if errors.Is(err, vellum.ErrNoSpace) {
				return index
			}
			must(t, err)
		}
	}
	next := fill(1)
	for range 5 {
		if last, err := store.LastIndex(); err != nil || last != next-1 {
			t.Fatal(last, err)
		}
		store = reopen(t, store)
		must(t, store.DeleteRange(1, next-10))
		if first, err := store.FirstIndex(); err != nil || first != next-9 {
			t.Fatal(first, err)
		}
		must(t, store.GetLog(next-9, new(raft.Log)))
		filled := fill(next)
		if filled < next+20 {
			t.Fatalf("deleting made room for %d entries", filled-next)
		}
		next = filled
	}
	store = reopen(t, store)
	must(t, store.GetLog(next-1, new(raft.Log)))
}
