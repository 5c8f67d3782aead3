package proving

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// The roles of a program under which the power is cut: Work changes the content of a directory, and
// Check reports it after a cut. Both get the directory and a seed. `vellum-powercut --help`
// explains their output.
const (
	Work  = "power-work"
	Check = "power-check"
)

// Nested has the power cut during each Check too.
const Nested = "--nested"

// How many cuts of one recording there are at most.
const cutsOfRecording = 100

// diskMiB is the smallest disk: files of 16 MiB, with their stage and a reserve, must fit.
const diskMiB = "256"

// machineCannot is the status of the recorder where the machine lacks something.
const machineCannot = 77

// PowerCuts cuts the power under the role Work of this program, on disks that the recorder of the
// project serves: VELLUM_POWERCUT is where that is. It fails where Check misses something.
//
// VELLUM_GO_CUTS is how many cuts there are. Without it there are a few; with -short so many, on ext4
// alone. Options are further ones for the recorder, such as Nested.
func PowerCuts(t *testing.T, short int, options ...string) {
	t.Helper()
	recorder := os.Getenv("VELLUM_POWERCUT")
	if recorder == "" {
		Skip(t, "VELLUM_POWERCUT does not say where the recorder is")
	}
	filesystems := []string{"ext4", "xfs", "btrfs"}
	if testing.Short() {
		filesystems = filesystems[:1]
	}
	all := Count(t, "VELLUM_GO_CUTS", short, 60)
	ofRecording := min(cutsOfRecording, (all+len(filesystems)-1)/len(filesystems))
	for round := 0; all > 0; round++ {
		cuts := min(all, ofRecording)
		cutPower(t, recorder, filesystems[round%len(filesystems)], round, cuts, options)
		all -= cuts
	}
}

// cutPower makes a recording on a filesystem, and cuts the power as often as that is said.
func cutPower(
	t *testing.T, recorder, filesystem string, seed, cuts int, options []string,
) {
	t.Helper()
	role := func(role string) string {
		return fmt.Sprintf("%s=%s '%s' {dir} %d", roleVariable, role, program(t), seed)
	}
	count := strconv.Itoa(cuts)
	arguments := append([]string{"--work", role(Work), "--check", role(Check), "--fs", filesystem,
		"--points", count, "--at-least", count, "--timeout", "120", "--size", diskMiB}, options...)
	child := exec.Command(recorder, arguments...)
	var complaints strings.Builder
	child.Stderr = &complaints
	output, err := child.Output()
	if child.ProcessState != nil && child.ProcessState.ExitCode() == machineCannot {
		Skip(t, complaints.String())
	}
	if err != nil {
		t.Fatalf("%v\n%s%s", err, output, complaints.String())
	}
	t.Logf("%s", output)
}
