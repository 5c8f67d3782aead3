package otelvellum

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
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
