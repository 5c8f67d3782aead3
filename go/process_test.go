package vellum_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"vellum"
	"vellum/internal/hold"
)

// TestMain is the test program, or one of the programs that the tests run and kill.
func TestMain(m *testing.M) {
	if role := os.Getenv("VELLUM_TEST_CHILD"); role != "" {
		if err := children[role](os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var children = map[string]func(path string) error{
	"commit": commitForEver,
	"append": appendThousand,
	"hold":   holdForEver,
}

// child starts a process that plays a role with the log at path.
func child(t *testing.T, role, path string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	command := exec.Command(os.Args[0], path)
	command.Env = append(os.Environ(), "VELLUM_TEST_CHILD="+role)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill() })
	return command, bufio.NewScanner(output)
}

// skip ends a test that this machine cannot do; that is a failure where everything is required.
func skip(t *testing.T, why ...any) {
	t.Helper()
	if os.Getenv("VELLUM_REQUIRE") == "all" {
		t.Fatal(why...)
	}
	t.Skip(why...)
}

// commitForEver appends numbers from eight goroutines, and says which are durable.
func commitForEver(path string) error {
	log, err := vellum.Open(path, vellum.WAL())
	if err != nil {
		return err
	}
	failed := make(chan error)
	for goroutine := range 8 {
		go func() {
			for i := 0; ; i++ {
				record := fmt.Sprint(os.Getpid(), " ", goroutine, " ", i)
				if _, err := log.AppendDurable(background, []byte(record)); err != nil {
					failed <- err
				}
				fmt.Println(record)
			}
		}()
	}
	return <-failed
}

func TestWhatIsAcknowledgedSurvivesAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	rounds := 10
	if testing.Short() {
		rounds = 3
	}
	acknowledged := map[string]bool{}
	for round := range rounds {
		command, lines := child(t, "commit", path)
		for range 50 + 37*round {
			if !lines.Scan() {
				t.Fatal("the child ended: ", command.Wait())
			}
			acknowledged[lines.Text()] = true
		}
		must(t, command.Process.Kill())
		for lines.Scan() {
			acknowledged[lines.Text()] = true
		}
		_ = command.Wait()
		log := openAt(t, path, vellum.WAL())
		checkNumbers(t, records(t, log), acknowledged)
		must(t, log.Close())
	}
}

// checkNumbers checks that all records are there that were acknowledged, each once and in order.
func checkNumbers(t *testing.T, records []string, acknowledged map[string]bool) {
	t.Helper()
	next := map[string]int{}
	for _, record := range records {
		at := strings.LastIndexByte(record, ' ')
		want(t, record[at+1:], strconv.Itoa(next[record[:at]]))
		next[record[:at]]++
	}
	for record := range acknowledged {
		at := strings.LastIndexByte(record, ' ')
		number, err := strconv.Atoi(record[at+1:])
		must(t, err)
		if number >= next[record[:at]] {
			t.Fatalf("%q is lost", record)
		}
	}
}

func appendThousand(path string) error {
	log, err := vellum.Open(path)
	if err != nil {
		return err
	}
	for i := range 1000 {
		if _, err := log.Append(background, []byte(fmt.Sprint(os.Getpid(), " ", i))); err != nil {
			return err
		}
	}
	return log.Close()
}

func holdForEver(path string) error {
	if err := hold.Space(path); err != nil {
		return err
	}
	fmt.Println("held")
	select {}
}

// held is a process that holds space at the end of the log, and a record behind that.
func held(t *testing.T, log *vellum.Log) (*exec.Cmd, vellum.LSN) {
	t.Helper()
	command, lines := child(t, "hold", log.Path())
	if !lines.Scan() {
		t.Fatal("the child ended: ", command.Wait())
	}
	return command, appendAll(t, log, "behind")[0]
}

func TestWhoWaitsForAnotherProcessCanGiveUp(t *testing.T) {
	log := open(t)
	command, lsn := held(t, log)
	ctx, cancel := context.WithTimeout(background, 150*time.Millisecond)
	defer cancel()
	var all sync.WaitGroup
	for range 1000 {
		all.Add(1)
		go func() {
			defer all.Done()
			wantError(t, log.Commit(ctx, lsn), context.DeadlineExceeded)
		}()
	}
	all.Wait()
	if count := threads(t); count > 100 {
		t.Fatal(count, "threads wait")
	}
	outcome := make(chan error)
	go func() { outcome <- log.Commit(background, lsn) }()
	go func() { _, err := log.Sync(background); outcome <- err }()
	must(t, command.Process.Kill())
	_ = command.Wait()
	must(t, <-outcome)
	must(t, <-outcome)
	want(t, records(t, log), []string{"behind"})
}

