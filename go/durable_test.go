package vellum_test

import (
	"log/slog"
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
