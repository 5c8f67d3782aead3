package vellumqueue

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"vellum"
	"vellum/internal/proving"
)

var background = context.Background()

// noAlarm is that of a message whose lease has no end.
const noAlarm = 0

func TestMain(m *testing.M) {
	proving.Main(m, map[string]func([]string) error{
		"queue":       func(arguments []string) error { return workForEver(arguments[0]) },
		proving.Work:  workSome,
		proving.Check: checkSome,
	})
}

func open(t testing.TB, path string, opts ...Option) *Queue {
	t.Helper()
	q, err := Open(path, opts...)
	must(t, err)
	t.Cleanup(func() { _ = q.Close() })
	return q
}

// crash leaves the log as the death of the process does: nothing is saved.
func crash(t testing.TB, q *Queue) {
	t.Helper()
	must(t, q.log.Close())
	_ = q.Close()
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

func want[T any](t testing.TB, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func put(t testing.TB, q *Queue, messages ...string) {
	t.Helper()
	for _, message := range messages {
		must(t, q.Put(background, []byte(message)))
	}
}

func get(t testing.TB, q *Queue) *Message {
	t.Helper()
	m, err := q.TryGet()
	must(t, err)
	return m
}

// drain acknowledges what is left, and returns it.
func drain(t testing.TB, q *Queue) []string {
	t.Helper()
	var all []string
	for {
		m, err := q.TryGet()
		if err == ErrEmpty {
			return all
		}
		must(t, err)
		all = append(all, string(m.Data))
		must(t, m.Ack(background))
	}
}

func TestMessagesComeInOrderAndOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queue")
	q := open(t, path)
	put(t, q, "one", "two", "three", "")
	first, second := get(t, q), get(t, q)
	want(t, string(first.Data)+string(second.Data), "onetwo")
	must(t, second.Ack(background))
	wantError(t, second.Ack(background), ErrLeaseLost)
	must(t, first.Nack(0))
	wantError(t, first.Ack(background), ErrLeaseLost)
	again := get(t, q)
	want(t, fmt.Sprint(string(again.Data), again.Attempt), "one2")
	want(t, q.Stats().Len, 3)
	must(t, q.Close())
	must(t, q.Close())
	_, err := q.TryGet()
	wantError(t, err, vellum.ErrClosed)
	wantError(t, q.Put(background, nil), vellum.ErrClosed)
	_, err = Open(path+"/..", PutAtOnce())
	if err == nil {
		t.Fatal("a directory of something else is no queue")
	}
	q = open(t, path)
	want(t, q.Stats().Len, 3)
	want(t, drain(t, q), []string{"one", "three", ""})
	want(t, q.Stats().Len, 0)
}

func TestALeaseEndsAndCanBeExtended(t *testing.T) {
	q := open(t, filepath.Join(t.TempDir(), "queue"), Lease(0))
	put(t, q, "one", "two")
	m := get(t, q)
	q.expire(m.LSN, noAlarm)
	wantError(t, m.Ack(background), ErrLeaseLost)
	again := get(t, q)
	want(t, again.LSN, m.LSN)
	// Through the clock: it comes again, whenever that is.
	must(t, again.Extend(time.Millisecond))
	other, err := q.Get(background)
	must(t, err)
	if other.LSN != m.LSN {
		want(t, string(other.Data), "two")
		other, err = q.Get(background)
		must(t, err)
	}
	want(t, other.LSN, m.LSN)
	must(t, other.Nack(time.Millisecond))
	for other.LSN = 0; other.LSN != m.LSN; {
		other, err = q.Get(background)
		must(t, err)
	}
	must(t, other.Ack(background))
	wantError(t, other.Extend(time.Hour), ErrLeaseLost)
}

func TestALeaseMayEndBeforeTheMessageIsRead(t *testing.T) {
	q := open(t, filepath.Join(t.TempDir(), "queue"), Lease(0))
	put(t, q, "one", "two")
	must(t, get(t, q).Nack(0))
	first, _ := q.flight.oldest()
	q.beforeLoad = func() {
		q.beforeLoad = nil
		q.expire(first, noAlarm)
		other := get(t, q)
		want(t, string(other.Data), "one")
		must(t, other.Ack(background))
		must(t, q.saveState()) // which removes it
	}
	want(t, string(get(t, q).Data), "two")
}

// A commit makes a record of its own in the log. As long as it does, no reader sees the records
// behind it, and no event tells the queue when it is done.
func TestAMessageThatIsSeenLateIsGivenOut(t *testing.T) {
	q := open(t, filepath.Join(t.TempDir(), "queue"))
	q.stats.Len++
	q.whenAtEnd = sync.OnceFunc(func() {
		_, err := q.log.Append(background, appendMessage(nil, "", []byte("late")))
		must(t, err)
	})
	want(t, string(get(t, q).Data), "late")
}

func TestMessagesOfAKeyComeOneAfterTheOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queue")
	q := open(t, path)
	for i := range 3 {
		must(t, q.PutKeyed(background, "a", []byte(fmt.Sprint("a", i))))
		must(t, q.PutKeyed(background, "b", []byte(fmt.Sprint("b", i))))
	}
	put(t, q, "other")
	a, b := get(t, q), get(t, q)
	want(t, a.Key+string(a.Data)+b.Key+string(b.Data), "aa0bb0")
	want(t, string(get(t, q).Data), "other")
	_, err := q.TryGet()
	wantError(t, err, ErrEmpty)
	must(t, b.Ack(background))
	b = get(t, q)
	want(t, string(b.Data), "b1")
	must(t, a.Nack(0))
	want(t, string(get(t, q).Data), "a0")
	crash(t, q)
	q = open(t, path)
	want(t, drain(t, q), []string{"a0", "a1", "b1", "a2", "b2", "other"})
	put(t, q, "one", "two")
	must(t, q.Close())
	q = open(t, path, InOrder())
	one := get(t, q)
	_, err = q.TryGet()
	wantError(t, err, ErrEmpty)
	must(t, one.Nack(0))
	want(t, drain(t, q), []string{"one", "two"})
}

