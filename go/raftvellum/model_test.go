package raftvellum

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hashicorp/raft"
)

// model is the expected content of a store.
type model struct {
	entries []*raft.Log
	values  map[string][]byte
}

// change is something that can be done to a store and to a model.
type change struct {
	entries     []*raft.Log
	isDeletion  bool
	first, last uint64
	key, value  []byte
}

// modelOf reads the contents of a store.
func modelOf(store *Store) (*model, error) {
	m := &model{values: map[string][]byte{}}
	first, _ := store.entries.first()
	for end := store.visible; first < end; first++ {
		var entry raft.Log
		err := store.GetLog(first, &entry)
		if err == raft.ErrLogNotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		m.entries = append(m.entries, &entry)
	}
	for key, value := range store.values {
		m.values[key] = value
	}
	return m, nil
}

// plan chooses the next change.
func (m *model) plan(random *rand.Rand) change {
	switch random.IntN(8) {
	case 0:
		key, value := fmt.Append(nil, random.IntN(4)), fmt.Append(nil, random.Uint64())
		return change{key: key, value: value}
	case 1, 2:
		return m.planDeletion(random)
	default:
		return m.planEntries(random)
	}
}

func (m *model) planEntries(random *rand.Rand) change {
	next := uint64(random.IntN(3))
	if len(m.entries) > 0 {
		next = m.entries[len(m.entries)-1].Index + 1
	}
	var batch []*raft.Log
	for range random.IntN(20) + 1 {
		if random.IntN(50) == 0 {
			next += uint64(random.IntN(5))
		}
		data := bytes.Repeat([]byte{byte(random.Int())}, random.IntN(500))
		batch = append(batch, &raft.Log{Index: next, Term: random.Uint64N(9), Data: data})
		next++
	}
	return change{entries: batch}
}

func (m *model) planDeletion(random *rand.Rand) change {
	if len(m.entries) == 0 {
		return change{isDeletion: true, last: random.Uint64N(9)}
	}
	i, j := random.IntN(len(m.entries)), random.IntN(len(m.entries))
	switch random.IntN(4) {
	case 0, 1:
		i = 0
	case 2:
		j = len(m.entries) - 1
	}
	i, j = min(i, j), max(i, j)
	return change{isDeletion: true, first: m.entries[i].Index, last: m.entries[j].Index}
}

func (c change) apply(store *Store) error {
	switch {
	case c.isDeletion:
		return store.DeleteRange(c.first, c.last)
	case c.key != nil:
		return store.Set(c.key, c.value)
	default:
		return store.StoreLogs(c.entries)
	}
}

func (m *model) apply(c change) {
	switch {
	case c.isDeletion:
		m.entries = slices.DeleteFunc(m.entries, func(entry *raft.Log) bool {
			return entry.Index >= c.first && entry.Index <= c.last
		})
	case c.key != nil:
		m.values[string(c.key)] = c.value
	default:
		m.entries = append(m.entries, c.entries...)
	}
}

func (m *model) equals(other *model) bool {
	return slices.EqualFunc(m.entries, other.entries, sameEntry) &&
		reflect.DeepEqual(m.values, other.values)
}

func TestTheStoreIsAsItsModelWhateverIsDone(t *testing.T) {
	seeds := uint64(8)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			store, m := newStore(t), &model{values: map[string][]byte{}}
			for range 150 {
				switch random.IntN(10) {
				case 0:
					store = reopen(t, store)
				case 1:
					must(t, store.checkpoint())
				default:
					change := m.plan(random)
					must(t, change.apply(store))
					m.apply(change)
				}
				checkOnce(t, store, m.entries)
				if got, err := modelOf(store); err != nil || !got.equals(m) {
					t.Fatalf("%v, %v; wanted %v", got, err, m)
				}
			}
		})
	}
}
