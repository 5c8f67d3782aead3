package raftvellum

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"vellum"
)

func openStore(t testing.TB, path string) *Store {
	t.Helper()
	store, err := Open(path, vellum.SegmentBytes(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func newStore(t testing.TB) *Store {
	t.Helper()
	return openStore(t, filepath.Join(t.TempDir(), "raft"))
}

func reopen(t testing.TB, store *Store) *Store {
	t.Helper()
	path := store.log.Path()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return openStore(t, path)
}

func entry(index uint64) *raft.Log {
	return &raft.Log{Index: index, Term: index/10 + 1, Data: fmt.Appendf(nil, "entry %d", index)}
}

func entries(first, last uint64) []*raft.Log {
	var all []*raft.Log
	for index := first; index <= last; index++ {
		all = append(all, entry(index))
	}
	return all
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// check compares all answers of the log with the expected ones, also after it was opened anew.
func check(t *testing.T, store *Store, want ...*raft.Log) *Store {
	t.Helper()
	checkOnce(t, store, want)
	store = reopen(t, store)
	checkOnce(t, store, want)
	return store
}

func checkOnce(t *testing.T, store *Store, want []*raft.Log) {
	t.Helper()
	var first, last uint64
	if len(want) > 0 {
		first, last = want[0].Index, want[len(want)-1].Index
	}
	if got, err := store.FirstIndex(); err != nil || got != first {
		t.Fatalf("first index: %d, %v; wanted %d", got, err, first)
	}
	if got, err := store.LastIndex(); err != nil || got != last {
		t.Fatalf("last index: %d, %v; wanted %d", got, err, last)
	}
	next := uint64(0)
	for _, want := range want {
		for ; next < want.Index && want.Index-next < 100; next++ {
			checkMissing(t, store, next)
		}
		next = want.Index + 1
		var got raft.Log
		must(t, store.GetLog(want.Index, &got))
		if !sameEntry(&got, want) {
			t.Fatalf("entry %d: %+v; wanted %+v", want.Index, got, want)
		}
	}
	checkMissing(t, store, next)
}

func checkMissing(t *testing.T, store *Store, index uint64) {
	t.Helper()
	if err := store.GetLog(index, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
		t.Fatalf("entry %d: %v", index, err)
	}
}

func sameEntry(a, b *raft.Log) bool {
	return a.Index == b.Index && a.Term == b.Term && a.Type == b.Type &&
		bytes.Equal(a.Data, b.Data) && bytes.Equal(a.Extensions, b.Extensions) &&
		a.AppendedAt.Equal(b.AppendedAt)
}

func TestAnEmptyStoreHasNoEntries(t *testing.T) {
	check(t, newStore(t))
}

func TestEntriesComeBackAsTheyWereStored(t *testing.T) {
	store := newStore(t)
	all := []*raft.Log{
		{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: []byte("configuration")},
		{Index: 2, Term: 1, Type: raft.LogNoop},
		{Index: 3, Term: 7, Data: []byte("data"), Extensions: []byte("extensions")},
		{Index: 4, Term: 7, Extensions: []byte("extensions alone")},
		{Index: 5, Term: 7, Data: make([]byte, 3<<20), AppendedAt: time.Now()},
		{Index: 6, Term: ^uint64(0), Data: []byte{0}, AppendedAt: time.Unix(-62135596801, 999)},
	}
	must(t, store.StoreLogs(all[:4]))
	must(t, store.StoreLog(all[4]))
	must(t, store.StoreLogs(all[5:]))
	must(t, store.StoreLogs(nil))
	check(t, store, all...)
}

func TestABufferMayBeUsedAgainOnceItIsStored(t *testing.T) {
	store := newStore(t)
	reused := entry(1)
	must(t, store.StoreLog(reused))
	copy(reused.Data, "xxxxxxx")
	check(t, store, entry(1))
}

func TestALogBeginsAtAnyIndexAndMayHaveGaps(t *testing.T) {
	store := newStore(t)
	must(t, store.StoreLogs(entries(0, 2)))
	must(t, store.StoreLogs([]*raft.Log{entry(100), entry(102), entry(103)}))
	must(t, store.StoreLog(entry(1<<40)))
	want := append(entries(0, 2), entry(100), entry(102), entry(103), entry(1<<40))
	check(t, store, want...)
}

func TestAnEntryThatIsNotBehindTheNewestIsRefusedWithItsBatch(t *testing.T) {
	store := newStore(t)
	must(t, store.StoreLogs(entries(5, 9)))
	for _, batch := range [][]*raft.Log{
		{entry(9)}, {entry(1)}, {entry(10), entry(10)}, {entry(11), entry(10)},
		{entry(^uint64(0))},
	} {
		if err := store.StoreLogs(batch); err == nil {
			t.Fatalf("entry %d was stored", batch[0].Index)
		}
	}
	check(t, store, entries(5, 9)...)
}

func TestAnyRangeCanBeDeleted(t *testing.T) {
	for _, test := range []struct {
		first, last uint64
		want        []*raft.Log
	}{
		{1, 10, entries(11, 30)},
		{0, 29, entries(30, 30)},
		{21, 30, entries(1, 20)},
		{2, 1000, entries(1, 1)},
		{11, 20, append(entries(1, 10), entries(21, 30)...)},
		{1, 30, nil},
		{0, ^uint64(0), nil},
		{31, 40, entries(1, 30)},
		{20, 10, entries(1, 30)},
		{0, 0, entries(1, 30)},
	} {
		t.Run(fmt.Sprintf("%d to %d", test.first, test.last), func(t *testing.T) {
			store := newStore(t)
			must(t, store.StoreLogs(entries(1, 30)))
			must(t, store.DeleteRange(test.first, test.last))
			store = check(t, store, test.want...)
			must(t, store.checkpoint())
			check(t, store, test.want...)
		})
	}
}

func TestEntriesTakeThePlaceOfDeletedOnes(t *testing.T) {
	store := newStore(t)
	must(t, store.StoreLogs(entries(1, 20)))
	must(t, store.checkpoint())
	must(t, store.DeleteRange(11, 20))
	other := &raft.Log{Index: 11, Term: 99, Data: []byte("of another leader")}
	must(t, store.StoreLog(other))
	store = check(t, store, append(entries(1, 10), other)...)
	must(t, store.checkpoint())
	check(t, store, append(entries(1, 10), other)...)
}

func TestAfterEverythingWasDeletedTheLogMayBeginBefore(t *testing.T) {
	store := newStore(t)
	must(t, store.StoreLogs(entries(50, 60)))
	must(t, store.DeleteRange(50, 60))
	must(t, store.StoreLogs(entries(3, 4)))
	check(t, store, entries(3, 4)...)
}

func TestValuesAreDurable(t *testing.T) {
	store := newStore(t)
	if value, err := store.Get([]byte("none")); err != nil || len(value) != 0 {
		t.Fatalf("%q, %v", value, err)
	}
	if value, err := store.GetUint64([]byte("none")); err != nil || value != 0 {
		t.Fatalf("%d, %v", value, err)
	}
	must(t, store.Set([]byte("vote"), []byte("first")))
	must(t, store.Set([]byte("vote"), []byte("second")))
	must(t, store.Set([]byte("empty"), nil))
	must(t, store.SetUint64([]byte("term"), 7))
	must(t, store.SetUint64([]byte("term"), ^uint64(0)))
	checkValues(t, store)
	store = reopen(t, store)
	checkValues(t, store)
	must(t, store.checkpoint())
	checkValues(t, reopen(t, store))
}

func checkValues(t *testing.T, store *Store) {
	t.Helper()
	if value, err := store.Get([]byte("vote")); err != nil || string(value) != "second" {
		t.Fatalf("%q, %v", value, err)
	}
	if value, err := store.Get([]byte("empty")); err != nil || len(value) != 0 {
		t.Fatalf("%q, %v", value, err)
	}
	if value, err := store.GetUint64([]byte("term")); err != nil || value != ^uint64(0) {
		t.Fatalf("%d, %v", value, err)
	}
	if _, err := store.GetUint64([]byte("vote")); err == nil {
		t.Fatal("a text is no number")
	}
}

func TestAValueThatIsReadBelongsToTheCaller(t *testing.T) {
	store := newStore(t)
	must(t, store.Set([]byte("key"), []byte("value")))
	value, err := store.Get([]byte("key"))
	must(t, err)
	copy(value, "xxxxx")
	if value, err := store.Get([]byte("key")); err != nil || string(value) != "value" {
		t.Fatalf("%q, %v", value, err)
	}
}

func TestAClosedStoreSaysSo(t *testing.T) {
	store := newStore(t)
	must(t, store.StoreLog(entry(1)))
	must(t, store.Close())
	must(t, store.Close())
	_, first := store.FirstIndex()
	_, last := store.LastIndex()
	_, get := store.Get(nil)
	_, number := store.GetUint64(nil)
	for i, err := range []error{
		first, last, get, number, store.GetLog(1, new(raft.Log)), store.StoreLog(entry(2)),
		store.DeleteRange(1, 1), store.Set(nil, nil), store.SetUint64(nil, 1), store.checkpoint(),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

func TestOneStoreAtATimeHasTheLog(t *testing.T) {
	store := newStore(t)
	if _, err := Open(store.log.Path()); !errors.Is(err, vellum.ErrInUse) {
		t.Fatal(err)
	}
}

func TestALogOfAnotherFormatIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raft")
	log, err := vellum.Open(path, vellum.WAL(), vellum.ApplicationTag(Format+1))
	must(t, err)
	must(t, log.Close())
	if _, err := Open(path); !errors.Is(err, vellum.ErrInvalidOption) {
		t.Fatal(err)
	}
}

func TestEntriesWhoseCommitFailedAreReplaced(t *testing.T) {
	store := newStore(t)
	must(t, store.StoreLogs(entries(1, 5)))
	_, err := store.append(entries(6, 8))
	must(t, err)
	checkOnce(t, store, entries(1, 5)) // not durable: not to be seen
	if err := store.StoreLog(entry(6)); err == nil {
		t.Fatal("an entry that is in flight was replaced")
	}
	store.landed(8, errors.New("no commit"))
	checkOnce(t, store, entries(1, 5))
	other := &raft.Log{Index: 6, Term: 99, Data: []byte("of another leader")}
	must(t, store.StoreLog(other))
	check(t, store, append(entries(1, 5), other)...)
}

// Blocks of the index are stored with a checkpoint, and read when an entry of them is asked for.
func TestTheIndexOfManyEntriesIsReadFromTheLog(t *testing.T) {
	const count = 5*blockEntries/2 + 7
	store := newStore(t)
	for first := uint64(1); first <= count; first += 1000 {
		must(t, store.StoreLogs(entries(first, min(first+999, count))))
	}
	must(t, store.checkpoint())
	store = reopen(t, store)
	for i, block := range store.entries.blocks {
		if i > 0 && block.positions != nil {
			t.Fatalf("block %d is in memory", i)
		}
	}
	all := entries(1, count)
	checkOnce(t, store, all)
	must(t, store.DeleteRange(1, blockEntries+5))
	must(t, store.DeleteRange(count-99, count))
	all = all[blockEntries+5 : count-100]
	store = check(t, store, all...)
	must(t, store.checkpoint())
	store = check(t, store, all...)
	must(t, store.StoreLog(entry(count)))
	check(t, store, append(all, entry(count))...)
}

func TestFilesOfDeletedEntriesAreRemoved(t *testing.T) {
	store := newStore(t)
	data := make([]byte, 100<<10)
	for index := uint64(1); index <= 400; index++ {
		must(t, store.StoreLog(&raft.Log{Index: index, Data: data}))
	}
	must(t, store.DeleteRange(1, 390))
	if kept := store.log.Published() - store.log.Begin(); kept > 3<<20 {
		t.Fatalf("%d bytes are kept for ten entries", kept)
	}
	if first, err := store.FirstIndex(); err != nil || first != 391 {
		t.Fatal(first, err)
	}
}

func TestMemoryHoldsSomeBlocksOfTheIndex(t *testing.T) {
	x := &index{}
	positions := make([]vellum.LSN, blockEntries)
	for i := range uint64(residentBlocksMax + 10) {
		b := &block{first: i * blockEntries, count: blockEntries, storedCount: blockEntries}
		x.blocks = append(x.blocks, b)
		must(t, x.setPositions(b, positions))
	}
	resident := 0
	for _, b := range x.blocks {
		if b.positions != nil {
			resident++
		}
	}
	if resident != residentBlocksMax {
		t.Fatal(resident)
	}
}

func TestManyReadWhileOneWritesAndDeletes(t *testing.T) {
	store := newStore(t)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for {
				select {
				case <-done:
					return
				default:
					readAll(t, store)
				}
			}
		}()
	}
	end := uint64(3000)
	if testing.Short() {
		end = 600
	}
	for first := uint64(1); first < end; first += 10 {
		must(t, store.StoreLogs(entries(first, first+9)))
		if first%100 == 1 && first > 200 {
			must(t, store.DeleteRange(1, first-200))
			must(t, store.checkpoint())
		}
	}
	close(done)
	readers.Wait()
}

func readAll(t *testing.T, store *Store) {
	first, err := store.FirstIndex()
	if err != nil {
		t.Error(err)
	}
	last, err := store.LastIndex()
	if err != nil {
		t.Error(err)
	}
	for index := first; index <= last && index > 0; index++ {
		var got raft.Log
		err := store.GetLog(index, &got)
		if errors.Is(err, raft.ErrLogNotFound) {
			continue // deleted meanwhile
		}
		if err != nil || !sameEntry(&got, entry(index)) {
			t.Errorf("entry %d: %+v, %v", index, got, err)
			return
		}
	}
}

func TestCallersShareCommits(t *testing.T) {
	store := newStore(t)
	var callers sync.WaitGroup
	var turn sync.Mutex
	next := uint64(1)
	for caller := range uint64(16) {
		callers.Add(1)
		go func() {
			defer callers.Done()
			for number := range uint64(20) {
				turn.Lock()
				first := next
				next += 3
				last, err := store.append(entries(first, first+2))
				turn.Unlock()
				if err == nil {
					err = store.log.Commit(context.Background(), last)
				}
				store.landed(first+2, err)
				if err != nil {
					t.Error(err)
				}
				if err := store.SetUint64([]byte{byte(caller)}, number); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	callers.Wait()
	check(t, store, entries(1, next-1)...)
}

// Acknowledged changes are there at once, while the term is stored and checkpoints are made.
func TestWhatIsStoredIsFoundAtOnce(t *testing.T) {
	store := newStore(t)
	var all, writers sync.WaitGroup
	stop := make(chan struct{})
	forever := func(do func(number uint64) error) {
		all.Add(1)
		go func() {
			defer all.Done()
			for number := uint64(1); ; number++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := do(number); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	for range 2 {
		forever(func(uint64) error { return findLast(store) })
	}
	forever(func(number uint64) error { return store.SetUint64([]byte("term"), number) })
	forever(func(uint64) error { return store.checkpoint() })
	var turn sync.Mutex
	next, each := uint64(1), 200
	if testing.Short() {
		each = 30
	}
	for range 4 {
		writers.Add(1)
		go func() {
			defer writers.Done()
			for range each {
				turn.Lock()
				first := next
				next += 3
				err := store.StoreLogs(entries(first, first+2))
				turn.Unlock()
				for index := first; index < first+3 && err == nil; index++ {
					err = findEntry(store, index)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	writers.Wait()
	close(stop)
	all.Wait()
}

func findEntry(store *Store, index uint64) error {
	var got raft.Log
	if err := store.GetLog(index, &got); err != nil {
		return fmt.Errorf("entry %d: %w", index, err)
	}
	if !sameEntry(&got, entry(index)) {
		return fmt.Errorf("entry %d: %+v", index, got)
	}
	return nil
}

func findLast(store *Store) error {
	last, err := store.LastIndex()
	if err != nil || last == 0 {
		return err
	}
	return findEntry(store, last)
}

func TestAStoreIsClosedThriceAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	for range 20 {
		store, err := Open(path)
		must(t, err)
		must(t, store.SetUint64([]byte("term"), 1))
		var all sync.WaitGroup
		for range 3 {
			all.Add(1)
			go func() {
				defer all.Done()
				if err := store.Close(); err != nil {
					t.Error(err)
				}
				// The process that has closed it may open it.
				again, err := Open(path)
				if err == nil {
					err = again.Close()
				}
				if err != nil && !errors.Is(err, vellum.ErrInUse) {
					t.Error(err)
				}
			}()
		}
		all.Wait()
	}
}

func TestASecondCloseWaitsUntilTheStoreIsClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raft")
	for index := range uint64(20) {
		store := openStore(t, path) // vellum.ErrInUse where it was not closed
		must(t, store.StoreLog(entry(index+1)))
		first := make(chan error, 1)
		go func() { first <- store.Close() }()
		for !store.isClosed() {
			runtime.Gosched()
		}
		must(t, store.Close())
		t.Cleanup(func() { must(t, <-first) })
	}
}
