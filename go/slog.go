package vellum

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// HandlerOption is an option of [NewHandler].
type HandlerOption func(*handler)

// JSON has each record written as a line of JSON instead of key=value.
func JSON() HandlerOption { return func(h *handler) { h.isJSON = true } }

// CommitFrom has records of this level and above survive a power cut when the call returns. That
// costs a write of the device, which all waiters at the same time share.
func CommitFrom(level slog.Leveler) HandlerOption { return func(h *handler) { h.commitFrom = level } }

type handler struct {
	slog.Handler
	lines      *lines
	commitFrom slog.Leveler
	isJSON     bool
}

// lines is the log, for a handler of slog and all that are made from it: one of them writes at a time.
type lines struct {
	log    *Log
	newest atomic.Uint64 // the position of the newest line, 0 before the first
}

func (l *lines) Write(line []byte) (int, error) {
	lsn, err := l.log.write(line)
	if err != nil {
		return 0, err
	}
	if lsn != 0 { // it was not dropped
		l.newest.Store(uint64(lsn))
	}
	return len(line), nil
}

// NewHandler makes a handler for [slog.New] that appends to a text log: one line for each record, as
// [slog.NewTextHandler] writes it. A record is in the log when the call returns; the death of the
// process does not take it back. Any number of handlers and processes may share a log.
//
// Errors of an append are returned by Handle, which slog's loggers ignore: see [WhenFull].
func NewHandler(log *Log, opts *slog.HandlerOptions, options ...HandlerOption) slog.Handler {
	h := &handler{lines: &lines{log: log}}
	for _, option := range options {
		option(h)
	}
	if h.isJSON {
		h.Handler = slog.NewJSONHandler(h.lines, opts)
	} else {
		h.Handler = slog.NewTextHandler(h.lines, opts)
	}
	return h
}

func (h *handler) Handle(ctx context.Context, record slog.Record) error {
	if err := h.Handler.Handle(ctx, record); err != nil {
		return err
	}
	if h.commitFrom == nil || record.Level < h.commitFrom.Level() {
		return nil
	}
	// The line of this call, or a newer one. 0 where the log has dropped each line so far.
	if newest := LSN(h.lines.newest.Load()); newest != 0 {
		return h.lines.log.Commit(ctx, newest)
	}
	return nil
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.Handler = h.Handler.WithAttrs(attrs)
	return &with
}

func (h *handler) WithGroup(name string) slog.Handler {
	with := *h
	with.Handler = h.Handler.WithGroup(name)
	return &with
}
