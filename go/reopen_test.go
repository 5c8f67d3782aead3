package vellum_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"vellum"
)

type reopening struct {
	name    string
	option  vellum.Option
	refused string // which logs are refused with it: "", "framed" or "always"
}

// reopenings has each option, with values that are not the log's.
var reopenings = []reopening{
	{"ReadOnly", vellum.ReadOnly(), ""},
	{"Create", vellum.Create(false), ""},
	{"CreateNew", vellum.CreateNew(), "always"},
	{"Exclusive", vellum.Exclusive(true), ""},
	{"Shared", vellum.Shared(true), ""},
	{"Envelope", vellum.Envelope(), "always"},
	{"FileLink", vellum.FileLink(), ""},
	{"NoAdvice", vellum.NoAdvice(), ""},
	{"Mode", vellum.Mode(0o600), ""},
	{"SegmentBytes", vellum.SegmentBytes(4096), ""},
	{"SegmentBytes", vellum.SegmentBytes(1 << 30), ""},
	{"MappedBytesMax", vellum.MappedBytesMax(4096), ""},
	{"PrefaultBytes", vellum.PrefaultBytes(4096), ""},
	{"StagedSegmentsMax", vellum.StagedSegmentsMax(2), ""},
	{"SpareSegmentsMax", vellum.SpareSegmentsMax(vellum.NoSpares), ""},
	{"FillBy", vellum.FillBy(vellum.FillMapped), ""},
	{"FillBy", vellum.FillBy(vellum.FillWrite), ""},
	{"FillBy", vellum.FillBy(vellum.FillStaged), ""},
	{"RotateBytes", vellum.RotateBytes(1 << 30), "framed"},
	{"RotateEvery", vellum.RotateEvery(24*time.Hour, time.Hour), "framed"},
	{"RetainBytes", vellum.RetainBytes(1 << 30), ""},
	{"RetainAge", vellum.RetainAge(24 * time.Hour), ""},
	{"RetainFiles", vellum.RetainFiles(9), "framed"},
	{"Compress", vellum.Compress(vellum.CompressGzip), "framed"},
	{"WhenFull", vellum.WhenFull(vellum.FullBlock), ""},
	{"WhenFull", vellum.WhenFull(vellum.FullDrop), "framed"},
	{"Timeout", vellum.Timeout(time.Minute), ""},
	{"CheckpointAfter", vellum.CheckpointAfter(1), ""},
	{"ApplicationTag", vellum.ApplicationTag(7), "always"},
}

// kinds refuse a log of another layout and no other.
var kinds = map[string]vellum.Option{
	"WAL": vellum.WAL(), "Events": vellum.Events(), "Text": vellum.Text(), "MappedText": vellum.MappedText(),
}

func TestTheReopeningsAreAllOptions(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "options.go", nil, 0)
	must(t, err)
	known := map[string]bool{}
	for _, each := range reopenings {
		known[each.name] = true
	}
	for _, declaration := range file.Decls {
		function, is := declaration.(*ast.FuncDecl)
		if !is || !function.Name.IsExported() || function.Type.Results == nil {
			continue
		}
		result, is := function.Type.Results.List[0].Type.(*ast.Ident)
		if is && result.Name == "Option" && !known[function.Name.Name] && kinds[function.Name.Name] == nil {
			t.Error(function.Name.Name, "is missing")
		}
	}
}

// An option refuses no log but one that the program would misunderstand.
func TestALogThatIsThereKeepsItsShape(t *testing.T) {
	for kind, created := range kinds {
		for _, each := range reopenings {
			path := filepath.Join(t.TempDir(), "log")
			log := openAt(t, path, created, vellum.SegmentBytes(1<<20))
			appendAll(t, log, "before\n")
			before, err := log.Stat()
			must(t, err)
			must(t, log.Close())
			framed := slices.Contains([]string{"WAL", "Events"}, kind)
			again, err := vellum.Open(path, each.option)
			if each.refused == "always" || each.refused == "framed" && framed {
				if !errors.Is(err, vellum.ErrInvalidOption) && !errors.Is(err, fs.ErrExist) {
					t.Error(kind, each.name, err)
				}
				continue
			}
			if err != nil {
				t.Error(kind, each.name, err)
				continue
			}
			now, err := again.Stat()
			must(t, err)
			if now.SegmentBytes != before.SegmentBytes || now.Fill != before.Fill {
				t.Error(kind, each.name, now.SegmentBytes, now.Fill)
			}
			must(t, again.Close())
			must(t, os.RemoveAll(path))
		}
	}
}
