package raftvellum_test

import (
	"fmt"
	"os"

	"github.com/hashicorp/raft"

	"vellum/raftvellum"
)

func Example() {
	directory, err := os.MkdirTemp("", "raft")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(directory)
	store, err := raftvellum.Open(directory + "/log")
	if err != nil {
		panic(err)
	}
	defer store.Close()
	if err := store.StoreLogs([]*raft.Log{{Index: 1, Term: 1, Data: []byte("an entry")}}); err != nil {
		panic(err)
	}
	var entry raft.Log
	if err := store.GetLog(1, &entry); err != nil {
		panic(err)
	}
	fmt.Printf("%d: %s\n", entry.Index, entry.Data)
	// Output: 1: an entry
}
