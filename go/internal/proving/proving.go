// Package proving has the helpers that tests of several packages need.
package proving

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// A test program is started again with a role in its environment.
const roleVariable = "VELLUM_TEST_ROLE"

// Main runs the tests of a program, or its role.
func Main(m *testing.M, roles map[string]func(arguments []string) error) {
	role := os.Getenv(roleVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := roles[role](os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Child is this program in a role, not started yet.
func Child(t *testing.T, role string, arguments ...string) *exec.Cmd {
	t.Helper()
	child := exec.Command(program(t), arguments...)
	child.Env = append(os.Environ(), roleVariable+"="+role)
	child.Stderr = os.Stderr
	return child
}

func program(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// KillAfter kills a child when it has written some lines. It returns how many it wrote until then.
func KillAfter(t *testing.T, lines int, child *exec.Cmd) int {
	t.Helper()
	output, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	done := 0
	for scanner := bufio.NewScanner(output); scanner.Scan(); {
		if done++; done == lines {
			_ = child.Process.Kill()
		}
	}
	_ = child.Wait()
	if done < lines {
		t.Fatalf("the child ended after %d lines", done)
	}
	return done
}

// Seeded gives a child and its test the same numbers.
func Seeded(seed string) *rand.Rand {
	number, _ := strconv.ParseUint(seed, 10, 64)
	return rand.New(rand.NewPCG(number, 2))
}

// Skip ends a test that this machine cannot do. That is a failure where everything is required.
func Skip(t *testing.T, why ...any) {
	t.Helper()
	if os.Getenv("VELLUM_REQUIRE") == "all" {
		t.Fatal(why...)
	}
	t.Skip(why...)
}

// SmallDisk mounts a filesystem in memory for a test: "16m" has so many MiB.
func SmallDisk(t *testing.T, size string) string {
	t.Helper()
	path := t.TempDir()
	mount := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", path)
	if output, err := mount.CombinedOutput(); err != nil {
		Skip(t, "mount: ", string(output))
	}
	t.Cleanup(func() {
		if output, err := exec.Command("umount", path).CombinedOutput(); err != nil {
			t.Errorf("umount: %s", output)
		}
	})
	return path
}

// FormattedDisk mounts a new filesystem of a kind for a test: "ext3" of so many MiB.
func FormattedDisk(t *testing.T, kind string, mebibytes int64) string {
	t.Helper()
	image, path := filepath.Join(t.TempDir(), "image"), t.TempDir()
	err := os.WriteFile(image, nil, 0o600)
	if err == nil {
		err = os.Truncate(image, mebibytes<<20)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"mkfs." + kind, "-q", "-F", image}, {"mount", "-o", "loop", image, path}} {
		if output, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			Skip(t, command[0], ": ", err, string(output))
		}
	}
	t.Cleanup(func() {
		if output, err := exec.Command("umount", path).CombinedOutput(); err != nil {
			t.Errorf("umount: %s", output)
		}
	})
	return path
}

// Count is how often a test does something: short with -short, the value of the environment
// variable, or usual.
func Count(t *testing.T, variable string, short, usual int) int {
	t.Helper()
	text := os.Getenv(variable)
	switch {
	case text != "":
		count, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return count
	case testing.Short():
		return short
	}
	return usual
}
