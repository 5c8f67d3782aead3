package vellum_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"vellum"
)

// Durable records are there for every way to read them, while others append records of all sizes in
// front of it and behind, and commit.
func TestWhatIsDurableIsFoundAtOnce(t *testing.T) {
	log := open(t, vellum.WAL())
	writers, each := 8, 200
	if testing.Short() {
		each = 40
	}
	var all sync.WaitGroup
	for range 2 {
		all.Add(1)
		go func() { defer all.Done(); followAll(t, log, writers*each) }()
	}
	for writer := range writers {
		all.Add(1)
		go func() {
			defer all.Done()
			random := rand.New(rand.NewPCG(uint64(writer), 5))
			for i := range each {
				text := fmt.Sprintf("%d %d %0*d", writer, i, 1+random.IntN(9)*random.IntN(20_000), 0)
				lsn, err := log.AppendDurable(background, []byte(text))
				if err == nil {
					err = findIt(log, lsn, text)
				}
				if err != nil {
					t.Errorf("%.10s at %d: %v", text, lsn, err)
					return
				}
			}
		}()
	}
	all.Wait()
}

// findIt reads a record in each way that there is.
func findIt(log *vellum.Log, lsn vellum.LSN, text string) error {
	data, err := log.ReadAt(lsn, nil)
	if err != nil || string(data) != text {
		return fmt.Errorf("ReadAt: %d bytes, %w", len(data), err)
	}
	if last, exists, err := log.Last(); err != nil || !exists || last < lsn {
		return fmt.Errorf("Last: %d, %v, %w", last, exists, err)
	}
	for _, options := range [][]vellum.ReaderOption{nil, {vellum.OnlyDurable()}} {
		reader, err := log.NewReader(lsn, options...)
		if err != nil {
			return fmt.Errorf("NewReader: %w", err)
		}
		record, err := reader.Next()
		if err != nil || record.LSN != lsn || string(record.Data) != text {
			return fmt.Errorf("Next: %d bytes at %d, %w", len(record.Data), record.LSN, err)
		}
		if err := reader.Close(); err != nil {
			return err
		}
	}
	return nil
}

// followAll follows a log until it has seen all records, those of each writer in their order.
func followAll(t *testing.T, log *vellum.Log, count int) {
	reader, err := log.NewReader(0)
	if err != nil {
		t.Error(err)
		return
	}
	next := map[int]int{}
	for record, err := range reader.Follow(t.Context()) {
		var writer, i int
		if err == nil {
			_, err = fmt.Sscan(string(record.Data[:min(20, len(record.Data))]), &writer, &i)
		}
		if err != nil || i != next[writer] {
			t.Errorf("record %d of writer %d, where %d was to come: %v", i, writer, next[writer], err)
			return
		}
		next[writer]++
		if count--; count == 0 {
			return
		}
	}
	t.Error(count, "records did not come")
}

// Every handle may be closed several times, and by several goroutines at once. The log is free then.
func TestEachHandleIsClosedThrice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for range 20 {
		log := openAt(t, path, vellum.WAL())
		appendAll(t, log, "record")
		reader, err := log.NewReader(0)
		must(t, err)
		backwards, err := log.NewBackwards(0)
		must(t, err)
		cursor, err := log.Cursor("cursor", 0)
		must(t, err)
		handles := []interface{ Close() error }{reader, backwards, cursor, log}
		var all sync.WaitGroup
		for range 3 {
			for _, handle := range handles {
				all.Add(1)
				go func() {
					defer all.Done()
					if err := handle.Close(); err != nil {
						t.Errorf("%T: %v", handle, err)
					}
				}()
			}
		}
		all.Wait()
		for _, handle := range handles {
			must(t, handle.Close())
		}
	}
}
