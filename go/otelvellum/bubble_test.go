package otelvellum

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"

	"vellum"
)

// A bubble of testing/synctest owns the channels and timers that were made in it. A use of one from
// outside ends the program.
func TestBubblesShareNothing(t *testing.T) {
	use := func(t *testing.T) {
		c := durable(t)
		done := make(chan error)
		for writer := range 4 {
			go func() { done <- c.Set(t.Context(), fmt.Sprint(writer), []byte("a value")) }()
		}
		for range 4 {
			must(t, <-done)
		}
	}
	for range 10 {
		synctest.Test(t, use)
		use(t)
	}
}

func TestANoteIsDurableByTheTimeOfABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := durable(t)
		must(t, c.Batch(t.Context(), storage.SetOperation("noted", nil), storage.SetOperation("item", nil)))
		must(t, c.Batch(t.Context(), storage.SetOperation("noted", nil), storage.GetOperation("item")))
		note := c.places["noted"].position
		if c.log.Durable() > note {
			t.Fatal("the note was committed at once")
		}
		time.Sleep(notedWithin)
		synctest.Wait()
		if c.log.Durable() <= note {
			t.Fatal("the note is not durable")
		}
	})
}

func TestANoteIsDurableAfterItsBubble(t *testing.T) {
	c := durable(t)
	for _, item := range []string{"one", "two"} {
		must(t, c.Batch(t.Context(), storage.SetOperation("noted", nil), storage.SetOperation(item, nil)))
		synctest.Test(t, func(t *testing.T) {
			must(t, c.Batch(t.Context(), storage.SetOperation("noted", nil), storage.GetOperation(item)))
		})
		reader, err := c.log.NewReader(c.places["noted"].position, vellum.OnlyDurable())
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		isDurable := false
		for _, err := range reader.Follow(ctx) {
			must(t, err)
			isDurable = true
			break
		}
		if !isDurable {
			t.Fatalf("the note of item %s is not durable", item)
		}
		cancel()
		must(t, reader.Close())
	}
}
