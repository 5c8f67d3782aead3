package raftvellum

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"vellum"
	"vellum/internal/proving"
)

// The test program is started again with a role in its environment.
const roleVariable = "VELLUM_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "store":
		exitWith(changeForever(os.Args[1], os.Args[2]))
	case "node":
		exitWith(runNode(os.Args[1:]))
	default:
		os.Exit(m.Run())
	}
}

func exitWith(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// start runs this program in a role.
func start(t *testing.T, role string, arguments ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	must(t, err)
	child := exec.Command(program, arguments...)
	child.Env = append(os.Environ(), roleVariable+"="+role)
	child.Stderr = os.Stderr
	return child
}

func openSmall(path string) (*Store, error) {
	return Open(path, vellum.SegmentBytes(64<<10))
}

// changeForever changes a store as the seed says, and writes a line when a change is done.
func changeForever(path, seed string) error {
	store, err := openSmall(path)
	if err != nil {
		return err
	}
	m, err := modelOf(store)
	if err != nil {
		return err
	}
	random := seeded(seed)
	for step := 0; ; step++ {
		change := m.plan(random)
		if err := change.apply(store); err != nil {
			return err
		}
		m.apply(change)
		if _, err := fmt.Println(step); err != nil {
			return err
		}
		if step%7 == 6 { // often, for the kill to meet one
			if err := store.checkpoint(); err != nil {
				return err
			}
		}
	}
}

func seeded(seed string) *rand.Rand {
	number, _ := strconv.ParseUint(seed, 10, 64)
	return rand.New(rand.NewPCG(number, 2))
}

// What was acknowledged is there after a kill, and the change that was under way is there whole or
// not at all.
func TestAKilledProcessLeavesWhatItAcknowledged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raft")
	m := &model{values: map[string][]byte{}}
	for round := range proving.Kills(t, "VELLUM_GO_KILLS", 2, 20) {
		seed := strconv.Itoa(round)
		steps := rand.New(rand.NewPCG(uint64(round), 3)).IntN(30) + 1
		done := killAfter(t, steps, start(t, "store", path, seed))
		random := seeded(seed)
		for range done {
			m.apply(m.plan(random))
		}
		next := m.plan(random)
		store, err := openSmall(path)
		must(t, err)
		got, err := modelOf(store)
		must(t, err)
		if !got.equals(m) {
			m.apply(next)
			if !got.equals(m) {
				t.Fatalf("round %d, step %d: the store is not as it was left", round, done)
			}
		}
		must(t, store.Close())
	}
}

// killAfter kills a child when it has written some lines, and returns how many it wrote.
func killAfter(t *testing.T, lines int, child *exec.Cmd) int {
	t.Helper()
	output, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	done := 0
	for scanner := bufio.NewScanner(output); scanner.Scan(); done++ {
		if done == lines {
			must(t, child.Process.Kill())
		}
	}
	_ = child.Wait()
	if done < lines {
		t.Fatalf("the child ended after %d steps", done)
	}
	return done
}
