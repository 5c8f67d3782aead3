package otelvellum

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"vellum/internal/proving"
)

// How many batches are recorded. A batch is acknowledged by its number.
const batchesRecorded = 200

// Acknowledged changes are there after a power cut, and the batch that was under way is there whole
// or not at all.
func TestAPowerCutLeavesWhatWasAcknowledged(t *testing.T) {
	proving.PowerCuts(t, 4, proving.Nested)
}

func openDurable(path string) (*client, error) {
	config := defaultConfig()
	config.FSync = true
	config.Compaction.MinimumMiB = 1
	return openPath(path, config)
}

// changeSome changes a storage as the seed says, and says which batches are done.
func changeSome(arguments []string) error {
	c, err := openDurable(arguments[0])
	if err != nil {
		return err
	}
	random := proving.Seeded(arguments[1])
	for number := 1; number <= batchesRecorded; number++ {
		batch := plan(random)
		isNote := c.isNote(batch)
		if err := c.Batch(context.Background(), batch...); err != nil {
			return err
		}
		if !isNote {
			fmt.Println("ACK", number)
		}
		if number%9 != 0 {
			continue
		}
		moving := rand.New(rand.NewPCG(uint64(number), 9))
		if err := errors.Join(c.moveSome(moving), c.checkpoint()); err != nil {
			return err
		}
	}
	return c.Close(context.Background())
}

// checkSome says which batches a storage has.
func checkSome(arguments []string) error {
	c, err := openDurable(arguments[0])
	if err != nil {
		return err
	}
	got, err := valuesOf(c)
	if err != nil {
		return err
	}
	// The power may have been cut under an earlier check.
	delete(got, "check")
	if batches, ok := batchesOf(got, arguments[1]); !ok {
		fmt.Println("BAD the storage is as no batches have left it")
	} else if batches > 0 {
		fmt.Printf("1-%d\n", batches)
	}
	// The storage continues.
	if err := c.Set(context.Background(), "check", nil); err != nil {
		return err
	}
	return c.Close(context.Background())
}

// batchesOf tells how many batches a storage has.
func batchesOf(got map[string][]byte, seed string) (batches int, ok bool) {
	model, random := map[string][]byte{}, proving.Seeded(seed)
	for number := 0; number <= batchesRecorded; number++ {
		if maps.EqualFunc(got, model, bytes.Equal) {
			batches, ok = number, true
		}
		do(model, plan(random))
	}
	return batches, ok
}
