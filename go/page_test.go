package vellum_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// programsOf are the programs of the page for Go, by the first log that each opens.
func programsOf(t *testing.T) map[string]string {
	page, err := os.ReadFile("../docs/go.md")
	must(t, err)
	programs := map[string]string{}
	for _, block := range strings.Split(string(page), "```go\n")[1:] {
		program, _, _ := strings.Cut(block, "```")
		_, log, _ := strings.Cut(program, `Open("`)
		log, _, _ = strings.Cut(log, `"`)
		programs[log] = program
	}
	return programs
}

// runProgram builds a program in a module of its own, as its author would, and runs it so often in
// one directory.
func runProgram(t *testing.T, program string, times int, arguments ...string) (dir, printed string) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		skip(t, err)
	}
	dir = t.TempDir()
	clone, err := filepath.Abs(".")
	must(t, err)
	module := "module program\n\ngo 1.24\n\nrequire vellum v0.0.0\n\nreplace vellum => " + clone + "\n"
	must(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(module), 0o666))
	must(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o666))
	build := exec.Command("go", append([]string{"build", "-o", "program"}, arguments...)...)
	build.Dir = dir
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for range times {
		run := exec.Command("./program")
		run.Dir = dir
		said, err := run.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		printed = string(said)
	}
	return dir, printed
}

func TestTheProgramsOfThePageRun(t *testing.T) {
	programs := programsOf(t)
	_, printed := runProgram(t, programs["orders.wal"], 2)
	if !strings.Contains(printed, ": an order\n") || !strings.Contains(printed, "durable at ") {
		t.Fatal(printed)
	}
	_, printed = runProgram(t, programs["outbox"], 2)
	want(t, printed, "a message\n")
	dir, _ := runProgram(t, programs["app.log"], 1)
	text, err := os.ReadFile(filepath.Join(dir, "app.log"))
	must(t, err)
	if !strings.Contains(string(text), "orders=7") {
		t.Fatalf("%s", text)
	}
}

func TestAProgramNeedsNoSharedLibraryWhereItIsStatic(t *testing.T) {
	if testing.Short() {
		t.Skip("the long form builds it")
	}
	_, printed := runProgram(t, programsOf(t)["orders.wal"], 1,
		"-ldflags", "-linkmode external -extldflags -static")
	if !strings.Contains(printed, "durable at ") {
		t.Fatal(printed)
	}
}
