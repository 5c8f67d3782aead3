package lookup

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"vellum"
	"vellum/internal/hold"
	"vellum/internal/proving"
)

func TestMain(m *testing.M) {
	proving.Main(m, map[string]func([]string) error{"hold": holdForEver})
}

func holdForEver(arguments []string) error {
	if err := hold.Space(arguments[0]); err != nil {
		return err
	}
	fmt.Println("held")
	select {}
}

func fill(t *testing.T, count int) (*vellum.Log, []vellum.LSN) {
	t.Helper()
	log, err := vellum.Open(filepath.Join(t.TempDir(), "log"), vellum.WAL(), vellum.Shared(true),
		vellum.SegmentBytes(64<<10))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	var positions []vellum.LSN
	for i := range count {
		record := fmt.Appendf(make([]byte, 0, 1000), "%0*d", 10+i%700, i)
		lsn, err := log.Append(t.Context(), record)
		if err != nil {
			t.Fatal(err)
		}
		positions = append(positions, lsn)
	}
	return log, positions
}

func check(t *testing.T, l *Lookup, positions []vellum.LSN, i int) {
	t.Helper()
	record, err := l.Read(positions[i])
	if want := fmt.Sprintf("%0*d", 10+i%700, i); err != nil || string(record) != want {
		t.Errorf("record %d: %q, %v", i, record, err)
	}
}

func TestRecordsAreReadInAnyOrder(t *testing.T) {
	log, positions := fill(t, 2000)
	l := New(log)
	for i := range positions {
		check(t, l, positions, i)
	}
	for i := len(positions) - 1; i >= 0; i -= 3 {
		check(t, l, positions, i)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		start := random.IntN(len(positions))
		for i := start; i < min(start+random.IntN(9), len(positions)); i += 1 + random.IntN(3) {
			check(t, l, positions, i)
		}
	}
}

func TestManyReadAtOnce(t *testing.T) {
	log, positions := fill(t, 500)
	l := New(log)
	var readers sync.WaitGroup
	for range 10 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for i := range positions {
				check(t, l, positions, i)
			}
		}()
	}
	readers.Wait()
}

func TestWhatIsAppendedLaterIsRead(t *testing.T) {
	log, positions := fill(t, 10)
	l := New(log)
	check(t, l, positions, 9)
	for i := 10; i < 300; i++ {
		lsn, err := log.Append(t.Context(), fmt.Appendf(nil, "%0*d", 10+i%700, i))
		if err != nil {
			t.Fatal(err)
		}
		positions = append(positions, lsn)
		check(t, l, positions, i)
	}
}

func TestWhatIsTrimmedIsSaid(t *testing.T) {
	log, positions := fill(t, 2000)
	l := New(log)
	check(t, l, positions, 99)
	if _, err := log.Trim(positions[101]); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Read(positions[50]); !errors.Is(err, vellum.ErrTrimmed) {
		t.Error(err)
	}
	check(t, l, positions, 101)
	check(t, l, positions, 102)
	if _, err := l.Read(positions[102] + 1); !errors.Is(err, vellum.ErrOutOfRange) {
		t.Error(err)
	}
}

func TestARecordBehindOneThatIsBeingWrittenIsWaitedFor(t *testing.T) {
	log, positions := fill(t, 2)
	l := New(log)
	for i := range positions { // by a reader, from the second on
		check(t, l, positions, i)
	}
	child := proving.Child(t, "hold", log.Path())
	output, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(output).ReadString('\n'); line != "held\n" {
		t.Fatal(line, err)
	}
	lsn, err := log.Append(t.Context(), []byte("behind"))
	if err != nil {
		t.Fatal(err)
	}
	records := make(chan string)
	for range 3 {
		go func() {
			record, err := l.Read(lsn)
			if err != nil {
				t.Error(err)
			}
			records <- string(record)
		}()
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	for range 3 {
		if record := <-records; record != "behind" {
			t.Errorf("%q is behind", record)
		}
	}
}