func TestWhoWaitsIsWoken(t *testing.T) {
	q := open(t, filepath.Join(t.TempDir(), "queue"), PutAtOnce(), AckAtOnce(), MaxInFlight(3))
	const count = 2000
	seen := make(chan string, count)
	var consumers sync.WaitGroup
	ctx, cancel := context.WithCancel(background)
	for range 16 {
		consumers.Add(1)
		go func() {
			defer consumers.Done()
			for m, err := range q.Messages(ctx) {
				must(t, err)
				seen <- string(m.Data)
				must(t, m.Ack(background))
			}
		}()
	}
	for i := range count / 10 {
		var batch [][]byte
		for j := range 10 {
			batch = append(batch, []byte(fmt.Sprint(10*i+j)))
		}
		must(t, q.PutAll(background, batch...))
	}
	once := map[string]bool{}
	for range count {
		message := <-seen
		if once[message] {
			t.Fatal(message, "came twice")
		}
		once[message] = true
	}
	cancel()
	consumers.Wait()
	stopped := make(chan error)
	go func() { _, err := q.Get(background); stopped <- err }()
	must(t, q.Close())
	wantError(t, <-stopped, vellum.ErrClosed)
}

func TestAFullQueueFailsBlocksOrDrops(t *testing.T) {
	message := make([]byte, 64<<10)
	fill := func(q *Queue) (count int, err error) {
		for ; err == nil && count < 1000; count++ {
			message[0] = byte(count)
			err = q.Put(background, message)
		}
		return count - 1, err
	}
	t.Run("fail", func(t *testing.T) {
		q := open(t, filepath.Join(t.TempDir(), "queue"), MaxBytes(2<<20, Fail))
		wantError(t, q.Put(background, make([]byte, 2<<20)), vellum.ErrTooLarge)
		for range 3 {
			count, err := fill(q)
			wantError(t, err, ErrFull)
			if count < 28 || count > 32 {
				t.Fatal(count)
			}
			want(t, len(drain(t, q)), count)
		}
	})
	t.Run("block", func(t *testing.T) {
		q := open(t, filepath.Join(t.TempDir(), "queue"), MaxBytes(2<<20, Block))
		done := make(chan error)
		go func() { _, err := fill(q); done <- err }()
		for range 1000 {
			m, err := q.Get(background)
			must(t, err)
			must(t, m.Ack(background))
		}
		must(t, <-done)
		if bytes := diskBytes(t, q); bytes > 7<<20 {
			t.Fatal(bytes, "bytes of files")
		}
		ctx, cancel := context.WithCancel(background)
		go func() {
			for {
				if err := q.Put(ctx, message); err != nil {
					done <- err
					return
				}
				if q.Stats().Bytes > 2<<20-70<<10 {
					cancel()
				}
			}
		}()
		wantError(t, <-done, context.Canceled)
	})
	t.Run("drop", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "queue")
		q := open(t, path, MaxBytes(2<<20, DropOldest))
		put(t, q, "first")
		first := get(t, q)
		_, err := fill(q)
		must(t, err)
		wantError(t, first.Ack(background), ErrLeaseLost)
		stats := q.Stats()
		want(t, stats.Len+stats.Dropped, 1001)
		if bytes := diskBytes(t, q); bytes > 7<<20 || stats.Bytes > 2<<20+1<<16 {
			t.Fatal(bytes, "bytes of files", stats.Bytes)
		}
		must(t, q.Close())
		q = open(t, path, MaxBytes(2<<20, DropOldest))
		want(t, q.Stats().Len, stats.Len)
		left := drain(t, q)
		want(t, uint64(len(left)), stats.Len)
		want(t, left[len(left)-1][0], byte(999%256))
	})
}

