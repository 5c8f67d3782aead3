package otelvellum

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.opentelemetry.io/collector/extension/xextension/storage"

	"vellum"
)

// A queue whose log was removed is drained of readable items, and takes nothing more.
func TestAQueueWhoseLogWasRemovedIsDelivered(t *testing.T) {
	c, err := openPath(filepath.Join(t.TempDir(), "client"), defaultConfig())
	must(t, err)
	defer func() { _ = c.Close(t.Context()) }()
	for number := range 50 {
		must(t, c.Set(t.Context(), fmt.Sprint("item", number), fmt.Append(nil, number)))
	}
	// A queue is read in its order, by a reader that has the file open.
	for number := range 3 {
		_, err = c.Get(t.Context(), fmt.Sprint("item", number))
		must(t, err)
	}
	must(t, os.RemoveAll(c.log.Path()))
	for err == nil {
		err = c.Set(t.Context(), "more", []byte("value"))
	}
	if !errors.Is(err, vellum.ErrRemoved) {
		t.Fatal(err)
	}
	for number := 3; number < 50; number++ {
		key := fmt.Sprint("item", number)
		item := storage.GetOperation(key)
		must(t, c.Batch(t.Context(), storage.SetOperation("read", fmt.Append(nil, number)), item))
		if string(item.Value) != fmt.Sprint(number) {
			t.Fatal(number, string(item.Value))
		}
		must(t, c.Batch(t.Context(), storage.SetOperation("done", nil), storage.DeleteOperation(key)))
		if value, err := c.Get(t.Context(), key); value != nil || err != nil {
			t.Fatal(number, value, err)
		}
	}
	if value, err := c.Get(t.Context(), "read"); string(value) != "49" || err != nil {
		t.Fatal(string(value), err)
	}
	if err := c.Set(t.Context(), "new", nil); !errors.Is(err, vellum.ErrRemoved) {
		t.Fatal(err)
	}
}
