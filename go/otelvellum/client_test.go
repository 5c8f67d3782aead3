package otelvellum

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"vellum"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openAt(t testing.TB, path string, config *Config) *client {
	t.Helper()
	c, err := openPath(path, config)
	must(t, err)
	t.Cleanup(func() { must(t, c.Close(context.Background())) })
	return c
}

func openPath(path string, config *Config) (*client, error) {
	return openClient(path, config, newReserve(filepath.Dir(path), 0), zap.NewNop())
}

func newClient(t testing.TB) *client {
	t.Helper()
	config := defaultConfig()
	config.Compaction.MinimumMiB = 1
	return openAt(t, filepath.Join(t.TempDir(), "client"), config)
}

func reopen(t testing.TB, c *client) *client {
	t.Helper()
	must(t, c.Close(t.Context()))
	return openAt(t, c.log.Path(), c.config)
}

// check compares all that a storage has with the expected content.
func check(t *testing.T, c *client, want map[string][]byte) {
	t.Helper()
	got := map[string][]byte{}
	must(t, c.Walk(t.Context(), func(key string, value []byte) ([]*storage.Operation, error) {
		got[key] = bytes.Clone(value)
		return nil, nil
	}))
	if !maps.EqualFunc(got, want, bytes.Equal) {
		t.Fatalf("%d keys; wanted %d", len(got), len(want))
	}
	for key, value := range want {
		got, err := c.Get(t.Context(), key)
		if err != nil || !bytes.Equal(got, value) {
			t.Fatalf("%s: %q, %v; wanted %q", key, got, err, value)
		}
	}
	var live uint64
	for _, place := range c.places {
		live += recordOverhead + uint64(place.bytes)
	}
	if live != c.live {
		t.Fatalf("%d bytes live; counted %d", live, c.live)
	}
}

func TestAKeyThatIsNotThereHasNoValue(t *testing.T) {
	c := newClient(t)
	value, err := c.Get(t.Context(), "key")
	if err != nil || value != nil {
		t.Fatal(value, err)
	}
	must(t, c.Delete(t.Context(), "key"))
	check(t, reopen(t, c), map[string][]byte{})
}

func TestValuesAreSetAndReplacedAndDeleted(t *testing.T) {
	c := newClient(t)
	must(t, c.Set(t.Context(), "key", []byte("first")))
	must(t, c.Set(t.Context(), "key", []byte("second")))
	must(t, c.Set(t.Context(), "", []byte("of the empty key")))
	must(t, c.Set(t.Context(), "gone", []byte("value")))
	must(t, c.Delete(t.Context(), "gone"))
	want := map[string][]byte{"key": []byte("second"), "": []byte("of the empty key")}
	check(t, c, want)
	check(t, reopen(t, c), want)
}

func TestAnEmptyValueIsAValue(t *testing.T) {
	c := newClient(t)
	must(t, c.Set(t.Context(), "nil", nil))
	must(t, c.Set(t.Context(), "empty", []byte{}))
	c = reopen(t, c)
	for _, key := range []string{"nil", "empty"} {
		if value, err := c.Get(t.Context(), key); err != nil || value == nil || len(value) != 0 {
			t.Fatal(key, value, err)
		}
	}
}

func TestABatchIsDoneInItsOrder(t *testing.T) {
	c := newClient(t)
	must(t, c.Set(t.Context(), "a", []byte("before")))
	before, after, gone := storage.GetOperation("a"), storage.GetOperation("a"), storage.GetOperation("a")
	never := storage.GetOperation("never")
	never.Value = []byte("left over")
	must(t, c.Batch(t.Context(), before, storage.SetOperation("a", []byte("after")), after,
		storage.SetOperation("b", []byte("value")), storage.DeleteOperation("a"), gone, never))
	if string(before.Value) != "before" || string(after.Value) != "after" {
		t.Fatalf("%q, %q", before.Value, after.Value)
	}
	if gone.Value != nil || never.Value != nil {
		t.Fatalf("%q, %q", gone.Value, never.Value)
	}
	check(t, reopen(t, c), map[string][]byte{"b": []byte("value")})
}

func TestAnUnknownOperationDoesNothing(t *testing.T) {
	c := newClient(t)
	unknown := &storage.Operation{Type: 7}
	if c.Batch(t.Context(), storage.SetOperation("a", nil), unknown) == nil {
		t.Fatal("done")
	}
	must(t, c.Batch(t.Context()))
	check(t, c, map[string][]byte{})
}

