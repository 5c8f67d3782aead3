//go:build go1.25

package vellum_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vellum"
)

// A bubble of testing/synctest owns the channels and timers that were made in it. A use of one from
// outside ends the program, so no call may find one that another call has left.
func TestBubblesShareNothing(t *testing.T) {
	for range 10 {
		synctest.Test(t, func(t *testing.T) { commitAll(t, open(t, vellum.WAL())) })
		commitAll(t, open(t, vellum.WAL()))
	}
}

func TestBubblesShareALog(t *testing.T) {
	log := open(t, vellum.WAL())
	var all sync.WaitGroup
	for range 4 {
		all.Add(2)
		go func() { defer all.Done(); commitAll(t, log) }()
		go func() {
			defer all.Done()
			synctest.Test(t, func(t *testing.T) { commitAll(t, log) })
		}()
	}
	all.Wait()
}

// commitAll commits in each way, from several goroutines.
func commitAll(t *testing.T, log *vellum.Log) {
	var all sync.WaitGroup
	for range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			ctx, cancel := context.WithTimeout(background, time.Hour)
			defer cancel()
			for range 20 {
				for _, ctx := range []context.Context{background, ctx} {
					if _, err := log.AppendDurable(ctx, []byte("a record")); err != nil {
						t.Error(err)
					}
				}
				if _, err := log.Sync(background); err != nil {
					t.Error(err)
				}
				ended, cancel := context.WithCancel(background)
				go cancel()
				_, _ = log.AppendDurable(ended, []byte("given up"))
			}
		}()
	}
	all.Wait()
}

func TestALogOfABubbleMayBeForgotten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	synctest.Test(t, func(t *testing.T) {
		log, err := vellum.Open(path, vellum.WAL())
		must(t, err)
		_, err = log.AppendDurable(background, []byte("a record"))
		must(t, err)
	})
	openOnceForgotten(t, path)
}