func TestATimeoutEndsTheWaitForAnotherProcess(t *testing.T) {
	for _, timeout := range []time.Duration{20 * time.Millisecond, 250 * time.Millisecond} {
		log := open(t, vellum.Timeout(timeout))
		_, lsn := held(t, log)
		wantError(t, log.Commit(background, lsn), vellum.ErrTimedOut)
		_, err := log.AppendDurable(background, []byte("another"))
		wantError(t, err, os.ErrDeadlineExceeded)
	}
}

func TestCloseEndsTheWaitForAnotherProcess(t *testing.T) {
	log := open(t)
	_, lsn := held(t, log)
	outcome := make(chan error)
	go func() { outcome <- log.Commit(background, lsn) }()
	go func() { outcome <- log.SetCheckpoint(lsn) }()
	for {
		stat, err := log.Stat()
		must(t, err)
		if len(stat.Holds) > 0 && stat.Holds[0].Waited > 0 {
			break
		}
	}
	must(t, log.Close())
	for range 2 {
		if err := <-outcome; !errors.Is(err, vellum.ErrClosed) {
			t.Fatal(err)
		}
	}
}

func TestAFollowerSeesOtherProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	log := openAt(t, path)
	reader, err := log.NewReader(0)
	must(t, err)
	for range 3 {
		child(t, "append", path)
	}
	var seen []string
	for record, err := range reader.Follow(background) {
		must(t, err)
		if seen = append(seen, string(record.Data)); len(seen) == 3000 {
			break
		}
	}
	checkNumbers(t, seen, nil)
}

func TestAProgramThatIsStartedKeepsNothingOfTheLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	log := openAt(t, path, vellum.WAL())
	reader, err := log.NewReader(0)
	must(t, err)
	appendAll(t, log, "one")
	for record, err := range reader.Follow(background) {
		must(t, err)
		want(t, string(record.Data), "one")
		break
	}
	sleep := exec.Command("sleep", "1000")
	must(t, sleep.Start())
	defer func() { _ = sleep.Process.Kill(); _ = sleep.Wait() }()
	files, err := os.ReadDir(fmt.Sprint("/proc/", sleep.Process.Pid, "/fd"))
	must(t, err)
	for _, file := range files {
		target, _ := os.Readlink(fmt.Sprint("/proc/", sleep.Process.Pid, "/fd/", file.Name()))
		if strings.HasPrefix(target, path) {
			t.Error("the program has", target)
		}
	}
	must(t, log.Close())
	openAt(t, path, vellum.WAL())
}

func TestALogThatIsForgottenIsClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	func() {
		log, err := vellum.Open(path, vellum.WAL())
		must(t, err)
		_, err = log.NewReader(0)
		must(t, err)
		_, err = log.Cursor("c", 0)
		must(t, err)
	}()
	openOnceForgotten(t, path)
}

// openOnceForgotten opens a write-ahead log as soon as the collector of garbage has closed the handle that
// the program has lost.
func openOnceForgotten(t *testing.T, path string) {
	t.Helper()
	for {
		runtime.GC()
		log, err := vellum.Open(path, vellum.WAL())
		if err == nil {
			must(t, log.Close())
			return
		}
		wantError(t, err, vellum.ErrInUse)
	}
}

func TestCloseMayComeAtAnyTime(t *testing.T) {
	for range 20 {
		log := open(t)
		var all sync.WaitGroup
		use := func(call func() error) {
			all.Add(1)
			go func() {
				defer all.Done()
				for {
					if err := call(); err != nil {
						wantError(t, err, vellum.ErrClosed)
						return
					}
				}
			}()
		}
		following, err := log.NewReader(0)
		must(t, err)
		use(func() error {
			for _, err := range following.Follow(background) {
				if err != nil {
					return err
				}
			}
			return nil
		})
		started := make(chan struct{}, 1)
		for range 4 {
			use(func() error {
				_, err := log.AppendDurable(background, []byte("a record"))
				select {
				case started <- struct{}{}:
				default:
				}
				return err
			})
			use(func() error {
				ctx, cancel := context.WithCancel(background)
				defer cancel()
				_, err := log.AppendDurable(ctx, []byte("a record"))
				return err
			})
		}
		use(func() error { _, err := log.Stat(); return err })
		use(func() error {
			cursor, err := log.Cursor("c", 0)
			if err != nil {
				return err
			}
			defer cursor.Close()
			_, err = cursor.Position()
			return err
		})
		use(func() error {
			reader, err := log.NewReader(0)
			if err != nil {
				return err
			}
			defer reader.Close()
			if _, err = reader.Next(); err == io.EOF {
				err = nil
			}
			return err
		})
		<-started
		must(t, log.Close())
		all.Wait()
	}
}

