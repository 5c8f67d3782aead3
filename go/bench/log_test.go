package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"vellum"
	"vellum/bench/plain"
)

var background = context.Background()

func open(b *testing.B, options ...vellum.Option) *vellum.Log {
	log, err := vellum.Open(filepath.Join(b.TempDir(), "log"), options...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = log.Close() })
	return log
}

func must(b *testing.B, err error) {
	if err != nil {
		b.Fatal(err)
	}
}

const size = 100

func BenchmarkAppend(b *testing.B) {
	b.Run("c", func(b *testing.B) {
		log := plain.Open(filepath.Join(b.TempDir(), "log"), false)
		defer log.Close()
		b.ResetTimer()
		log.Append(size, b.N, false)
	})
	b.Run("go", func(b *testing.B) {
		log, record := open(b, vellum.Events()), make([]byte, size)
		b.ReportAllocs()
		for b.Loop() {
			_, err := log.Append(background, record)
			must(b, err)
		}
	})
	b.Run("go-batch-64", func(b *testing.B) {
		log, record := open(b, vellum.Events()), make([]byte, size)
		batch := log.NewBatch()
		b.ReportAllocs()
		for b.Loop() {
			batch.Push(record)
			if batch.Len() == 64 {
				_, err := batch.Append(background)
				must(b, err)
			}
		}
	})
	b.Run("go-parallel", func(b *testing.B) {
		log := open(b, vellum.Events())
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			record := make([]byte, size)
			for pb.Next() {
				_, err := log.Append(background, record)
				must(b, err)
			}
		})
	})
}

// The cost of crossing to C: a call that reads one word of memory there.
func BenchmarkCall(b *testing.B) {
	log := open(b, vellum.Events())
	for b.Loop() {
		log.Durable()
	}
}

func BenchmarkAppendDurable(b *testing.B) {
	b.Run("c", func(b *testing.B) {
		log := plain.Open(filepath.Join(b.TempDir(), "log"), true)
		defer log.Close()
		b.ResetTimer()
		log.Append(size, b.N, true)
	})
	cancelled, cancel := context.WithCancel(background)
	defer cancel()
	for name, ctx := range map[string]context.Context{"go": background, "go-with-context": cancelled} {
		b.Run(name, func(b *testing.B) {
			log, record := open(b, vellum.WAL()), make([]byte, size)
			b.ReportAllocs()
			for b.Loop() {
				_, err := log.AppendDurable(ctx, record)
				must(b, err)
			}
		})
		for _, goroutines := range []int{16, 256} {
			b.Run(fmt.Sprint(name, "-", goroutines), func(b *testing.B) {
				log := open(b, vellum.WAL())
				b.ReportAllocs()
				run(b, goroutines, func() {
					record := make([]byte, size)
					_, err := log.AppendDurable(ctx, record)
					must(b, err)
				})
			})
		}
	}
}

// run shares the b.N calls among goroutines.
func run(b *testing.B, goroutines int, call func()) {
	turns := make(chan struct{}, b.N)
	for range b.N {
		turns <- struct{}{}
	}
	close(turns)
	b.ResetTimer()
	done := make(chan struct{})
	for range goroutines {
		go func() {
			for range turns {
				call()
			}
			done <- struct{}{}
		}()
	}
	for range goroutines {
		<-done
	}
}

func BenchmarkRead(b *testing.B) {
	for _, size := range []int{100, 4096} {
		path := filepath.Join(b.TempDir(), "log")
		log, err := vellum.Open(path)
		must(b, err)
		defer log.Close()
		const records = 50_000
		for range records {
			_, err := log.Append(background, make([]byte, size))
			must(b, err)
		}
		b.Run(fmt.Sprint("c-", size), func(b *testing.B) {
			log := plain.Open(path, false)
			defer log.Close()
			b.SetBytes(int64(size * records))
			for b.Loop() {
				if log.ReadAll() != records {
					b.Fatal("records are missing")
				}
			}
		})
		b.Run(fmt.Sprint("go-", size), func(b *testing.B) {
			b.SetBytes(int64(size * records))
			for b.Loop() {
				reader, err := log.NewReader(0)
				must(b, err)
				count := 0
				for _, err := range reader.All() {
					must(b, err)
					count++
				}
				if count != records {
					b.Fatal("records are missing")
				}
				_ = reader.Close()
			}
		})
	}
}