func diskBytes(t *testing.T, q *Queue) (bytes uint64) {
	t.Helper()
	stat, err := q.log.Stat()
	must(t, err)
	for _, segment := range stat.Segments {
		bytes += segment.AllocatedBytes
	}
	return bytes
}

func TestAFullDiskIsEmptiedByConsumers(t *testing.T) {
	message := make([]byte, 100_000)
	t.Run("fail", func(t *testing.T) {
		path := filepath.Join(proving.SmallDisk(t, "24m"), "queue")
		q := open(t, path, MaxBytes(32<<20, Fail))
		for range 3 {
			var err error
			count := 0
			for ; err == nil; count++ {
				err = q.Put(background, message)
			}
			wantError(t, err, vellum.ErrNoSpace)
			if count < 80 {
				t.Fatal(count)
			}
			// It continues in another life too.
			crash(t, q)
			q = open(t, path, MaxBytes(32<<20, Fail))
			want(t, len(drain(t, q)), count-1)
		}
	})
	t.Run("block", func(t *testing.T) {
		q := open(t, filepath.Join(proving.SmallDisk(t, "24m"), "queue"), MaxBytes(32<<20, Block))
		done := make(chan error)
		go func() {
			var err error
			for i := 0; i < 1000 && err == nil; i++ {
				err = q.Put(background, message)
			}
			done <- err
		}()
		for range 1000 {
			m, err := q.Get(background)
			must(t, err)
			must(t, m.Ack(background))
		}
		must(t, <-done)
	})
}

