package raftvellum

import (
	"bytes"
	"fmt"
	"sync"
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

// Checkpoints are made meanwhile, each by a goroutine of the bubble whose call finds it due.
func TestBubblesShareAStore(t *testing.T) {
	store := newStore(t)
	var all sync.WaitGroup
	for writer := range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			for round := range 10 {
				set := func(t *testing.T) {
					key := fmt.Appendf(nil, "value %d", writer)
					must(t, store.Set(key, bytes.Repeat([]byte{byte(round)}, checkpointBytes/4)))
				}
				synctest.Test(t, set)
				set(t)
			}
		}()
	}
	all.Wait()
	must(t, store.Close())
}
