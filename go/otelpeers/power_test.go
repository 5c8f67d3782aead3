package otelpeers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"vellum/internal/proving"
)

// Logs have numbers. The last log of a check has none.
const (
	senders     = 4
	logsOfOne   = 40
	lastOfCheck = "the last one"
)

// A collector that is started again after a power cut delivers all that it has acknowledged and not
// delivered before, as it was sent.
//
// The power is not cut again meanwhile: a collector that starts deletes what was under way before it
// stores that anew.
func TestAPowerCutLeavesWhatACollectorAcknowledged(t *testing.T) { proving.PowerCuts(t, 2) }

// bodyOf is the log with a number, of up to 100 KB.
func bodyOf(number int) string {
	random := rand.New(rand.NewPCG(uint64(number), 4))
	letter := string(rune('a' + random.IntN(26)))
	return fmt.Sprint(number, " ", strings.Repeat(letter, random.IntN(100_000)))
}

// slowSink refuses two of three logs, so that others wait in the queue meanwhile.
type slowSink struct {
	plogotlp.UnimplementedGRPCServer
	mu       sync.Mutex
	requests int
}

func (s *slowSink) Export(_ context.Context, request plogotlp.ExportRequest) (
	plogotlp.ExportResponse, error,
) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests++; s.requests%3 != 0 {
		return plogotlp.NewExportResponse(), status.Error(codes.Unavailable, "not now")
	}
	for _, body := range bodiesOf(request) {
		number, _, _ := strings.Cut(body, " ")
		fmt.Printf("DROP %s-%[1]s\n", number)
	}
	return plogotlp.NewExportResponse(), nil
}

// running is a collector in this process, with a backend and a connection to it.
type running struct {
	collector *otelcol.Collector
	ended     chan error
	in        string
}

func startHere(directory string, backend plogotlp.GRPCServer, consumers int) (*running, error) {
	_, out, err := serve(backend)
	if err != nil {
		return nil, err
	}
	in, err := freeAddress()
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf(configuration, filepath.Join(directory, "storage"), in, out, true, consumers)
	collector, err := newCollector(text)
	if err != nil {
		return nil, err
	}
	r := &running{collector, make(chan error, 1), in}
	go func() { r.ended <- collector.Run(context.Background()) }()
	return r, nil
}

// send sends logs one by one. Where the collector ends, it returns why.
func (r *running) send(bodies []string, sent func(i int)) error {
	connection, err := connect(r.in)
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case err := <-r.ended:
			r.ended <- err
			cancel()
		case <-ctx.Done():
		}
	}()
	for i, body := range bodies {
		if err := sendOne(ctx, connection, body); err != nil {
			return err
		}
		sent(i)
	}
	return nil
}

func (r *running) stop() error {
	r.collector.Shutdown()
	return <-r.ended
}

// deliverSome has a collector deliver logs to a backend that is slow, and reports acknowledged and
// delivered items.
func deliverSome(arguments []string) error {
	r, err := startHere(arguments[0], &slowSink{}, senders)
	if err != nil {
		return err
	}
	failed := make(chan error, senders)
	for sender := range senders {
		var bodies []string
		first := 1 + sender*logsOfOne
		for number := first; number < first+logsOfOne; number++ {
			bodies = append(bodies, bodyOf(number))
		}
		go func() {
			failed <- r.send(bodies, func(i int) { fmt.Println("ACK", first+i) })
		}()
	}
	for range senders {
		err = errors.Join(err, <-failed)
	}
	return errors.Join(err, r.stop())
}

// restSink says which logs come.
type restSink struct {
	plogotlp.UnimplementedGRPCServer
	last chan struct{}
}

func (s *restSink) Export(_ context.Context, request plogotlp.ExportRequest) (
	plogotlp.ExportResponse, error,
) {
	for _, body := range bodiesOf(request) {
		var number int
		_, err := fmt.Sscan(body, &number)
		switch {
		case body == lastOfCheck:
			close(s.last)
		case err == nil && body == bodyOf(number):
			fmt.Println(number)
		default:
			fmt.Printf("BAD a log of %d bytes, which nobody has sent: %.40q\n", len(body), body)
		}
	}
	return plogotlp.NewExportResponse(), nil
}

// deliverRest starts a collector anew, and waits until it has delivered what it has. One consumer
// takes them in their order.
func deliverRest(arguments []string) error {
	backend := &restSink{last: make(chan struct{})}
	r, err := startHere(arguments[0], backend, 1)
	if err != nil {
		return err
	}
	if err := r.send([]string{lastOfCheck}, func(int) {}); err != nil {
		return errors.Join(err, r.stop())
	}
	<-backend.last
	return r.stop()
}
