package otelpeers

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"vellum/otelvellum"
)

var exporterID = component.MustNewID("otlp")

var engines = []struct {
	name string
	open func(b *testing.B, directory string, fsync bool) storage.Extension
}{
	{"vellum", func(b *testing.B, directory string, fsync bool) storage.Extension {
		factory := otelvellum.NewFactory()
		config := factory.CreateDefaultConfig().(*otelvellum.Config)
		config.Directory, config.FSync = directory, fsync
		return start(b, factory, config)
	}},
	{"filestorage", func(b *testing.B, directory string, fsync bool) storage.Extension {
		factory := filestorage.NewFactory()
		config := factory.CreateDefaultConfig().(*filestorage.Config)
		config.Directory, config.FSync, config.Timeout = directory, fsync, time.Second
		return start(b, factory, config)
	}},
}

func start(b *testing.B, factory extension.Factory, config component.Config) storage.Extension {
	ctx := context.Background()
	made, err := factory.Create(ctx, extensiontest.NewNopSettings(factory.Type()), config)
	must(b, err)
	must(b, made.Start(ctx, componenttest.NewNopHost()))
	return made.(storage.Extension)
}

func newClient(b *testing.B, extension storage.Extension) storage.Client {
	client, err := extension.GetClient(context.Background(), component.KindExporter, exporterID, "logs")
	must(b, err)
	return client
}

// directory is on the disk that VELLUM_BENCH_DIR names, or where TMPDIR is.
func directory(b *testing.B) string {
	path, err := os.MkdirTemp(os.Getenv("VELLUM_BENCH_DIR"), "otel")
	must(b, err)
	b.Cleanup(func() { _ = os.RemoveAll(path) })
	return path
}

// BenchmarkEnqueue stores items as the queue of an exporter does, with fsync: an item, and the
// queue's own state. Each goroutine has a queue of its own in one storage client.
func BenchmarkEnqueue(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		for _, goroutines := range []int{1, 16} {
			for _, engine := range engines {
				name := fmt.Sprintf("item=%d/goroutines=%d/%s", size, goroutines, engine.name)
				b.Run(name, func(b *testing.B) {
					client := newClient(b, engine.open(b, directory(b), true))
					defer client.Close(context.Background())
					b.SetBytes(int64(size))
					b.ResetTimer()
					enqueue(b, client, size, goroutines)
					b.StopTimer()
				})
			}
		}
	}
}

func enqueue(b *testing.B, client storage.Client, size, goroutines int) {
	item := make([]byte, size)
	var all sync.WaitGroup
	for goroutine := range goroutines {
		all.Add(1)
		go func() {
			defer all.Done()
			meta := fmt.Sprintf("meta-%d", goroutine)
			for i := goroutine; i < b.N; i += goroutines {
				err := client.Batch(context.Background(),
					storage.SetOperation(meta, []byte("read and write index, and what is under way")),
					storage.SetOperation(strconv.Itoa(i), item))
				if err != nil {
					b.Error(err)
					return
				}
			}
		}()
	}
	all.Wait()
}

// BenchmarkDrain reads and deletes VELLUM_BENCH_MIB of items of 64 KiB, or 64 MiB, as the queue of an
// exporter does, after the storage was opened anew: without fsync and with it. VELLUM_BENCH_COLD=1
// empties the page cache first (root). Before each, "files" reads the files of the storage as dd does,
// a mebibyte at a time. "MiB" is the most memory that the process had, without pages of files.
func BenchmarkDrain(b *testing.B) {
	mebibytes := 64
	if text := os.Getenv("VELLUM_BENCH_MIB"); text != "" {
		var err error
		mebibytes, err = strconv.Atoi(text)
		must(b, err)
	}
	items := mebibytes << 20 / drainedBytes
	for _, engine := range engines {
		for _, fsync := range []bool{false, true} {
			path := filepath.Join(directory(b), "storage")
			name := fmt.Sprintf("%s/fsync=%t", engine.name, fsync)
			fill := func(b *testing.B) {
				b.StopTimer()
				must(b, os.RemoveAll(path))
				must(b, os.Mkdir(path, 0o700))
				fillQueue(b, engine.open(b, path, false), items)
				dropCaches(b)
				b.StartTimer()
			}
			b.Run(name+"/files", func(b *testing.B) {
				for range b.N {
					fill(b)
					b.SetBytes(readFiles(b, path))
				}
			})
			b.Run(name, func(b *testing.B) {
				b.SetBytes(int64(items) * drainedBytes)
				for range b.N {
					fill(b)
					drain(b, engine.open(b, path, fsync), items)
				}
			})
			must(b, os.RemoveAll(path))
		}
	}
}

const drainedBytes = 64 << 10

func dropCaches(b *testing.B) {
	if os.Getenv("VELLUM_BENCH_COLD") != "" {
		syscall.Sync()
		must(b, os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0))
	}
}

// readFiles reads the files of a storage that hold its data, and returns their length. A stage has
// holes, and the reserve is one.
func readFiles(b *testing.B, path string) int64 {
	var all int64
	buffer := make([]byte, 1<<20)
	must(b, filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) == ".stage" || entry.Name() == "reserve" {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		for err == nil {
			var count int
			count, err = file.Read(buffer)
			all += int64(count)
		}
		if err == io.EOF {
			return nil
		}
		return err
	}))
	return all
}

// fillQueue stores items one by one, as a queue does.
func fillQueue(b *testing.B, extension storage.Extension, items int) {
	client := newClient(b, extension)
	item := make([]byte, drainedBytes)
	for i := range items {
		must(b, client.Batch(context.Background(), storage.SetOperation("meta", []byte("0")),
			storage.SetOperation(strconv.Itoa(i), item)))
	}
	must(b, client.Close(context.Background()))
}

func drain(b *testing.B, extension storage.Extension, items int) {
	ctx := context.Background()
	client := newClient(b, extension)
	peak := 0
	for i := range items {
		key := strconv.Itoa(i)
		get := storage.GetOperation(key)
		must(b, client.Batch(ctx, storage.SetOperation("meta", []byte(key)), get))
		if len(get.Value) != drainedBytes {
			b.Fatalf("item %d has %d bytes", i, len(get.Value))
		}
		must(b, client.Batch(ctx, storage.SetOperation("meta", []byte(key)),
			storage.DeleteOperation(key)))
		if i%256 == 0 {
			peak = max(peak, anonymousKiB(b))
		}
	}
	must(b, client.Close(ctx))
	b.ReportMetric(float64(peak)/1024, "MiB")
}

// anonymousKiB is how much memory the process has that is not of files.
func anonymousKiB(b *testing.B) int {
	status, err := os.ReadFile("/proc/self/status")
	must(b, err)
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	kibibytes, err := strconv.Atoi(strings.Fields(rest)[0])
	must(b, err)
	return kibibytes
}
