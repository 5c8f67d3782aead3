// Package proving has what the tests of several packages need.
package proving

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// SmallDisk mounts a filesystem in memory for a test: "16m" has so many MiB.
func SmallDisk(t *testing.T, size string) string {
	t.Helper()
	path := t.TempDir()
	mount := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", path)
	if output, err := mount.CombinedOutput(); err != nil {
		if os.Getenv("VELLUM_REQUIRE") == "all" {
			t.Fatalf("mount: %s", output)
		}
		t.Skipf("mount: %s", output)
	}
	t.Cleanup(func() {
		if output, err := exec.Command("umount", path).CombinedOutput(); err != nil {
			t.Errorf("umount: %s", output)
		}
	})
	return path
}

// Kills is how many processes a test kills: short with -short, what the variable of the environment
// says, or usual.
func Kills(t *testing.T, variable string, short, usual int) int {
	t.Helper()
	text := os.Getenv(variable)
	switch {
	case testing.Short():
		return short
	case text == "":
		return usual
	}
	count, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return count
}