func TestABufferMayBeUsedAgainOnceItIsStored(t *testing.T) {
	c := newClient(t)
	value := []byte("value")
	must(t, c.Set(t.Context(), "key", value))
	copy(value, "xxxxx")
	got, err := c.Get(t.Context(), "key")
	must(t, err)
	copy(got, "yyyyy")
	check(t, c, map[string][]byte{"key": []byte("value")})
}

func TestValuesOfAnySizeComeBack(t *testing.T) {
	c := newClient(t)
	want := map[string][]byte{}
	for size := 1; size < 40<<20; size = size*5 + 1 {
		want[fmt.Sprint(size)] = bytes.Repeat([]byte{byte(size)}, size)
		must(t, c.Set(t.Context(), fmt.Sprint(size), want[fmt.Sprint(size)]))
	}
	check(t, reopen(t, c), want)
}

func TestAClosedStorageSaysSo(t *testing.T) {
	c := newClient(t)
	must(t, c.Set(t.Context(), "key", nil))
	must(t, c.Close(t.Context()))
	must(t, c.Close(t.Context()))
	_, err := c.Get(t.Context(), "none")
	visit := func(string, []byte) ([]*storage.Operation, error) { return nil, nil }
	for _, err := range []error{
		err, c.Set(t.Context(), "key", nil), c.Delete(t.Context(), "key"), c.Walk(t.Context(), visit),
	} {
		if !errors.Is(err, errClosed) {
			t.Error(err)
		}
	}
}

func TestAWalkDoesWhatItsFunctionReturns(t *testing.T) {
	c := newClient(t)
	for i := range 10 {
		must(t, c.Set(t.Context(), fmt.Sprint(i), []byte("value")))
	}
	get := storage.GetOperation("new")
	must(t, c.Walk(t.Context(), func(key string, _ []byte) ([]*storage.Operation, error) {
		return []*storage.Operation{
			storage.DeleteOperation(key), storage.SetOperation("new", []byte("new")), get,
		}, nil
	}))
	if string(get.Value) != "new" {
		t.Fatalf("%q", get.Value)
	}
	check(t, reopen(t, c), map[string][]byte{"new": []byte("new")})
}

func TestAWalkCanBeEnded(t *testing.T) {
	c := newClient(t)
	for i := range 10 {
		must(t, c.Set(t.Context(), fmt.Sprint(i), []byte("value")))
	}
	calls, failed := 0, errors.New("failed")
	end := func(err error) error {
		calls = 0
		return c.Walk(t.Context(), func(key string, _ []byte) ([]*storage.Operation, error) {
			calls++
			return []*storage.Operation{storage.DeleteOperation(key)}, err
		})
	}
	if err := end(failed); !errors.Is(err, failed) || calls != 1 || len(c.places) != 10 {
		t.Fatal(err, calls)
	}
	if err := end(storage.SkipAll); err != nil || calls != 1 || len(c.places) != 9 {
		t.Fatal(err, calls)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Walk(ended, nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestAQueueIsGivenBackWhileItIsDrained(t *testing.T) {
	c := newClient(t)
	value := make([]byte, 64<<10)
	want := map[string][]byte{}
	for i := range 2000 {
		must(t, c.Set(t.Context(), fmt.Sprint(i), value))
		want[fmt.Sprint(i)] = value
		if i >= 100 {
			must(t, c.Delete(t.Context(), fmt.Sprint(i-100)))
			delete(want, fmt.Sprint(i-100))
		}
	}
	if kept := c.log.Published() - c.log.Begin(); kept > 64<<20 {
		t.Fatalf("%d bytes are kept for %d", kept, c.live)
	}
	check(t, reopen(t, c), want)
}

func TestOldValuesAreMovedOutOfTheWay(t *testing.T) {
	c := newClient(t)
	want := map[string][]byte{}
	for i := range 100 {
		want[fmt.Sprint(i)] = fmt.Appendf(nil, "%0*d", 10000, i)
		must(t, c.Set(t.Context(), fmt.Sprint(i), want[fmt.Sprint(i)]))
	}
	for i := range 1000 {
		want["changes"] = bytes.Repeat([]byte{byte(i)}, 50<<10)
		must(t, c.Set(t.Context(), "changes", want["changes"]))
	}
	must(t, c.tidy())
	if kept := c.log.Published() - c.log.Begin(); kept > 3<<20 {
		t.Fatalf("%d bytes are kept for %d", kept, c.live)
	}
	check(t, c, want)
	check(t, reopen(t, c), want)
}

func TestAStorageIsAsItsModelWhateverIsDone(t *testing.T) {
	seeds := uint64(4)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			c, model := newClient(t), map[string][]byte{}
			for range 150 {
				switch random.IntN(12) {
				case 0:
					c = reopen(t, c)
				case 1:
					must(t, c.checkpoint())
				case 2:
					must(t, c.moveSome(random))
				default:
					batch := plan(random)
					must(t, c.Batch(t.Context(), batch...))
					do(model, batch)
				}
				check(t, c, model)
			}
		})
	}
}

