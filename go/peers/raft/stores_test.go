// Package raft compares the store of vellum/raftvellum with raft-wal and raft-boltdb, and checks it
// by the verifier of raft-wal.
package raft

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	boltdb "github.com/hashicorp/raft-boltdb/v2"
	wal "github.com/hashicorp/raft-wal"

	"vellum/raftvellum"
)

type store interface {
	raft.LogStore
	raft.StableStore
	io.Closer
}

// engines are the stores, as each of them is used by default.
var engines = []struct {
	name string
	open func(directory string) (store, error)
}{
	{"vellum", func(directory string) (store, error) {
		return raftvellum.Open(filepath.Join(directory, "vellum"))
	}},
	{"raft-wal", func(directory string) (store, error) {
		return wal.Open(directory)
	}},
	{"raft-boltdb", func(directory string) (store, error) {
		return boltdb.NewBoltStore(filepath.Join(directory, "raft.db"))
	}},
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
