//go:build go1.25

package vellumqueue

import (
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A bubble of testing/synctest owns the channels and timers that were made in it. A use of one from
// outside ends the program.
func TestBubblesShareNothing(t *testing.T) {
	use := func(t *testing.T) {
		q := open(t, filepath.Join(t.TempDir(), "queue"), Lease(time.Hour))
		var all sync.WaitGroup
		for range 4 {
			all.Add(1)
			go func() { defer all.Done(); must(t, q.Put(background, []byte("a message"))) }()
		}
		all.Wait()
		for range 4 {
			message, err := q.Get(background)
			must(t, err)
			must(t, message.Ack(background))
		}
	}
	for range 10 {
		synctest.Test(t, use)
		use(t)
	}
}

func TestALeaseEndsByTheTimeOfABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, filepath.Join(t.TempDir(), "queue"), Lease(time.Hour))
		must(t, q.Put(background, []byte("a message")))
		for range 3 {
			_, err := q.Get(background)
			must(t, err)
			_, err = q.TryGet()
			wantError(t, err, ErrEmpty)
			time.Sleep(time.Hour)
		}
	})
}

// A message is got, held for longer, given back and acknowledged in other bubbles than it was put in.
func TestBubblesShareAQueue(t *testing.T) {
	q := open(t, filepath.Join(t.TempDir(), "queue"), Lease(time.Hour))
	get := func() (message *Message) {
		synctest.Test(t, func(t *testing.T) {
			var err error
			message, err = q.Get(background)
			must(t, err)
		})
		return message
	}
	for range 10 {
		synctest.Test(t, func(t *testing.T) { must(t, q.Put(background, []byte("a message"))) })
		message := get()
		synctest.Test(t, func(t *testing.T) { must(t, message.Extend(time.Minute)) })
		must(t, message.Extend(time.Hour))
		synctest.Test(t, func(t *testing.T) { must(t, message.Nack(0)) })
		message = get()
		must(t, message.Nack(time.Nanosecond))
		message = get()
		must(t, message.Ack(background))
	}
}

func TestALeaseOfAQueueThatBubblesShareOutlivesTheBubble(t *testing.T) {
	q := open(t, filepath.Join(t.TempDir(), "queue"), Lease(time.Millisecond))
	synctest.Test(t, func(t *testing.T) {
		must(t, q.Put(background, []byte("a message")))
		_, err := q.Get(background)
		must(t, err)
	})
	message, err := q.Get(background)
	must(t, err)
	if message.Attempt < 2 {
		t.Fatalf("attempt %d", message.Attempt)
	}
}
