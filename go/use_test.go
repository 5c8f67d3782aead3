package vellum

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestAGateLetsNoMoreInThanItsLimitWhoeverGivesUp(t *testing.T) {
	gate := gate{limit: 3, tokens: make(chan struct{}, 3)}
	var inside, gaveUp atomic.Int64
	var all sync.WaitGroup
	for i := range 64 {
		all.Add(1)
		go func() {
			defer all.Done()
			for round := range 500 {
				ctx, cancel := context.WithCancel(context.Background())
				if (i+round)%3 == 0 {
					go cancel()
				}
				if err := gate.enter(ctx); err != nil {
					gaveUp.Add(1)
				} else {
					if now := inside.Add(1); now > 3 {
						t.Error(now, "are inside")
					}
					if round%50 == 0 {
						time.Sleep(time.Microsecond) // so that others have to wait
					}
					inside.Add(-1)
					gate.leave()
				}
				cancel()
			}
		}()
	}
	all.Wait()
	if count := gate.count.Load(); count != 0 || len(gate.tokens) != 0 {
		t.Fatal(count, "are left, and", len(gate.tokens), "tokens")
	}
	if gaveUp.Load() == 0 {
		t.Log("nobody gave up")
	}
}

func TestWhoUsesALogIsWaitedFor(t *testing.T) {
	for range 200 {
		u := newUsers()
		var inside atomic.Int64
		var all sync.WaitGroup
		for range 8 {
			all.Add(1)
			go func() {
				defer all.Done()
				for u.enter() == nil {
					inside.Add(1)
					inside.Add(-1)
					u.leave()
				}
			}()
		}
		u.close(false)
		if inside.Load() != 0 {
			t.Fatal("somebody is inside")
		}
		all.Wait()
		if err := u.enter(); !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
	}
}

func TestASecondCloseWaitsUntilTheLogIsClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for range 20 {
		log, err := Open(path, WAL())
		if err != nil {
			t.Fatal(err) // ErrInUse where it was not closed
		}
		// Closing commits this, which takes a moment.
		if _, err := log.Append(t.Context(), []byte("a record")); err != nil {
			t.Fatal(err)
		}
		first := make(chan error, 1)
		go func() { first <- log.Close() }()
		for !log.core.users.isClosing() {
			runtime.Gosched()
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := <-first; err != nil {
				t.Error(err)
			}
		})
	}
}
