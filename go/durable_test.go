package vellum_test

import (
	"context"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"vellum"
)

// A process that holds space in front of a line keeps that line from being published. The handler must
// not say that the line survives a power cut.
func TestAHandlerCommitsItsOwnLine(t *testing.T) {
	for name, kind := range map[string]vellum.Option{
		"events": vellum.Events(), "mapped text": vellum.MappedText(),
	} {
		t.Run(name, func(t *testing.T) {
			log := open(t, kind, vellum.Timeout(20*time.Millisecond))
			holder, _ := held(t, log)
			handler := vellum.NewHandler(log, nil, vellum.CommitFrom(slog.LevelError))
			must(t, handler.Handle(background, slog.NewRecord(time.Time{}, slog.LevelWarn, "warning", 0)))
			record := slog.NewRecord(time.Time{}, slog.LevelError, "error", 0)
			wantError(t, handler.Handle(background, record), vellum.ErrTimedOut)
			must(t, holder.Process.Kill())
			_ = holder.Wait()
			log = openAt(t, log.Path())
			handler = vellum.NewHandler(log, nil, vellum.CommitFrom(slog.LevelError)).WithGroup("a")
			must(t, handler.Handle(background, record))
			last, _, err := log.Last()
			must(t, err)
			if log.Durable() <= last {
				t.Fatalf("the line at %d is not durable: that ends at %d", last, log.Durable())
			}
		})
	}
}

// No bytes of text are no record, so there is nothing to wait for.
func TestNoBytesOfTextAreDurable(t *testing.T) {
	for name, kind := range map[string]vellum.Option{"text": vellum.Text(), "mapped text": vellum.MappedText()} {
		t.Run(name, func(t *testing.T) {
			log := open(t, kind)
			ctx, cancel := context.WithCancel(background)
			defer cancel()
			for _, ctx := range []context.Context{background, ctx} {
				for range 2 {
					_, err := log.AppendDurable(ctx, nil)
					must(t, err)
					batch := log.NewBatch()
					batch.Push([]byte("a line\n"))
					batch.Push(nil)
					lsns, err := batch.AppendDurable(ctx)
					must(t, err)
					if log.Durable() <= lsns[0] {
						t.Fatal("the line is not durable")
					}
				}
			}
		})
	}
}

func TestABatchIsDurableOrAnError(t *testing.T) {
	log := open(t, vellum.Timeout(20*time.Millisecond))
	batch := log.NewBatch()
	_, err := batch.AppendDurable(background)
	wantError(t, err, vellum.ErrInvalidOption)
	held(t, log)
	batch.Push([]byte("one"))
	batch.Push([]byte("two"))
	lsns, err := batch.AppendDurable(background)
	wantError(t, err, vellum.ErrTimedOut)
	want(t, batch.Len(), 0)
	if len(lsns) != 2 || log.Durable() > lsns[0] {
		t.Fatal(lsns, log.Durable())
	}
	must(t, log.Close())
	batch.Push([]byte("one"))
	_, err = batch.AppendDurable(background)
	wantError(t, err, vellum.ErrClosed)
}

// A goroutine that appends and commits with one call does not keep the others from the log while its
// commit waits for another process.
func TestACommitAloneWaitsAsOthersDo(t *testing.T) {
	log := open(t)
	holder, _ := held(t, log)
	outcome := make(chan error)
	for range 3 {
		before := log.Tail()
		go func() { _, err := log.AppendDurable(background, []byte("a record")); outcome <- err }()
		for log.Tail() == before { // until it has appended
			runtime.Gosched()
		}
	}
	must(t, holder.Process.Kill())
	_ = holder.Wait()
	for range 3 {
		must(t, <-outcome)
	}
	want(t, len(records(t, log)), 4)
}