func TestMemoryIsBoundedByWhatIsInFlight(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queue")
	q := open(t, path, PutAtOnce(), AckAtOnce(), MaxInFlight(10))
	// One message is never acknowledged, and many come after it.
	put(t, q, "stuck")
	stuck := get(t, q)
	for i := range 50_000 {
		put(t, q, strconv.Itoa(i))
		must(t, get(t, q).Ack(background))
	}
	if entries, order := len(q.flight.entries), len(q.flight.order); entries != 1 || order > 100 {
		t.Fatal(entries, order)
	}
	must(t, q.saveState())
	put(t, q, "last")
	crash(t, q)
	q = open(t, path)
	if known := len(q.flight.acked); known > unsavedAcks {
		t.Fatal(known)
	}
	want(t, q.Stats().Len, 2)
	again := get(t, q)
	want(t, fmt.Sprint(again.LSN, string(again.Data)), fmt.Sprint(stuck.LSN, "stuck"))
	want(t, drain(t, q), []string{"last"})
	for i := range 20 {
		must(t, q.PutKeyed(background, "hot", []byte(strconv.Itoa(i))))
	}
	q.options.maxInFlight = 5
	_ = get(t, q)
	_, err := q.TryGet()
	wantError(t, err, ErrEmpty)
	want(t, len(q.flight.entries), 5)
}

func TestAStateIsThatOfItsPlaceInTheLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queue")
	q := open(t, path, PutAtOnce(), AckAtOnce())
	q.whenAcked = runtime.Gosched
	var workers sync.WaitGroup
	var mu sync.Mutex
	kept := map[string]bool{}
	for goroutine := range 8 {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for i := range 500 {
				put(t, q, fmt.Sprint(goroutine, " ", i))
				m, err := q.Get(background)
				must(t, err)
				if i%10 == 0 {
					mu.Lock()
					kept[string(m.Data)] = true
					mu.Unlock()
				} else {
					must(t, m.Ack(background))
				}
			}
		}()
	}
	done := make(chan struct{})
	go func() { workers.Wait(); close(done) }()
	for isDone := false; !isDone; {
		must(t, q.saveState())
		select {
		case <-done:
			isDone = true
		default:
		}
	}
	crash(t, q)
	q = open(t, path)
	want(t, q.Stats().Len, uint64(len(kept)))
	for _, message := range drain(t, q) {
		if !kept[message] {
			t.Fatal(message, "was acknowledged")
		}
	}
	want(t, len(kept), 400)
}

// model is the expected content of a queue.
type model struct {
	messages []*modelMessage // those that were not acknowledged
}

type modelMessage struct {
	text, key string
	held      *Message
}

// next is the message that comes next: the oldest without a holder that is the first of its key.
func (m *model) next() *modelMessage {
	seen := map[string]bool{}
	for _, message := range m.messages {
		if message.held == nil && (message.key == "" || !seen[message.key]) {
			return message
		}
		seen[message.key] = true
	}
	return nil
}

func (m *model) held(random *rand.Rand) *modelMessage {
	held := slices.DeleteFunc(slices.Clone(m.messages), func(message *modelMessage) bool {
		return message.held == nil
	})
	if len(held) == 0 {
		return nil
	}
	return held[random.IntN(len(held))]
}

func (m *model) remove(message *modelMessage) {
	m.messages = slices.DeleteFunc(m.messages, func(other *modelMessage) bool { return other == message })
}

func TestAQueueDoesWhatItsModelDoes(t *testing.T) {
	rounds := 8
	if testing.Short() {
		rounds = 2
	}
	for round := range rounds {
		seed := rand.Uint64()
		if round == 0 {
			seed = 1
		}
		compare(t, seed)
	}
}

func compare(t *testing.T, seed uint64) {
	step := 0
	defer func() {
		if t.Failed() {
			t.Log("seed", seed, "step", step)
		}
	}()
	random := rand.New(rand.NewPCG(seed, 0))
	path := filepath.Join(t.TempDir(), "queue")
	q := open(t, path, Lease(0), PutAtOnce(), AckAtOnce())
	m := &model{}
	for ; step < 2000; step++ {
		q = doStep(t, q, path, m, random, step)
	}
	must(t, q.Close())
}

