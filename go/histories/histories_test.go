package histories

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/anishathalye/porcupine"

	"vellum"
	"vellum/internal/proving"
)

const (
	processes  = 4
	goroutines = 2
	// The calls of each goroutine in a round. A history of one round is searched within milliseconds.
	callsOfRound = 12
	// How long a search may take. One that has not ended by then has found nothing.
	searchMax = 10 * time.Second
)

var kinds = map[string]vellum.Option{
	"events": vellum.Events(), "wal": vellum.WAL(), "mapped text": vellum.MappedText(), "text": vellum.Text(),
}

func openLog(kind, path string) (*vellum.Log, error) {
	return vellum.Open(path, kinds[kind], vellum.Shared(true))
}

func TestMain(m *testing.M) {
	proving.Main(m, map[string]func([]string) error{
		"call": func(arguments []string) error { return callAtWord(arguments[0], arguments[1]) },
	})
}

// TestHistoriesAreThoseOfOneLog has processes use one log, stops them at random moments, and checks
// their records. VELLUM_HISTORIES is for how long, such as "10m".
func TestHistoriesAreThoseOfOneLog(t *testing.T) {
	budget := 12 * time.Second
	if testing.Short() {
		budget = 4 * time.Second
	}
	if text := os.Getenv("VELLUM_HISTORIES"); text != "" {
		var err error
		if budget, err = time.ParseDuration(text); err != nil {
			t.Fatal("VELLUM_HISTORIES: ", err)
		}
	}
	for kind := range kinds {
		t.Run(kind, func(t *testing.T) { checkFor(t, kind, budget/time.Duration(len(kinds))) })
	}
}

// A model that allows everything would find nothing.
func TestTheModelRefuses(t *testing.T) {
	append1 := call{Kind: callAppend, Start: 1, End: 2, LSN: 100, Value: "one"}
	for name, wrong := range map[string]call{
		"a sync in front of an append": {Kind: callSync, Start: 3, End: 4, Durable: 100},
		"a read of something else":     {Kind: callRead, Start: 3, End: 4, LSN: 100, Value: "one", Found: "two"},
		"a position twice":             {Kind: callAppend, Start: 3, End: 4, LSN: 100},
		"an error":                     {Kind: callSync, Start: 3, End: 4, Durable: 101, Failed: "an error"},
	} {
		if porcupine.CheckOperations(model(state{}), history([][]call{{append1}, {wrong}})) {
			t.Error(name, "is allowed")
		}
	}
	commit := call{Kind: callCommit, Start: 3, End: 4, LSN: 100}
	look := call{Kind: callDurable, Start: 5, End: 6, Durable: 100}
	if porcupine.CheckOperations(model(state{}), history([][]call{{append1}, {commit, look}})) {
		t.Error("a commit that nothing comes of is allowed")
	}
}

// checkFor checks one history after the other.
func checkFor(t *testing.T, kind string, budget time.Duration) {
	path := filepath.Join(t.TempDir(), "log")
	log, err := openLog(kind, path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	workers := make([]*worker, processes)
	for i := range workers {
		workers[i] = startWorker(t, kind, path)
	}
	now := state{}
	rounds, calls, syncs := 0, 0, 0
	for end := time.Now().Add(budget); rounds == 0 || time.Now().Before(end); rounds++ {
		clients := round(t, workers)
		count, of := early(now, clients)
		if count > 0 {
			t.Errorf("round %d: %d of %d syncs came back in front of a record whose append had returned",
				rounds, count, of)
		}
		all := history(clients)
		switch porcupine.CheckOperationsTimeout(model(now), all, searchMax) {
		case porcupine.Illegal:
			show(t, kind, now, all)
		case porcupine.Unknown:
			t.Logf("round %d: the search did not end", rounds)
		}
		if t.Failed() {
			return
		}
		now = after(now, clients)
		calls, syncs = calls+len(all), syncs+of
	}
	t.Logf("%d histories, %d calls, %d syncs", rounds, calls, syncs)
}

// early counts the syncs, and those of them that came back in front of a record whose append had
// returned before the sync began.
func early(first state, clients [][]call) (early, syncs int) {
	appended := map[vellum.LSN]int64{first.newest: 0}
	for _, calls := range clients {
		for _, c := range calls {
			if c.Kind == callAppend {
				appended[c.LSN] = c.End
			}
		}
	}
	isEarly := func(c call) bool {
		for lsn, returned := range appended {
			if returned < c.Start && lsn >= c.Durable {
				return true
			}
		}
		return false
	}
	for _, calls := range clients {
		for _, c := range calls {
			if c.Kind == callSync {
				syncs++
				if isEarly(c) {
					early++
				}
			}
		}
	}
	return early, syncs
}

// show writes a history that no order explains to where it can be seen.
func show(t *testing.T, kind string, first state, all []porcupine.Operation) {
	m := model(first)
	_, info := porcupine.CheckOperationsVerbose(m, all, searchMax)
	file := filepath.Join(os.TempDir(), "vellum-history-"+strings.ReplaceAll(kind, " ", "-")+".html")
	err := porcupine.VisualizePath(m, info, file)
	t.Errorf("no order of %d calls explains them, from %+v on: see %s (%v)", len(all), first, file, err)
}

// worker is a process that makes calls.
type worker struct {
	process *exec.Cmd
	orders  io.Writer
	answers *json.Decoder
}

func startWorker(t *testing.T, kind, path string) *worker {
	child := proving.Child(t, "call", kind, path)
	// The race detector has a program end a second later.
	child.Env = append(child.Env, "GORACE=atexit_sleep_ms=0")
	orders, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = orders.Close()
		if err := child.Wait(); err != nil {
			t.Error("a worker: ", err)
		}
	})
	return &worker{process: child, orders: orders, answers: json.NewDecoder(answers)}
}