// A descriptor that waits is closed only after the last look at it, and a look takes the lock of
// its reader: a caller that held that lock while it closed the descriptor waited for ever.
func TestAReaderIsClosedWhileItLooks(t *testing.T) {
	log := open(t)
	appended := make(chan struct{})
	ctx, cancel := context.WithCancel(background)
	go func() {
		defer close(appended)
		for ctx.Err() == nil {
			_, _ = log.Append(background, []byte("a record"))
		}
	}()
	readers := 200
	if testing.Short() {
		readers = 40
	}
	for range readers {
		reader, err := log.NewReader(log.Published())
		must(t, err)
		first, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			isFirst := true
			for _, err := range reader.Follow(background) {
				if isFirst {
					close(first)
					isFirst = false
				}
				if err != nil {
					ended <- err
				}
			}
		}()
		<-first
		must(t, reader.Close())
		wantError(t, <-ended, vellum.ErrClosed)
	}
	cancel()
	<-appended
}

func threads(t testing.TB) int {
	tasks, err := os.ReadDir("/proc/self/task")
	must(t, err)
	return len(tasks)
}

func TestManyGoroutinesMakeFewThreads(t *testing.T) {
	log := open(t, vellum.WAL())
	var waiting atomic.Int64
	var all sync.WaitGroup
	release := make(chan struct{})
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	before := threads(t)
	for i := range 10_000 {
		all.Add(1)
		go func() {
			defer all.Done()
			<-release
			mine := background
			if i%2 == 0 {
				mine = ctx
			}
			waiting.Add(1)
			if _, err := log.AppendDurable(mine, []byte("a record")); err != nil {
				t.Error(err)
			}
			waiting.Add(-1)
		}()
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	most := 0
	close(release)
	for isDone := false; !isDone; {
		most = max(most, threads(t))
		select {
		case <-done:
			isDone = true
		default:
		}
	}
	want(t, len(records(t, log)), 10_000)
	t.Logf("%d threads before, %d at most", before, most)
	if limit := before + 2*runtime.GOMAXPROCS(0) + 40; most > limit {
		t.Fatalf("%d threads, more than %d", most, limit)
	}
}

func TestAContextEndsTheWaitAndNotTheCommit(t *testing.T) {
	log := open(t, vellum.WAL())
	ended, cancel := context.WithCancel(background)
	cancel()
	_, err := log.Append(ended, []byte("never"))
	wantError(t, err, context.Canceled)
	lsns := appendAll(t, log, "one")
	wantError(t, log.Commit(ended, lsns[0]), context.Canceled)
	_, err = log.Sync(ended)
	wantError(t, err, context.Canceled)
	var all sync.WaitGroup
	for range 50 {
		all.Add(1)
		go func() {
			defer all.Done()
			ctx, cancel := context.WithCancel(background)
			go cancel()
			lsn, err := log.AppendDurable(ctx, []byte("two"))
			if err != nil {
				wantError(t, err, context.Canceled)
			} else if log.Durable() <= lsn {
				t.Error("it is not durable")
			}
		}()
	}
	all.Wait()
	durable, err := log.Sync(background)
	must(t, err)
	want(t, durable, log.Durable())
	if slices.Contains(records(t, log), "never") {
		t.Fatal("a record was appended after its context had ended")
	}
}

func TestSignalsEndNoCall(t *testing.T) {
	log := open(t, vellum.WAL())
	must(t, pprof.StartCPUProfile(io.Discard))
	defer pprof.StopCPUProfile()
	signals := make(chan struct{})
	go func() {
		for range 200 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGURG)
			time.Sleep(100 * time.Microsecond) // spread over the commits
		}
		close(signals)
	}()
	for isDone := false; !isDone; {
		_, err := log.AppendDurable(background, []byte("a record"))
		must(t, err)
		select {
		case <-signals:
			isDone = true
		default:
		}
	}
}