// moveSome moves values as compact does, whether it is worth it or not.
func (c *client) moveSome(random *rand.Rand) error {
	var keys []keyPlace
	for key, place := range c.places {
		if random.IntN(2) == 0 {
			keys = append(keys, keyPlace{key, place})
		}
	}
	for len(keys) > 0 {
		moved, err := c.move(keys)
		if err != nil {
			return err
		}
		keys = keys[moved:]
	}
	return nil
}

// plan makes a batch, by which many keys are set and deleted several times.
func plan(random *rand.Rand) []*storage.Operation {
	var batch []*storage.Operation
	for range random.IntN(8) + 1 {
		key := fmt.Sprint(random.IntN(40))
		switch random.IntN(5) {
		case 0, 1:
			batch = append(batch, storage.DeleteOperation(key))
		default:
			value := bytes.Repeat([]byte{byte(random.Int())}, random.IntN(3000))
			batch = append(batch, storage.SetOperation(key, value))
		}
	}
	return batch
}

func do(model map[string][]byte, batch []*storage.Operation) {
	for _, operation := range batch {
		switch operation.Type {
		case storage.Set:
			model[operation.Key] = operation.Value
		case storage.Delete:
			delete(model, operation.Key)
		}
	}
}

func TestManyUseAStorageAtOnce(t *testing.T) {
	c := newClient(t)
	c.config.FSync = true
	var users sync.WaitGroup
	for user := range 8 {
		users.Add(1)
		go func() {
			defer users.Done()
			for i := range 100 {
				key := fmt.Sprintf("%d-%d", user, i)
				value := bytes.Repeat([]byte(key), 1000)
				if err := c.Set(t.Context(), key, value); err != nil {
					t.Error(err)
				}
				if got, err := c.Get(t.Context(), key); err != nil || !bytes.Equal(got, value) {
					t.Error(key, err)
				}
				if err := c.Delete(t.Context(), key); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	users.Add(1)
	go func() {
		defer users.Done()
		for range 20 {
			if err := c.tidy(); err != nil {
				t.Error(err)
			}
		}
	}()
	users.Wait()
	check(t, reopen(t, c), map[string][]byte{})
}

func TestALogOfAnotherFormatIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "client")
	log, err := vellum.Open(path, vellum.WAL(), vellum.ApplicationTag(Format+1))
	must(t, err)
	must(t, log.Close())
	if _, err := openPath(path, defaultConfig()); !errors.Is(err, vellum.ErrInvalidOption) {
		t.Fatal(err)
	}
}

func TestDamagedRecordsAreRefused(t *testing.T) {
	places := map[string]place{"a": {position: 16, bytes: 3}, "bcd": {position: 900, bytes: 70000}}
	record := encodeCheckpoint(places)
	got := map[string]place{}
	must(t, decodeCheckpoint(record, func(key string, place place) { got[key] = place }))
	if !maps.Equal(got, places) {
		t.Fatal(got)
	}
	ignore := func(string, place) {}
	whole := []int{1, 18, 20, len(record)} // the ends of records, in one order of the keys or the other
	for length := range record {
		err := decodeCheckpoint(record[:length], ignore)
		if err == nil && !slices.Contains(whole, length) {
			t.Errorf("%d bytes are a checkpoint", length)
		}
	}
	for length := range 5 {
		if _, _, err := decodeSet(appendSet(nil, "", nil)[:length]); err == nil {
			t.Errorf("%d bytes are a value", length)
		}
	}
}

// A commit makes a record of its own in the log. As long as it does, no reader gets the records
// behind it.
func TestAValueIsReadWhileAnotherIsCommitted(t *testing.T) {
	c := newClient(t)
	var users sync.WaitGroup
	stop := make(chan struct{})
	users.Add(1)
	go func() {
		defer users.Done()
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := c.log.Sync(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}()
	var writers sync.WaitGroup
	for user := range 16 {
		writers.Add(1)
		go func() {
			defer writers.Done()
			for i := range 1000 {
				key := fmt.Sprint(user)
				value := fmt.Append(nil, i)
				get := storage.GetOperation(key)
				err := c.Batch(t.Context(), storage.SetOperation(key, value), get)
				if err != nil || !bytes.Equal(get.Value, value) {
					t.Errorf("%s, %s: %q, %v", key, value, get.Value, err)
					return
				}
			}
		}()
	}
	writers.Wait()
	close(stop)
	users.Wait()
}

// A value may be deleted, and its file be removed, while it is read.
func TestAValueIsReadWhileItsPlaceIsGivenBack(t *testing.T) {
	c := newClient(t)
	value := make([]byte, 20000)
	var users sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for user := range 4 {
		users.Add(1)
		go func() {
			defer users.Done()
			for i := user; ctx.Err() == nil; i++ {
				got, err := c.Get(ctx, fmt.Sprint(i%8))
				if err != nil || got != nil && !bytes.Equal(got, value) {
					t.Error(len(got), err)
					return
				}
			}
		}()
	}
	changes := 3000
	if testing.Short() {
		changes = 500
	}
	for i := range changes {
		must(t, c.Set(t.Context(), fmt.Sprint(i%8), value))
		must(t, c.Delete(t.Context(), fmt.Sprint((i+4)%8)))
		if i%8 == 0 {
			must(t, c.checkpoint())
		}
	}
	stop()
	users.Wait()
}

func durable(t *testing.T) *client {
	t.Helper()
	c := newClient(t)
	c.config.FSync = true
	return c
}

// The notes of a queue that hands an item out, or is done with it, make no writes of the device.
func TestNobodyWaitsForNotes(t *testing.T) {
	c := durable(t)
	ctx := t.Context()
	must(t, c.Batch(ctx, storage.SetOperation("noted", nil), storage.SetOperation("item", nil)))
	before, err := c.log.Stat()
	must(t, err)
	const notes = 1000
	for range notes {
		must(t, c.Batch(ctx, storage.SetOperation("noted", nil), storage.GetOperation("item")))
		must(t, c.Batch(ctx, storage.SetOperation("noted", nil), storage.DeleteOperation("item")))
	}
	after, err := c.log.Stat()
	must(t, err)
	if made := after.Commits.Syncs - before.Commits.Syncs; made > notes/10 {
		t.Fatalf("%d commits for %d notes", made, notes)
	}
}

// All other changes are durable when they are acknowledged, and with them the notes before.
func TestWhatIsNoNoteIsDurable(t *testing.T) {
	c := durable(t)
	set, remove := storage.SetOperation, storage.DeleteOperation
	for _, batch := range [][]*storage.Operation{
		{set("noted", nil), set("item", nil)},
		{set("noted", nil)},
		{set("noted", nil), set("next", nil), storage.GetOperation("item")},
		{remove("item")},
		{set("new", nil), remove("next")},
	} {
		must(t, c.Batch(t.Context(), batch...))
		if durable, end := c.log.Durable(), c.log.Published(); durable < end {
			t.Errorf("%d operations: durable up to %d of %d", len(batch), durable, end)
		}
	}
}

func TestANoteIsDurableSoon(t *testing.T) {
	t.Parallel()
	c := durable(t)
	must(t, c.Batch(t.Context(), storage.SetOperation("noted", nil), storage.SetOperation("item", nil)))
	must(t, c.Batch(t.Context(), storage.SetOperation("noted", nil), storage.GetOperation("item")))
	reader, err := c.log.NewReader(c.places["noted"].position, vellum.OnlyDurable())
	must(t, err)
	for _, err := range reader.Follow(t.Context()) {
		must(t, err)
		return
	}
}

func TestAStorageIsClosedThriceAtOnce(t *testing.T) {
	c := newClient(t)
	for range 20 {
		must(t, c.Set(t.Context(), "key", nil))
		var all sync.WaitGroup
		for range 3 {
			all.Add(1)
			go func() {
				defer all.Done()
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}()
		}
		all.Wait()
		c = reopen(t, c)
	}
}

func TestASecondCloseWaitsUntilTheStorageIsClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "client")
	isClosed := func(c *client) bool {
		c.mu.RLock()
		defer c.mu.RUnlock()
		return c.closed
	}
	for range 20 {
		c, err := openPath(path, defaultConfig())
		must(t, err) // vellum.ErrInUse where it was not closed
		must(t, c.Set(t.Context(), "key", []byte("a value")))
		first := make(chan error, 1)
		go func() { first <- c.Close(context.Background()) }()
		for !isClosed(c) {
			runtime.Gosched()
		}
		must(t, c.Close(context.Background()))
		t.Cleanup(func() { must(t, <-first) })
	}
}
