package vellum_test

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"vellum"
)

// A record that is made durable costs one call of C, and two where goroutines share the commit.
func TestADurableRecordIsOneCallOfC(t *testing.T) {
	log := open(t, vellum.WAL())
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	batch := log.NewBatch()
	var last vellum.LSN // of a batch
	alone := func() { mustAppend(t)(log.AppendDurable(background, []byte("a record"))) }
	for name, of := range map[string]struct {
		most       int64
		goroutines int
		call       func()
	}{
		"alone":          {1, 1, alone},
		"several":        {2, 8, alone},
		"with a context": {2, 1, func() { mustAppend(t)(log.AppendDurable(ctx, []byte("a record"))) }},
		"a batch": {1, 1, func() {
			batch.Push([]byte("one"))
			batch.Push([]byte("two"))
			lsns, err := batch.AppendDurable(background)
			must(t, err)
			last = lsns[1]
		}},
	} {
		t.Run(name, func(t *testing.T) {
			const calls = 200
			before := runtime.NumCgoCall()
			var all sync.WaitGroup
			for range of.goroutines {
				all.Add(1)
				go func() {
					defer all.Done()
					for range calls {
						of.call()
					}
				}()
			}
			all.Wait()
			made, of := runtime.NumCgoCall()-before, int64(of.goroutines*calls)*of.most
			// Logs of other tests may be closed meanwhile.
			if made > of+of/10 {
				t.Fatalf("%d calls of C, more than %d", made, of)
			}
			if log.Durable() <= last {
				t.Fatalf("the batch at %d is not durable: that ends at %d", last, log.Durable())
			}
		})
	}
}

func mustAppend(t *testing.T) func(vellum.LSN, error) {
	return func(_ vellum.LSN, err error) {
		if err != nil {
			t.Error(err)
		}
	}
}
