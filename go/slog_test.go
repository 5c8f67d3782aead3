package vellum_test

import (
	"encoding/json"
	"log/slog"
	"testing"
	"testing/slogtest"

	"vellum"
)

// The suite of Go's standard library for handlers, with and without a commit of each record.
func TestTheHandlerKeepsTheRulesOfSlog(t *testing.T) {
	for _, options := range [][]vellum.HandlerOption{
		{vellum.JSON()},
		{vellum.JSON(), vellum.CommitFrom(slog.LevelInfo)},
	} {
		var log *vellum.Log
		newHandler := func(t *testing.T) slog.Handler {
			log = open(t, vellum.Text())
			return vellum.NewHandler(log, nil, options...)
		}
		slogtest.Run(t, newHandler, func(t *testing.T) map[string]any {
			lines := records(t, log)
			want(t, len(lines), 1)
			var attributes map[string]any
			must(t, json.Unmarshal([]byte(lines[0]), &attributes))
			return attributes
		})
	}
}