// newest is the file that records go to.
func newest(t *testing.T, log *vellum.Log) string {
	t.Helper()
	stat, err := log.Stat()
	must(t, err)
	for _, segment := range stat.Segments {
		if segment.State == vellum.SegmentActive {
			return segment.Path
		}
	}
	t.Fatal("no active segment")
	return ""
}

func TestStorageThatFailsIsAnErrorAndNoSignal(t *testing.T) {
	log := open(t, vellum.Events(), vellum.FillBy(vellum.FillMapped))
	appendAll(t, log, "one")
	must(t, os.Truncate(newest(t, log), 0))
	// The page of the last record is gone.
	var err error
	for err == nil {
		_, err = log.Append(background, []byte("two"))
	}
	wantError(t, err, vellum.ErrCorrupt)
}

func TestFaultsOfOthersStayGosOwn(t *testing.T) {
	open(t)
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	must(t, err)
	defer file.Close()
	must(t, file.Truncate(4096))
	memory, err := syscall.Mmap(int(file.Fd()), 0, 4096, syscall.PROT_READ, syscall.MAP_SHARED)
	must(t, err)
	defer func() { _ = syscall.Munmap(memory) }()
	must(t, file.Truncate(0))
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	caught := func() (fault any) {
		defer func() { fault = recover() }()
		return memory[17]
	}()
	if _, ok := caught.(runtime.Error); !ok {
		t.Fatalf("%T %v", caught, caught)
	}
}

// tmpfs mounts a small filesystem for the test.
func tmpfs(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		skip(t, "a filesystem cannot be mounted: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

func TestAFullDiskIsAnError(t *testing.T) {
	for name, kind := range map[string]vellum.Option{
		"wal": vellum.WAL(), "events": vellum.Events(), "text": vellum.Text(),
	} {
		t.Run(name, func(t *testing.T) {
			log := openAt(t, filepath.Join(tmpfs(t, "4m"), "log"), kind, vellum.SegmentBytes(1<<20))
			record := []byte(strings.Repeat("x", 5000) + "\n")
			count := 0
			var err error
			for ; err == nil; count++ {
				_, err = log.AppendDurable(background, record)
			}
			wantError(t, err, vellum.ErrNoSpace)
			wantError(t, err, syscall.ENOSPC)
			if got := len(records(t, log)); got < count-1 || count < 100 {
				t.Fatal(got, "records of", count)
			}
		})
	}
}

func TestABlockedAppendWaitsForSpaceItsContextOrClose(t *testing.T) {
	dir := tmpfs(t, "4m")
	filler := filepath.Join(dir, "filler")
	log := openAt(t, filepath.Join(dir, "log"), vellum.Text(), vellum.WhenFull(vellum.FullBlock))
	appendAll(t, log, "one\n")
	file, err := os.Create(filler)
	must(t, err)
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	must(t, file.Close())
	line := []byte(strings.Repeat("x", 100_000) + "\n")
	ctx, cancel := context.WithTimeout(background, 50*time.Millisecond)
	defer cancel()
	var all sync.WaitGroup
	var blocked atomic.Int64
	for range 100 {
		all.Add(1)
		go func() {
			defer all.Done()
			// A few find space that had been made ready.
			if _, err := log.Append(ctx, line); err != nil {
				wantError(t, err, context.DeadlineExceeded)
				blocked.Add(1)
			}
		}()
	}
	all.Wait()
	if blocked.Load() < 50 {
		t.Fatal("no more than", blocked.Load(), "waited")
	}
	if count := threads(t); count > 100 {
		t.Fatal(count, "threads wait for space")
	}
	outcome := make(chan error)
	for range 5 {
		go func() { _, err := log.Append(background, line); outcome <- err }()
	}
	must(t, os.Remove(filler))
	for range 5 {
		must(t, <-outcome)
	}
	// It is full again after some.
	for range 100 {
		go func() { _, err := log.Append(background, line); outcome <- err }()
	}
	for {
		select {
		case err := <-outcome:
			must(t, err)
			continue
		case <-time.After(200 * time.Millisecond): // long enough, and any wait is right
		}
		break
	}
	closed := make(chan error)
	go func() { closed <- log.Close() }()
	for {
		select {
		case err := <-outcome:
			if err != nil && !errors.Is(err, vellum.ErrClosed) {
				t.Error(err)
			}
			continue
		case err := <-closed:
			must(t, err)
		}
		break
	}
}
