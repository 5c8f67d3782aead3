package otelvellum

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"vellum/internal/proving"
)

func TestMain(m *testing.M) {
	proving.Main(m, map[string]func([]string) error{
		"storage":     func(arguments []string) error { return changeForever(arguments[0], arguments[1]) },
		proving.Work:  changeSome,
		proving.Check: checkSome,
	})
}

// changeForever changes a storage as the seed says, and writes a line when a batch is done.
func changeForever(path, seed string) error {
	config := defaultConfig()
	config.Compaction.MinimumMiB = 1
	c, err := openPath(path, config)
	if err != nil {
		return err
	}
	random := proving.Seeded(seed)
	for step := 0; ; step++ {
		if err := c.Batch(context.Background(), plan(random)...); err != nil {
			return err
		}
		if _, err := fmt.Println(step); err != nil {
			return err
		}
		if step%7 != 6 {
			continue
		}
		// Often, for the kill to meet one.
		moving := rand.New(rand.NewPCG(uint64(step), 9))
		if err := errors.Join(c.moveSome(moving), c.checkpoint()); err != nil {
			return err
		}
	}
}

// Acknowledged changes are there after a kill, and the batch that was under way is there whole or
// not at all.
func TestAKilledProcessLeavesWhatItAcknowledged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "client")
	model := map[string][]byte{}
	for round := range proving.Count(t, "VELLUM_GO_KILLS", 2, 20) {
		seed := strconv.Itoa(round)
		steps := rand.New(rand.NewPCG(uint64(round), 3)).IntN(40) + 1
		done := proving.KillAfter(t, steps, proving.Child(t, "storage", path, seed))
		random := proving.Seeded(seed)
		for range done {
			do(model, plan(random))
		}
		next := maps.Clone(model)
		do(next, plan(random))
		c, err := openPath(path, defaultConfig())
		must(t, err)
		got := values(t, c)
		switch {
		case maps.EqualFunc(got, model, bytes.Equal):
		case maps.EqualFunc(got, next, bytes.Equal):
			model = next
		default:
			t.Fatalf("round %d, step %d: the storage is not as it was left", round, done)
		}
		must(t, c.Close(t.Context()))
	}
}

func values(t *testing.T, c *client) map[string][]byte {
	all, err := valuesOf(c)
	must(t, err)
	return all
}

func valuesOf(c *client) (map[string][]byte, error) {
	all := map[string][]byte{}
	err := c.Walk(context.Background(), func(key string, value []byte) ([]*storage.Operation, error) {
		all[key] = bytes.Clone(value)
		return nil, nil
	})
	return all, err
}

// On a full disk no key is added, and a queue can be drained, as the collector does it: by changes
// that take space themselves.
func TestAQueueIsDrainedOnAFullDisk(t *testing.T) {
	config := defaultConfig()
	config.Directory = proving.SmallDisk(t, "96m")
	extension := startExtension(t, config)
	for range 2 {
		opened, err := extension.GetClient(t.Context(), component.KindExporter, exporterID, "logs")
		must(t, err)
		c := opened.(*client)
		must(t, c.Set(t.Context(), "meta", []byte("0")))
		filled := fill(t, c)
		if filled < 400 {
			t.Log(c.garbage, c.checkpointBytes, c.log.Begin(), c.oldest(), c.log.Published(), c.tidy(), c.log.Begin(), c.reserve.isHeld)
			out, _ := exec.Command("sh", "-c", "df -k "+config.Directory+"; du -ka "+config.Directory).CombinedOutput()
			t.Logf("%s", out)
			must(t, c.Close(t.Context()))
			t.Fatalf("%d values fill the disk", filled)
		}
		for i := range filled {
			key := fmt.Sprint(i)
			get := storage.GetOperation(key)
			must(t, c.Batch(t.Context(), storage.SetOperation("meta", []byte(key)), get))
			if len(get.Value) != valueBytes {
				t.Fatalf("value %d has %d bytes", i, len(get.Value))
			}
			meta := storage.SetOperation("meta", []byte("done"))
			must(t, c.Batch(t.Context(), meta, storage.DeleteOperation(key)))
		}
		must(t, c.Close(t.Context()))
	}
}

const valueBytes = 64 << 10

// fill sets values until the disk is full, and returns how many.
func fill(t *testing.T, c *client) int {
	value := make([]byte, valueBytes)
	for i := 0; ; i++ {
		err := c.Set(t.Context(), fmt.Sprint(i), value)
		if errors.Is(err, storage.ErrStorageFull) {
			return i
		}
		must(t, err)
	}
}
