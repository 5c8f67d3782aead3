package otelpeers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
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

// engines are the storages, with fsync.
var engines = []struct {
	name string
	open func(b *testing.B, directory string) storage.Extension
}{
	{"vellum", func(b *testing.B, directory string) storage.Extension {
		factory := otelvellum.NewFactory()
		config := factory.CreateDefaultConfig().(*otelvellum.Config)
		config.Directory, config.FSync = directory, true
		return start(b, factory, config)
	}},
	{"filestorage", func(b *testing.B, directory string) storage.Extension {
		factory := filestorage.NewFactory()
		config := factory.CreateDefaultConfig().(*filestorage.Config)
		config.Directory, config.FSync, config.Timeout = directory, true, time.Second
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

// BenchmarkEnqueue stores items as the queue of an exporter does, with fsync: an item, and what the
// queue knows of itself. Each goroutine has a queue of its own in one storage client.
func BenchmarkEnqueue(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		for _, goroutines := range []int{1, 16} {
			for _, engine := range engines {
				name := fmt.Sprintf("item=%d/goroutines=%d/%s", size, goroutines, engine.name)
				b.Run(name, func(b *testing.B) {
					client := newClient(b, engine.open(b, directory(b)))
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
// exporter does, after the storage was opened anew. VELLUM_BENCH_COLD=1 empties the page cache first
// (root).
func BenchmarkDrain(b *testing.B) {
	mebibytes := 64
	if text := os.Getenv("VELLUM_BENCH_MIB"); text != "" {
		var err error
		mebibytes, err = strconv.Atoi(text)
		must(b, err)
	}
	const size = 64 << 10
	items := mebibytes << 20 / size
	for _, engine := range engines {
		b.Run(engine.name, func(b *testing.B) {
			b.SetBytes(int64(items) * size)
			for range b.N {
				b.StopTimer()
				path := filepath.Join(directory(b), "storage")
				must(b, os.Mkdir(path, 0o700))
				fillQueue(b, engine.open(b, path), items, size)
				if os.Getenv("VELLUM_BENCH_COLD") != "" {
					must(b, os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0))
				}
				b.StartTimer()
				drain(b, engine.open(b, path), items, size)
			}
		})
	}
}

func fillQueue(b *testing.B, extension storage.Extension, items, size int) {
	client := newClient(b, extension)
	var batch []*storage.Operation
	item := make([]byte, size)
	for i := range items {
		batch = append(batch, storage.SetOperation(strconv.Itoa(i), item))
		if len(batch) == 64 || i == items-1 {
			must(b, client.Batch(context.Background(), batch...))
			batch = nil
		}
	}
	must(b, client.Set(context.Background(), "meta", []byte("0")))
	must(b, client.Close(context.Background()))
}

func drain(b *testing.B, extension storage.Extension, items, size int) {
	ctx := context.Background()
	client := newClient(b, extension)
	for i := range items {
		key := strconv.Itoa(i)
		get := storage.GetOperation(key)
		must(b, client.Batch(ctx, storage.SetOperation("meta", []byte(key)), get))
		if len(get.Value) != size {
			b.Fatalf("item %d has %d bytes", i, len(get.Value))
		}
		must(b, client.Batch(ctx, storage.SetOperation("meta", []byte(key)),
			storage.DeleteOperation(key)))
	}
	must(b, client.Close(ctx))
}