func doStep(t *testing.T, q *Queue, path string, m *model, random *rand.Rand, step int) *Queue {
	want(t, q.Stats().Len, uint64(len(m.messages)))
	switch choice := random.IntN(100); {
	case choice < 35:
		message := &modelMessage{text: fmt.Sprint("message ", step)}
		if random.IntN(2) == 0 {
			message.key = fmt.Sprint("key ", random.IntN(3))
		}
		must(t, q.PutKeyed(background, message.key, []byte(message.text)))
		m.messages = append(m.messages, message)
	case choice < 70:
		next := m.next()
		got, err := q.TryGet()
		if next == nil {
			wantError(t, err, ErrEmpty)
			break
		}
		must(t, err)
		want(t, got.Key+string(got.Data), next.key+next.text)
		next.held = got
	case choice < 88:
		if held := m.held(random); held != nil {
			must(t, held.held.Ack(background))
			m.remove(held)
		}
	case choice < 96:
		if held := m.held(random); held != nil {
			if random.IntN(2) == 0 {
				must(t, held.held.Nack(0))
			} else {
				q.expire(held.held.LSN, noAlarm)
			}
			wantError(t, held.held.Ack(background), ErrLeaseLost)
			held.held = nil
		}
	case choice < 98:
		must(t, q.saveState())
	default:
		if choice == 98 {
			crash(t, q)
		} else {
			must(t, q.Close())
		}
		for _, message := range m.messages {
			message.held = nil
		}
		q = open(t, path, Lease(0), PutAtOnce(), AckAtOnce())
	}
	return q
}

// workForEver puts messages and acknowledges them, and says so: P when one was put, T before it is
// acknowledged, A after that. Some are given back, and some are kept.
func workForEver(path string) error {
	q, err := Open(path, MaxBytes(8<<20, Block), MaxInFlight(64), Lease(time.Millisecond))
	if err != nil {
		return err
	}
	failed := make(chan error)
	for goroutine := range 4 {
		go func() {
			for i := 0; ; i++ {
				message := fmt.Sprint(os.Getpid(), "-", goroutine, "-", i)
				padded := message + strings.Repeat(" ", 100*rand.IntN(20))
				if err := q.PutKeyed(background, []string{"", "key"}[goroutine/3], []byte(padded)); err != nil {
					failed <- err
				}
				fmt.Println("P", message)
			}
		}()
		go func() {
			for m, err := range q.Messages(background) {
				if err != nil {
					failed <- err
				}
				message := strings.TrimSpace(string(m.Data))
				switch {
				case rand.IntN(20) == 0:
					_ = m.Nack(0)
				case rand.IntN(20) == 0:
					continue // until its lease ends
				default:
					fmt.Println("G", message)
					fmt.Println("T", message)
					if err := m.Ack(background); err == nil {
						fmt.Println("A", message)
					} else if err != ErrLeaseLost {
						failed <- err
					}
				}
			}
		}()
	}
	return <-failed
}

// said is the reports of the children.
type said struct{ put, tried, acked map[string]bool }

func (s *said) line(line string) {
	if len(line) < 3 {
		return // torn by the kill
	}
	message := line[2:]
	switch line[0] {
	case 'P':
		s.put[message] = true
	case 'T':
		s.tried[message] = true
	case 'A':
		s.acked[message] = true
	}
}

