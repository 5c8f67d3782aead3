package vellumqueue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"vellum"
	"vellum/internal/proving"
)

// Messages have numbers. Acknowledgements and reports are numbers too: twice that of a message says
// that it comes, and one more that it does not come any more.
const (
	putters        = 4
	putsOfOne      = 60
	messagesOfWork = putters * putsOfOne
	numberOfCheck  = messagesOfWork + 1
)

// After a power cut exactly those messages come again that were put and not acknowledged.
func TestAPowerCutLeavesWhatWasNotAcknowledged(t *testing.T) {
	proving.PowerCuts(t, 8, proving.Nested)
}

// openForCuts opens a queue whose files are short, so that some of them go.
func openForCuts(path string) (*Queue, error) {
	return Open(path, MaxBytes(4<<20, Block), Lease(0), Log(vellum.SegmentBytes(64<<10)))
}

// workSome puts messages and acknowledges most of them.
func workSome(arguments []string) error {
	q, err := openForCuts(arguments[0])
	if err != nil {
		return err
	}
	putting, consuming := sync.WaitGroup{}, sync.WaitGroup{}
	failed := make(chan error, 2*putters)
	ctx, stop := context.WithCancel(background)
	for worker := range putters {
		random := rand.New(rand.NewPCG(proving.Seeded(arguments[1]).Uint64(), uint64(worker)))
		putting.Add(1)
		go func() { defer putting.Done(); failed <- putSome(q, worker, random) }()
		consuming.Add(1)
		go func() { defer consuming.Done(); failed <- consume(ctx, q, worker) }()
	}
	putting.Wait()
	stop()
	consuming.Wait()
	for range 2 * putters {
		err = errors.Join(err, <-failed)
	}
	return errors.Join(err, q.Close())
}

// putSome puts the messages of a worker: alone, with a key, or several at once.
func putSome(q *Queue, worker int, random *rand.Rand) error {
	for i := 0; i < putsOfOne; {
		var batch [][]byte
		for range min(1+worker%2*random.IntN(4), putsOfOne-i) {
			text := fmt.Sprint(1+worker*putsOfOne+i, strings.Repeat(" ", random.IntN(5000)))
			batch = append(batch, []byte(text))
			i++
		}
		var err error
		if len(batch) > 1 {
			err = q.PutAll(background, batch...)
		} else {
			err = q.PutKeyed(background, []string{"", "key"}[worker/3], batch[0])
		}
		if err != nil {
			return err
		}
		for number := 1 + worker*putsOfOne + i - len(batch); number <= worker*putsOfOne+i; number++ {
			fmt.Println("ACK", 2*number)
		}
		if i%20 == 0 { // often, for a cut to meet one
			if err := q.saveState(); err != nil {
				return err
			}
		}
	}
	return nil
}

// consume acknowledges messages, gives some back, and keeps a few.
func consume(ctx context.Context, q *Queue, worker int) error {
	for m, err := range q.Messages(ctx) {
		if err != nil {
			return err
		}
		number, err := numberOf(m)
		if err != nil {
			return err
		}
		switch {
		case number%19 == worker && m.Key == "":
			continue
		case m.Attempt == 1 && number%7 == 0:
			if err := m.Nack(0); err != nil {
				return err
			}
			continue
		}
		fmt.Printf("DROP %d-%[1]d\n", 2*number)
		if err := m.Ack(background); err != nil {
			return err
		}
		fmt.Println("ACK", 2*number+1)
	}
	return nil
}

func numberOf(m *Message) (number int, err error) {
	_, err = fmt.Sscan(string(m.Data), &number)
	return number, err
}

// checkSome says which messages come, and which do not. It acknowledges none: the power is cut under
// it too.
func checkSome(arguments []string) error {
	q, err := openForCuts(arguments[0])
	if err != nil {
		return err
	}
	length := q.Stats().Len
	for err == nil {
		_, err = q.TryGet()
	}
	if err != ErrEmpty {
		return err
	}
	// Those that wait behind another one of their key are among them.
	came, last := map[int]bool{}, [putters]int{}
	all := q.flight.outstanding()
	for _, lsn := range all {
		m := &Message{LSN: lsn}
		if err := q.load(m); err != nil {
			return err
		}
		number, err := numberOf(m)
		if err != nil {
			return err
		}
		if number == numberOfCheck {
			continue
		}
		worker := (number - 1) / putsOfOne
		if number <= last[worker] {
			fmt.Println("BAD message", number, "is not in its order")
		}
		last[worker], came[number] = number, true
	}
	if uint64(len(all)) != length {
		fmt.Println("BAD", len(all), "messages came of", length)
	}
	for number := 1; number <= messagesOfWork; number++ {
		if came[number] {
			fmt.Println(2 * number)
		} else {
			fmt.Println(2*number + 1)
		}
	}
	// The queue continues.
	if err := q.Put(background, fmt.Append(nil, numberOfCheck)); err != nil {
		return err
	}
	return q.Close()
}
