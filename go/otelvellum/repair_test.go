package otelvellum

import (
	"fmt"
	"path/filepath"
	"testing"

	"vellum/internal/damage"
)

// A repaired storage has every value that was not damaged, where its places were in a checkpoint, and
// where that one is damaged.
func TestARepairedStorageHasTheOtherValues(t *testing.T) {
	for _, isCheckpoint := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "client")
		c, err := openPath(path, defaultConfig())
		must(t, err)
		want := map[string][]byte{}
		for number := range 50 {
			key, value := fmt.Sprint(number), fmt.Appendf(nil, "value %d", number)
			must(t, c.Set(t.Context(), key, value))
			want[key] = value
		}
		must(t, c.Delete(t.Context(), "20"))
		delete(want, "20")
		must(t, c.checkpoint())
		damaged := c.places["30"].position
		if isCheckpoint {
			damaged = c.log.Checkpoint()
		}
		must(t, c.Set(t.Context(), "10", []byte("again")))
		want["10"] = []byte("again")
		must(t, c.Close(t.Context()))
		repaired := openAt(t, damage.Repaired(t, path, damaged), defaultConfig())
		if !isCheckpoint {
			if value, err := repaired.Get(t.Context(), "30"); err == nil {
				t.Fatalf("%q", value)
			}
			must(t, repaired.Delete(t.Context(), "30"))
			delete(want, "30")
		}
		check(t, repaired, want)
	}
}