// round has each worker make its calls, while one after the other is stopped for a moment.
func round(t *testing.T, workers []*worker) (clients [][]call) {
	for _, w := range workers {
		if _, err := fmt.Fprintln(w.orders, "go"); err != nil {
			t.Fatal(err)
		}
	}
	isOver := make(chan struct{})
	var stopper sync.WaitGroup
	stopper.Add(1)
	go func() { defer stopper.Done(); stopAtRandom(workers, isOver) }()
	defer stopper.Wait()
	defer close(isOver)
	for _, w := range workers {
		var answer [][]call
		if err := w.answers.Decode(&answer); err != nil {
			t.Fatal("a worker ended: ", err)
		}
		clients = append(clients, answer...)
	}
	return clients
}

func stopAtRandom(workers []*worker, isOver chan struct{}) {
	wait := func(most time.Duration) bool {
		select {
		case <-isOver:
			return false
		case <-time.After(rand.N(most)):
			return true
		}
	}
	for wait(500 * time.Microsecond) {
		process := workers[rand.IntN(len(workers))].process.Process
		_ = process.Signal(syscall.SIGSTOP)
		isLeft := wait(3 * time.Millisecond)
		_ = process.Signal(syscall.SIGCONT)
		if !isLeft {
			return
		}
	}
}

// callAtWord makes the calls of a round at each line of the input, and writes them as JSON.
func callAtWord(kind, path string) error {
	log, err := openLog(kind, path)
	if err != nil {
		return err
	}
	defer log.Close()
	clients := make([]*client, goroutines)
	for i := range clients {
		clients[i] = &client{log: log, name: fmt.Sprintf("%d.%d", os.Getpid(), i)}
	}
	output := json.NewEncoder(os.Stdout)
	for words := bufio.NewScanner(os.Stdin); words.Scan(); {
		answer := make([][]call, len(clients))
		var all sync.WaitGroup
		for i, c := range clients {
			all.Add(1)
			go func() {
				defer all.Done()
				for range callsOfRound {
					answer[i] = append(answer[i], c.call())
				}
			}()
		}
		all.Wait()
		if err := output.Encode(answer); err != nil {
			return err
		}
	}
	return nil
}

// client is a goroutine that makes calls.
type client struct {
	log   *vellum.Log
	name  string
	count int
	own   []call // its appends
}

// call makes a call of some kind.
func (c *client) call() call {
	made := call{Kind: callAppend}
	if len(c.own) > 0 {
		some := []string{callAppend, callAppend, callSync, callCommit, callDurable, callRead}
		made.Kind = some[rand.IntN(len(some))]
	}
	switch made.Kind {
	case callAppend:
		c.count++
		made.Value = fmt.Sprintf("%s.%d\n", c.name, c.count)
	case callCommit:
		made.LSN = c.own[len(c.own)-1].LSN
	case callRead:
		chosen := c.own[rand.IntN(len(c.own))]
		made.LSN, made.Value = chosen.LSN, chosen.Value
	}
	made.Start = clock()
	err := c.do(&made)
	made.End = clock()
	if err != nil {
		made.Failed = err.Error()
	} else if made.Kind == callAppend {
		c.own = append(c.own, made)
	}
	return made
}

func (c *client) do(made *call) (err error) {
	ctx := context.Background()
	switch made.Kind {
	case callAppend:
		// A long record is on its way for longer.
		padding := strings.Repeat(".", rand.IntN(2)*rand.IntN(100_000))
		made.LSN, err = c.log.Append(ctx, []byte(padding+made.Value))
	case callSync:
		made.Durable, err = c.log.Sync(ctx)
	case callCommit:
		err = c.log.Commit(ctx, made.LSN)
	case callDurable:
		made.Durable = c.log.Durable()
	case callRead:
		made.Found, err = c.read(made.LSN)
	}
	return err
}

// read waits until a record is published, and reads it.
func (c *client) read(lsn vellum.LSN) (string, error) {
	for c.log.Published() <= lsn {
		time.Sleep(20 * time.Microsecond)
	}
	record, err := c.log.ReadAt(lsn, nil)
	return strings.TrimLeft(string(record), "."), err
}

// clock is the time of the machine, which is the same for all processes.
func clock() int64 {
	const monotonic = 1
	var time syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&time)), 0)
	if errno != 0 {
		panic(errno)
	}
	return time.Nano()
}