func TestExactlyWhatWasNotAcknowledgedComesAgainAfterKills(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queue")
	all := &said{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for round := range proving.Count(t, "VELLUM_QUEUE_KILLS", 3, 12) {
		before := maps.Clone(all.acked)
		command := proving.Child(t, "queue", path)
		output, err := command.StdoutPipe()
		must(t, err)
		must(t, command.Start())
		lines := bufio.NewScanner(output)
		for range 300 + 97*(round%20) + rand.IntN(100) {
			if !lines.Scan() {
				t.Fatal("the child ended: ", command.Wait())
			}
			line := lines.Text()
			// In one life a consumer whose lease has ended may say so late.
			if line[0] == 'G' && before[line[2:]] {
				t.Fatal(line[2:], "was acknowledged, and came again")
			}
			all.line(line)
		}
		must(t, command.Process.Kill())
		for lines.Scan() {
			all.line(lines.Text())
		}
		_ = command.Wait()
	}
	q := open(t, path)
	left := map[string]bool{}
	number := q.Stats().Len
	for _, text := range drain(t, q) {
		message := strings.TrimSpace(text)
		if left[message] || all.acked[message] {
			t.Fatal(message, "came twice")
		}
		left[message] = true
	}
	want(t, uint64(len(left)), number)
	for message := range all.put {
		if !all.tried[message] && !left[message] {
			t.Fatal(message, "is lost")
		}
	}
	t.Log(len(all.put), "put,", len(all.acked), "acknowledged,", len(left), "left")
}

// A message is given out at once, while others put, acknowledge, and have the log write records of
// its own.
func TestWhatIsPutIsGivenOutAtOnce(t *testing.T) {
	for _, options := range [][]Option{{PutAtOnce(), AckAtOnce()}, nil} {
		q := open(t, filepath.Join(t.TempDir(), "queue"), options...)
		ctx, stop := context.WithCancel(background)
		var all, users sync.WaitGroup
		all.Add(1)
		go func() {
			defer all.Done()
			for ctx.Err() == nil {
				if _, err := q.log.Sync(background); err != nil {
					t.Error(err)
				}
			}
		}()
		for range 8 {
			users.Add(1)
			go func() {
				defer users.Done()
				for range 300 {
					// Each has put one more than it has got.
					err := q.Put(background, make([]byte, 100))
					var m *Message
					if err == nil {
						m, err = q.TryGet()
					}
					if err == nil {
						err = m.Ack(background)
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			}()
		}
		users.Wait()
		stop()
		all.Wait()
		want(t, q.Stats().Len, 0)
	}
}

func TestAQueueIsClosedThriceAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queue")
	for range 20 {
		q := open(t, path)
		put(t, q, "message")
		var all sync.WaitGroup
		for range 3 {
			all.Add(1)
			go func() {
				defer all.Done()
				if err := q.Close(); err != nil {
					t.Error(err)
				}
			}()
		}
		all.Wait()
	}
}

func TestASecondCloseWaitsUntilTheQueueIsClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queue")
	isClosed := func(q *Queue) bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.closed
	}
	for range 20 {
		q, err := Open(path)
		must(t, err) // vellum.ErrInUse where it was not closed
		must(t, q.Put(t.Context(), []byte("a message")))
		first := make(chan error, 1)
		go func() { first <- q.Close() }()
		for !isClosed(q) {
			runtime.Gosched()
		}
		must(t, q.Close())
		t.Cleanup(func() { must(t, <-first) })
	}
}

// Another limit opens the queue with its messages, and counts from then on.
func TestTheLimitOfAQueueCanChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queue")
	limits := []uint64{0, 200 << 20, 100 << 20, 1 << 30, 1 << 20, 0}
	for number, limit := range limits {
		q := open(t, path, MaxBytes(limit, Fail))
		want(t, q.Stats().Len, uint64(number))
		put(t, q, "message")
		must(t, q.Close())
	}
	// Less than a segment.
	q := open(t, path, MaxBytes(1<<20, Block))
	for range limits {
		must(t, get(t, q).Ack(background))
	}
	data := make([]byte, 300<<10)
	for range 100 {
		must(t, q.Put(background, data))
		must(t, q.Put(background, data))
		must(t, get(t, q).Ack(background))
		must(t, get(t, q).Ack(background))
	}
	q = reopenAs(t, q, MaxBytes(1<<20, Fail))
	for range 3 {
		must(t, q.Put(background, data))
	}
	wantError(t, q.Put(background, data), ErrFull)
}

func reopenAs(t *testing.T, q *Queue, opts ...Option) *Queue {
	t.Helper()
	path := q.log.Path()
	must(t, q.Close())
	return open(t, path, opts...)
}
