package raftvellum

import (
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"
)

// A bubble of testing/synctest owns the channels and timers that were made in it. A use of one from
// outside ends the program.
func TestBubblesShareNothing(t *testing.T) {
	use := func(t *testing.T) {
		store := newStore(t)
		done := make(chan error)
		go func() { done <- store.SetUint64([]byte("term"), 1) }()
		for index := uint64(1); index <= 10; index++ {
			must(t, store.StoreLogs(entries(index, index)))
			must(t, store.GetLog(index, new(raft.Log)))
		}
		must(t, store.DeleteRange(1, 5))
		must(t, <-done)
		must(t, store.Close())
	}
	for range 10 {
		synctest.Test(t, use)
		use(t)
	}
}
