package vellum_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"vellum"
)

var background = context.Background()

// open opens a new log in a directory of the test, which closes it.
func open(t testing.TB, options ...vellum.Option) *vellum.Log {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "log"), options...)
}

func openAt(t testing.TB, path string, options ...vellum.Option) *vellum.Log {
	t.Helper()
	log, err := vellum.Open(path, options...)
	must(t, err)
	t.Cleanup(func() { _ = log.Close() })
	return log
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

func appendAll(t testing.TB, log *vellum.Log, records ...string) []vellum.LSN {
	t.Helper()
	var lsns []vellum.LSN
	for _, record := range records {
		lsn, err := log.Append(background, []byte(record))
		must(t, err)
		lsns = append(lsns, lsn)
	}
	return lsns
}

// rest reads the rest of a reader.
func rest(t testing.TB, reader *vellum.Reader) []string {
	t.Helper()
	var records []string
	for record, err := range reader.All() {
		must(t, err)
		records = append(records, string(record.Data))
	}
	return records
}

func records(t testing.TB, log *vellum.Log) []string {
	t.Helper()
	reader, err := log.NewReader(0)
	must(t, err)
	defer reader.Close()
	return rest(t, reader)
}

func want[T any](t testing.TB, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestRecordsComeBackInOrder(t *testing.T) {
	for name, kind := range map[string]vellum.Option{
		"wal": vellum.WAL(), "events": vellum.Events(), "text": vellum.Text(),
	} {
		t.Run(name, func(t *testing.T) {
			log := open(t, kind)
			lsns := appendAll(t, log, "one\n", "two\n", "three\n")
			must(t, log.Commit(background, lsns[2]))
			if log.Durable() <= lsns[2] || log.Begin() > lsns[0] || log.Published() < log.Durable() {
				t.Fatal("positions", log.Begin(), lsns, log.Durable(), log.Published())
			}
			want(t, records(t, log), []string{"one\n", "two\n", "three\n"})
			record, err := log.ReadAt(lsns[1], nil)
			must(t, err)
			want(t, string(record), "two\n")
			last, ok, err := log.Last()
			must(t, err)
			want(t, fmt.Sprint(last, ok), fmt.Sprint(lsns[2], true))
		})
	}
}

func TestErrorsSayWhatWasWrong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	_, err := vellum.Open(path, vellum.Create(false))
	wantError(t, err, vellum.ErrNotFound)
	wantError(t, err, fs.ErrNotExist)
	var failed *vellum.Error
	if !errors.As(err, &failed) || failed.Path == "" || !strings.Contains(failed.Message, path) {
		t.Fatalf("%#v", failed)
	}
	log := openAt(t, path, vellum.WAL())
	_, err = vellum.Open(path)
	wantError(t, err, vellum.ErrInUse)
	_, err = vellum.Open(path, vellum.CreateNew())
	wantError(t, err, fs.ErrExist)
	_, err = vellum.Open(filepath.Join(t.TempDir(), "missing", "log"))
	wantError(t, err, os.ErrNotExist)
	wantError(t, log.Commit(background, 1<<40), vellum.ErrOutOfRange)
	_, err = log.ReadAt(log.Published(), nil)
	wantError(t, err, vellum.ErrOutOfRange)
	_, err = log.NewBatch().Append(background)
	wantError(t, err, vellum.ErrInvalidOption)
	reading := openAt(t, path, vellum.ReadOnly())
	_, err = reading.Append(background, []byte("a"))
	wantError(t, err, vellum.ErrReadOnly)
	want(t, vellum.ErrNoSpace.Error(), "vellum: no space left")
}

func TestAClosedLogSaysSo(t *testing.T) {
	log := open(t)
	appendAll(t, log, "one")
	reader, err := log.NewReader(0)
	must(t, err)
	cursor, err := log.Cursor("c", 0)
	must(t, err)
	backwards, err := log.NewBackwards(0)
	must(t, err)
	must(t, log.Close())
	must(t, log.Close())
	_, err = log.Append(background, []byte("two"))
	wantError(t, err, vellum.ErrClosed)
	wantError(t, err, os.ErrClosed)
	_, err = reader.Next()
	wantError(t, err, vellum.ErrClosed)
	_, err = backwards.Next()
	wantError(t, err, vellum.ErrClosed)
	_, err = cursor.Position()
	wantError(t, err, vellum.ErrClosed)
	_, err = cursor.Reader()
	wantError(t, err, vellum.ErrClosed)
	wantError(t, cursor.Commit(0), vellum.ErrClosed)
	wantError(t, cursor.Remove(), vellum.ErrClosed)
	wantError(t, log.Commit(background, 64), vellum.ErrClosed)
	_, err = log.NewBatch().Append(background)
	wantError(t, err, vellum.ErrClosed)
	_, err = log.Stat()
	wantError(t, err, vellum.ErrClosed)
	want(t, log.Published(), 0)
	must(t, reader.Close())
	must(t, cursor.Close())
	must(t, backwards.Close())
}

func TestABatchIsThereAsAWhole(t *testing.T) {
	log := open(t)
	batch := log.NewBatch()
	for round := range 3 {
		for i := range 100 {
			batch.Push([]byte(fmt.Sprint(round, " ", i)))
		}
		want(t, batch.Len(), 100)
		lsns, err := batch.AppendEach(background)
		must(t, err)
		want(t, batch.Len(), 0)
		record, err := log.ReadAt(lsns[42], nil)
		must(t, err)
		want(t, string(record), fmt.Sprint(round, " 42"))
	}
	batch.Push([]byte("never"))
	batch.Discard()
	batch.Push(nil)
	first, err := batch.Append(background)
	must(t, err)
	record, err := log.ReadAt(first, nil)
	must(t, err)
	want(t, string(record), "")
	want(t, len(records(t, log)), 301)
}

func TestReadersFetchRecordsOfAllSizes(t *testing.T) {
	log := open(t, vellum.Envelope())
	sizes := []int{0, 1, 7, 8, 9, 1 << 10, 100 << 10, 3 << 20, 5, 600 << 10, 0, 3}
	before := time.Now().Add(-time.Minute)
	var lsns []vellum.LSN
	for i := range 200 {
		record := bytes.Repeat([]byte{byte(i)}, sizes[i%len(sizes)])
		lsn, err := log.Append(background, record)
		must(t, err)
		lsns = append(lsns, lsn)
	}
	reader, err := log.NewReader(0)
	must(t, err)
	defer reader.Close()
	for i := range 200 {
		record, err := reader.Next()
		must(t, err)
		want(t, record.LSN, lsns[i])
		if !bytes.Equal(record.Data, bytes.Repeat([]byte{byte(i)}, sizes[i%len(sizes)])) {
			t.Fatal("record", i)
		}
		if record.Time.Before(before) || uint32(record.Writer) != uint32(os.Getpid()) {
			t.Fatal(record.Time, record.Writer)
		}
		want(t, reader.Position(), record.Next)
	}
	_, err = reader.Next()
	wantError(t, err, io.EOF)
	for _, i := range []int{150, 7, 199, 0} {
		must(t, reader.Seek(lsns[i]))
		record, err := reader.Next()
		must(t, err)
		want(t, record.LSN, lsns[i])
	}
	wantError(t, reader.Seek(lsns[199]+3), vellum.ErrOutOfRange)
	record, err := reader.Next()
	must(t, err)
	want(t, record.LSN, lsns[1])
	backwards, err := log.NewBackwards(0)
	must(t, err)
	at := 200
	for record, err := range backwards.All() {
		must(t, err)
		at--
		want(t, record.LSN, lsns[at])
	}
	want(t, at, 0)
	stopping, err := log.NewReader(lsns[10], vellum.StopAt(lsns[15]))
	must(t, err)
	want(t, len(rest(t, stopping)), 5)
	timed, err := log.NewReaderAtTime(before)
	must(t, err)
	want(t, len(rest(t, timed)), 200)
}

func TestFollowersSeeWhatOthersAppend(t *testing.T) {
	log := open(t)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	var readers sync.WaitGroup
	for range 4 {
		reader, err := log.NewReader(0)
		must(t, err)
		readers.Add(1)
		go func() {
			defer readers.Done()
			defer reader.Close()
			count := 0
			for record, err := range reader.Follow(ctx) {
				if err != nil || string(record.Data) != fmt.Sprint("record ", count) {
					t.Errorf("record %d: %q, %v", count, record.Data, err)
				}
				if count++; count == 1000 {
					return
				}
			}
			t.Error("it ended at", count)
		}()
	}
	for i := range 1000 {
		appendAll(t, log, fmt.Sprint("record ", i))
		if i%100 == 0 {
			time.Sleep(time.Millisecond) // so that they come to the end, and wait
		}
	}
	readers.Wait()
}

func TestFollowingEndsWithItsContextItsStopAndItsLog(t *testing.T) {
	log := open(t)
	lsns := appendAll(t, log, "one", "two")
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	reader, err := log.NewReader(0)
	must(t, err)
	var seen []string
	for record, err := range reader.Follow(ctx) {
		must(t, err)
		if seen = append(seen, string(record.Data)); len(seen) == 2 {
			time.AfterFunc(20*time.Millisecond, cancel)
		}
	}
	want(t, seen, []string{"one", "two"})
	// The same reader continues under another context.
	appendAll(t, log, "three")
	for record, err := range reader.Follow(background) {
		must(t, err)
		want(t, string(record.Data), "three")
		break
	}
	stopping, err := log.NewReader(0, vellum.StopAt(lsns[1]))
	must(t, err)
	for record, err := range stopping.Follow(background) {
		must(t, err)
		want(t, string(record.Data), "one")
	}
	for _, end := range []func() error{reader.Close, log.Close} {
		time.AfterFunc(20*time.Millisecond, func() { _ = end() })
		for _, err := range reader.Follow(background) {
			wantError(t, err, vellum.ErrClosed)
			seen = nil
		}
		want(t, len(seen), 0)
		seen = []string{"it did not end"}
		reader, err = log.NewReader(0)
		if err != nil {
			wantError(t, err, vellum.ErrClosed)
			return
		}
		_ = rest(t, reader)
	}
}

func TestADurableReaderSeesWhatIsCommitted(t *testing.T) {
	log := open(t, vellum.WAL())
	appendAll(t, log, "one")
	reader, err := log.NewReader(0, vellum.OnlyDurable())
	must(t, err)
	want(t, len(rest(t, reader)), 0)
	_, err = log.Sync(background)
	must(t, err)
	want(t, rest(t, reader), []string{"one"})
}

func TestAReaderAtTheEndCanFollowAndBeStored(t *testing.T) {
	for name, kind := range map[string]vellum.Option{
		"wal": vellum.WAL(), "events": vellum.Events(), "text": vellum.Text(),
	} {
		t.Run(name, func(t *testing.T) {
			log := open(t, kind)
			cursor, err := log.Cursor("c", 0)
			must(t, err)
			reader, err := log.NewReader(0, vellum.OnlyDurable())
			must(t, err)
			for i := range 20 {
				line := fmt.Sprint("line ", i, "\n")
				// Commits leave something between the records.
				_, err := log.AppendDurable(background, []byte(line))
				must(t, err)
				for record, err := range reader.Follow(background) {
					must(t, err)
					want(t, string(record.Data), line)
					break
				}
				_, err = reader.Next()
				wantError(t, err, io.EOF)
				must(t, cursor.Commit(reader.Position()))
				other, err := log.NewReader(reader.Position())
				must(t, err)
				_, err = other.Next()
				wantError(t, err, io.EOF)
				must(t, other.Close())
			}
		})
	}
}

func TestCheckpointTrimTruncate(t *testing.T) {
	log := open(t, vellum.WAL(), vellum.SegmentBytes(64<<10), vellum.CheckpointAfter(1000))
	var lsns []vellum.LSN
	for i := range 100 {
		lsns = append(lsns, appendAll(t, log, strings.Repeat("x", 4000)+fmt.Sprint(i))...)
	}
	_, err := log.Sync(background)
	must(t, err)
	if !log.CheckpointDue() {
		t.Fatal("no checkpoint is due")
	}
	must(t, log.SetCheckpoint(lsns[60]))
	want(t, log.Checkpoint(), lsns[60])
	cursor, err := log.Cursor("held", lsns[20])
	must(t, err)
	must(t, cursor.Hold(0, 0))
	report, err := log.Trim(lsns[60])
	must(t, err)
	if report.HeldAt == 0 || report.Begin > lsns[20] || log.Begin() != report.Begin {
		t.Fatal(report, lsns[20])
	}
	must(t, cursor.Remove())
	report, err = log.Trim(lsns[60])
	must(t, err)
	want(t, report.Begin, lsns[60])
	_, err = log.NewReader(lsns[10])
	wantError(t, err, vellum.ErrTrimmed)

	reader, err := log.NewReader(0)
	must(t, err)
	for range 10 {
		_, err := reader.Next()
		must(t, err)
	}
	// Records that it has fetched beyond the place are gone.
	must(t, log.Truncate(lsns[71]))
	want(t, len(rest(t, reader)), 1)
	appendAll(t, log, "new")
	want(t, rest(t, reader), []string{"new"})
	must(t, log.Truncate(lsns[65]))
	_, err = reader.Next()
	wantError(t, err, vellum.ErrOutOfRange)
	_, err = reader.Next()
	wantError(t, err, vellum.ErrOutOfRange)
	lsn, err := log.AppendDurable(background, []byte("after"))
	must(t, err)
	want(t, lsn, lsns[65])
}

func TestCursorsAreStored(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	log := openAt(t, path)
	appendAll(t, log, "one", "two", "three")
	cursor, err := log.Cursor("reader", 0)
	must(t, err)
	reader, err := cursor.Reader()
	must(t, err)
	record, err := reader.Next()
	must(t, err)
	must(t, cursor.Commit(record.Next))
	must(t, cursor.Own())
	other, err := log.Cursor("reader", 0)
	must(t, err)
	wantError(t, other.Commit(log.Published()), vellum.ErrBusy)
	must(t, cursor.Disown())
	must(t, log.Close())

	log = openAt(t, path)
	cursor, err = log.Cursor("reader", 0)
	must(t, err)
	at, err := cursor.Position()
	must(t, err)
	want(t, at, record.Next)
	reader, err = cursor.Reader(vellum.OnlyDurable())
	must(t, err)
	want(t, rest(t, reader), []string{"two", "three"})
	must(t, cursor.Set(0))
	gap, err := cursor.SkipOverrun()
	must(t, err)
	if gap != nil {
		t.Fatal(gap)
	}
	stat, err := log.Stat()
	must(t, err)
	want(t, stat.Cursors[0].Name, "reader")
	want(t, stat.Cursors[0].LagRecords, 3)
}

func TestStatTellsOfTheLog(t *testing.T) {
	log := open(t, vellum.WAL(), vellum.ApplicationTag(7))
	appendAll(t, log, "one", "two")
	_, err := log.Sync(background)
	must(t, err)
	stat, err := log.Stat()
	must(t, err)
	if stat.Records < 2 || stat.Commits.Syncs == 0 || len(stat.Segments) == 0 || stat.ApplicationTag != 7 ||
		len(stat.Participants) != 1 || stat.Participants[0].PID != os.Getpid() || stat.Text ||
		stat.Fill != vellum.FillStaged || stat.Filesystem == "" || len(stat.ID) != 32 {
		t.Fatalf("%+v", stat)
	}
}

func TestStoredPositionsKnowTheirLog(t *testing.T) {
	log := open(t, vellum.WAL())
	lsns := appendAll(t, log, "one", "two")
	_, err := log.Sync(background)
	must(t, err)
	position, err := log.PositionOf(lsns[1])
	must(t, err)
	text, err := position.MarshalText()
	must(t, err)
	var read vellum.Position
	must(t, read.UnmarshalText(text))
	want(t, read, position)
	lsn, err := log.Resolve(read)
	must(t, err)
	want(t, lsn, lsns[1])
	_, err = open(t).Resolve(read)
	wantError(t, err, vellum.ErrOtherLog)
	must(t, log.Truncate(lsns[1]))
	_, err = log.Resolve(read)
	wantError(t, err, vellum.ErrRewound)
	wantError(t, read.UnmarshalText([]byte("no position")), vellum.ErrInvalidOption)
}

func TestTextLogsTakeLinesAndLoggers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	log := openAt(t, path, vellum.Text(), vellum.FileLink(), vellum.RotateBytes(1<<20), vellum.RetainFiles(3))
	_, err := fmt.Fprint(log, "without a newline")
	must(t, err)
	_, err = fmt.Fprintln(log, "with one")
	must(t, err)
	logger := slog.New(vellum.NewHandler(log, nil, vellum.CommitFrom(slog.LevelError)))
	logger.WithGroup("request").With("id", 7).Error("it failed", "why", "a reason")
	slog.New(vellum.NewHandler(log, nil, vellum.JSON())).Info("as JSON")
	if log.Durable() == log.Begin() {
		t.Fatal("the error is not durable")
	}
	text, err := os.ReadFile(path)
	must(t, err)
	lines := strings.Split(string(text), "\n")
	want(t, lines[:2], []string{"without a newline", "with one"})
	if !strings.HasSuffix(lines[2], `level=ERROR msg="it failed" request.id=7 request.why="a reason"`) ||
		!strings.HasSuffix(lines[3], `"level":"INFO","msg":"as JSON"}`) {
		t.Fatal(lines)
	}
	must(t, log.Rotate())
	stat, err := log.Stat()
	must(t, err)
	want(t, fmt.Sprint(stat.Text, stat.Policy.RotateBytes, stat.Policy.RetainFiles), "true 1048576 3")
}

func TestARemovedLogIsReopened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	log := openAt(t, path, vellum.Text())
	appendAll(t, log, "one\n")
	must(t, os.RemoveAll(path))
	for {
		_, err := log.Append(background, []byte("two\n"))
		if err != nil {
			wantError(t, err, vellum.ErrRemoved)
			break
		}
	}
	again, err := log.Reopen()
	must(t, err)
	defer again.Close()
	appendAll(t, again, "three\n")
	want(t, records(t, again), []string{"three\n"})
}
