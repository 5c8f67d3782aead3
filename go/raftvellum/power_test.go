package raftvellum

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hashicorp/raft"

	"vellum/internal/proving"
)

// How many changes are recorded. A change is acknowledged by its number.
const changesRecorded = 150

// Behind the numbers of the changes are those of the terms, which are stored at the same time.
const firstTerm = 1_000_000

var termKey = []byte("term")

// Acknowledged changes are there after a power cut, and the change that was under way is there
// whole or not at all.
func TestAPowerCutLeavesWhatWasAcknowledged(t *testing.T) {
	proving.PowerCuts(t, 8, proving.Nested)
}

// changeSome changes a store as the seed says, and says which changes are done.
func changeSome(arguments []string) error {
	store, err := openSmall(arguments[0])
	if err != nil {
		return err
	}
	terms := make(chan error)
	stop := make(chan struct{})
	go func() { terms <- storeTerms(store, stop) }()
	m, random := &model{values: map[string][]byte{}}, proving.Seeded(arguments[1])
	for number := 1; number <= changesRecorded; number++ {
		change := m.plan(random)
		if err := change.apply(store); err != nil {
			return err
		}
		m.apply(change)
		fmt.Println("ACK", number)
		if number%7 == 0 {
			if err := store.checkpoint(); err != nil {
				return err
			}
		}
	}
	close(stop)
	if err := <-terms; err != nil {
		return err
	}
	return store.Close()
}

func storeTerms(store *Store, stop <-chan struct{}) error {
	for term := uint64(firstTerm); ; term++ {
		select {
		case <-stop:
			return nil
		default:
		}
		if err := store.SetUint64(termKey, term); err != nil {
			return err
		}
		fmt.Println("ACK", term)
	}
}

// checkSome says which changes a store has.
func checkSome(arguments []string) error {
	store, err := openSmall(arguments[0])
	if err != nil {
		return err
	}
	got, err := modelOf(store)
	if err != nil {
		return err
	}
	term, err := store.GetUint64(termKey)
	if err != nil {
		return err
	}
	if term != 0 {
		fmt.Printf("%d-%d\n", firstTerm, term)
	}
	delete(got.values, string(termKey))
	// The power may have been cut under an earlier check.
	got.entries = slices.DeleteFunc(got.entries, isOfCheck)
	if changes, ok := changesOf(got, arguments[1]); !ok {
		fmt.Println("BAD the store is as no changes have left it")
	} else if changes > 0 {
		fmt.Printf("1-%d\n", changes)
	}
	// The store continues.
	last, err := store.LastIndex()
	if err != nil {
		return err
	}
	if err := store.StoreLog(&raft.Log{Index: last + 1, Data: []byte("check")}); err != nil {
		return err
	}
	return store.Close()
}

func isOfCheck(entry *raft.Log) bool { return string(entry.Data) == "check" }

// changesOf tells how many changes a store has.
func changesOf(got *model, seed string) (changes int, ok bool) {
	m, random := &model{values: map[string][]byte{}}, proving.Seeded(seed)
	for number := 0; number <= changesRecorded; number++ {
		if got.equals(m) {
			changes, ok = number, true
		}
		m.apply(m.plan(random))
	}
	return changes, ok
}
