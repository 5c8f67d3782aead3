package raft

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// As in raft-wal's own benchmark: StoreLogs of 1 and 10 entries of several sizes.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{10, 1 << 10, 100 << 10, 1 << 20} {
		for _, count := range []int{1, 10} {
			for _, callers := range []int{1, 16} {
				for _, engine := range engines {
					name := fmt.Sprintf("entry=%d/batch=%d/callers=%d/%s",
						size, count, callers, engine.name)
					b.Run(name, func(b *testing.B) {
						store, err := engine.open(directory(b))
						must(b, err)
						defer store.Close()
						appendEntries(b, store, size, count, callers)
					})
				}
			}
		}
	}
}

// directory is on the disk that VELLUM_BENCH_DIR names, or where TMPDIR is.
func directory(b testing.TB) string {
	path, err := os.MkdirTemp(os.Getenv("VELLUM_BENCH_DIR"), "raft")
	must(b, err)
	b.Cleanup(func() { _ = os.RemoveAll(path) })
	return path
}

// appendEntries has callers store entries. One at a time is in StoreLogs: the indexes grow.
func appendEntries(b *testing.B, store raft.LogStore, size, count, callers int) {
	b.SetBytes(int64(size * count))
	data := make([]byte, size)
	var turn sync.Mutex
	index := uint64(1)
	todo := b.N
	b.ResetTimer()
	var all sync.WaitGroup
	for range callers {
		all.Add(1)
		go func() {
			defer all.Done()
			batch := make([]*raft.Log, count)
			for {
				for i := range batch {
					batch[i] = &raft.Log{Data: data, AppendedAt: time.Now()}
				}
				turn.Lock()
				if todo == 0 {
					turn.Unlock()
					return
				}
				todo--
				for i := range batch {
					batch[i].Index = index
					index++
				}
				err := store.StoreLogs(batch)
				turn.Unlock()
				if err != nil {
					b.Error(err)
					return
				}
			}
		}()
	}
	all.Wait()
	b.StopTimer()
}

func BenchmarkGetLog(b *testing.B) {
	const entries = 100_000
	for _, engine := range engines {
		store, err := engine.open(directory(b))
		must(b, err)
		defer store.Close()
		must(b, populate(store, entries, 128))
		for _, order := range []string{"ascending", "scattered"} {
			b.Run(order+"/"+engine.name, func(b *testing.B) {
				var entry raft.Log
				for i := range b.N {
					if order == "scattered" {
						i *= 7919
					}
					must(b, store.GetLog(uint64(i%entries)+1, &entry))
				}
			})
		}
	}
}

func populate(store raft.LogStore, entries, size int) error {
	batch := make([]*raft.Log, 0, 1000)
	data := make([]byte, size)
	for index := 1; index <= entries; index++ {
		batch = append(batch, &raft.Log{Index: uint64(index), Data: data})
		if len(batch) == cap(batch) || index == entries {
			if err := store.StoreLogs(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return nil
}

// BenchmarkOpen opens a store with VELLUM_BENCH_MIB of entries of 1 KiB, or 64 MiB, and reads the
// newest. Each opening is in a process of its own: raft-wal does not give its lock back. The
// opening alone is measured.
func BenchmarkOpen(b *testing.B) {
	mebibytes := os.Getenv("VELLUM_BENCH_MIB")
	if mebibytes == "" {
		mebibytes = "64"
	}
	for i, engine := range engines {
		path := directory(b)
		inChild(b, "fill", fmt.Sprint(i), path, mebibytes)
		b.Run(engine.name, func(b *testing.B) {
			var total time.Duration
			for range b.N {
				took, err := time.ParseDuration(inChild(b, "open", fmt.Sprint(i), path))
				must(b, err)
				total += took
			}
			b.ReportMetric(float64(total.Nanoseconds())/float64(b.N), "ns/op")
		})
	}
}

// inChild runs this program in a role, and returns its output.
func inChild(b *testing.B, role string, arguments ...string) string {
	b.Helper()
	program, err := os.Executable()
	must(b, err)
	child := exec.Command(program, arguments...)
	child.Env = append(os.Environ(), "VELLUM_TEST_ROLE="+role)
	said, err := child.CombinedOutput()
	if err != nil {
		b.Fatalf("%v: %s", err, said)
	}
	return strings.TrimSpace(string(said))
}

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv("VELLUM_TEST_ROLE") {
	case "fill":
		err = fillStore(os.Args[1], os.Args[2], os.Args[3])
	case "open":
		err = openStore(os.Args[1], os.Args[2])
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func fillStore(engine, path, mebibytes string) error {
	number, err := strconv.Atoi(engine)
	if err != nil {
		return err
	}
	count, err := strconv.Atoi(mebibytes)
	if err != nil {
		return err
	}
	store, err := engines[number].open(path)
	if err != nil {
		return err
	}
	if err := populate(store, count<<10, 1<<10); err != nil {
		return err
	}
	return store.Close()
}

func openStore(engine, path string) error {
	number, err := strconv.Atoi(engine)
	if err != nil {
		return err
	}
	start := time.Now()
	store, err := engines[number].open(path)
	if err != nil {
		return err
	}
	last, err := store.LastIndex()
	if err != nil {
		return err
	}
	if err := store.GetLog(last, new(raft.Log)); err != nil {
		return err
	}
	fmt.Println(time.Since(start))
	return store.Close()
}
