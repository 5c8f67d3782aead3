package raftvellum

import (
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"vellum"
	"vellum/internal/damage"
)

// elected is the path of a store with a term, a vote and entries, and the positions of some of those
// before and behind its checkpoint.
func elected(t *testing.T) (path string, before, behind vellum.LSN) {
	t.Helper()
	store := newStore(t)
	path = store.log.Path()
	must(t, store.SetUint64([]byte("term"), 7))
	must(t, store.Set([]byte("vote"), []byte("a node")))
	must(t, store.StoreLogs(entries(1, 5000)))
	must(t, store.DeleteRange(1, 2000))
	before, err := store.position(4000)
	must(t, err)
	must(t, store.checkpoint())
	must(t, store.SetUint64([]byte("term"), 8))
	must(t, store.StoreLogs(entries(5001, 5010)))
	behind, err = store.position(5005)
	must(t, err)
	must(t, store.Close())
	return path, before, behind
}

// A repaired store has its term and its vote, and says which entry it has lost.
func TestARepairedStoreHasItsTermAndItsVote(t *testing.T) {
	path, before, _ := elected(t)
	store := openStore(t, damage.Repaired(t, path, before))
	if term, err := store.GetUint64([]byte("term")); err != nil || term != 8 {
		t.Fatal(term, err)
	}
	if vote, err := store.Get([]byte("vote")); err != nil || string(vote) != "a node" {
		t.Fatal(vote, err)
	}
	for index := uint64(2001); index <= 5010; index++ {
		var got raft.Log
		err := store.GetLog(index, &got)
		if index == 4000 && err != nil && !errors.Is(err, raft.ErrLogNotFound) {
			continue
		}
		if err != nil || got.Index != index || string(got.Data) != string(entry(index).Data) {
			t.Fatal(index, got.Index, err)
		}
	}
}

// A term or a vote may be among what was lost behind the checkpoint: such a node could vote twice.
func TestARepairedStoreThatMayLackAVoteIsRefused(t *testing.T) {
	for _, lost := range []string{"a record behind the checkpoint", "the checkpoint"} {
		path, _, record := elected(t)
		if lost == "the checkpoint" {
			record = checkpointOf(t, path)
		}
		_, err := Open(damage.Repaired(t, path, record))
		if err == nil || !strings.Contains(err.Error(), "vote") {
			t.Fatal(lost, err)
		}
	}
}

func checkpointOf(t *testing.T, path string) vellum.LSN {
	t.Helper()
	log, err := vellum.Open(path)
	must(t, err)
	defer func() { must(t, log.Close()) }()
	return log.Checkpoint()
}
