// Package otelpeers runs a collector with the storage of vellum/otelvellum, and compares the storage with
// filestorage.
package otelpeers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/otlpexporter"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"vellum/internal/proving"
	"vellum/otelvellum"
)

// The test program is started again as a collector, with its configuration as its argument.
func TestMain(m *testing.M) {
	proving.Main(m, map[string]func([]string) error{
		"collector":   func(arguments []string) error { return runCollector(arguments[0]) },
		proving.Work:  deliverSome,
		proving.Check: deliverRest,
	})
}

func runCollector(configuration string) error {
	collector, err := newCollector(configuration)
	if err != nil {
		return err
	}
	return collector.Run(context.Background())
}

func newCollector(configuration string) (*otelcol.Collector, error) {
	return otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo: component.NewDefaultBuildInfo(),
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs:              []string{"yaml:" + configuration},
			ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()},
		}},
	})
}

func factories() (otelcol.Factories, error) {
	otlpOut, otlpIn, storage := otlpexporter.NewFactory(), otlpreceiver.NewFactory(), otelvellum.NewFactory()
	return otelcol.Factories{
		Receivers:  map[component.Type]receiver.Factory{otlpIn.Type(): otlpIn},
		Exporters:  map[component.Type]exporter.Factory{otlpOut.Type(): otlpOut},
		Extensions: map[component.Type]extension.Factory{storage.Type(): storage},
		Telemetry:  otelconftelemetry.NewFactory(),
	}, nil
}

const configuration = `
extensions:
  vellum_storage: {directory: %[1]s, fsync: %[4]t}
receivers:
  otlp: {protocols: {grpc: {endpoint: "%[2]s"}}}
exporters:
  otlp_grpc:
    endpoint: "%[3]s"
    tls: {insecure: true}
    retry_on_failure: {initial_interval: 10ms, max_interval: 50ms, max_elapsed_time: 0}
    sending_queue: {storage: vellum_storage, queue_size: 100000, num_consumers: %[5]d}
service:
  extensions: [vellum_storage]
  pipelines: {logs: {receivers: [otlp], exporters: [otlp_grpc]}}
  telemetry: {metrics: {level: none}, logs: {level: error}}
`

// sink is the backend: it counts how often each log comes, and refuses every third request.
type sink struct {
	plogotlp.UnimplementedGRPCServer
	mu       sync.Mutex
	requests int
	seen     map[string]int
	came     chan struct{}
}

func (s *sink) Export(_ context.Context, request plogotlp.ExportRequest) (
	plogotlp.ExportResponse, error,
) {
	s.mu.Lock()
	defer s.mu.Unlock()
	response := plogotlp.NewExportResponse()
	if s.requests++; s.requests%3 == 0 {
		return response, status.Error(codes.Unavailable, "not now")
	}
	for _, body := range bodiesOf(request) {
		s.seen[body]++
	}
	select {
	case s.came <- struct{}{}:
	default:
	}
	return response, nil
}

func bodiesOf(request plogotlp.ExportRequest) []string {
	var bodies []string
	for _, resource := range request.Logs().ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				bodies = append(bodies, record.Body().Str())
			}
		}
	}
	return bodies
}

func (s *sink) lacks(ids []string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	lacking := 0
	for _, id := range ids {
		if s.seen[id] == 0 {
			lacking++
		}
	}
	return lacking
}

func startSink(t *testing.T) (*sink, string) {
	t.Helper()
	s := &sink{seen: map[string]int{}, came: make(chan struct{}, 1)}
	server, address, err := serve(s)
	must(t, err)
	t.Cleanup(server.Stop)
	return s, address
}

func serve(backend plogotlp.GRPCServer) (*grpc.Server, string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	server := grpc.NewServer()
	plogotlp.RegisterGRPCServer(server, backend)
	go func() { _ = server.Serve(listener) }()
	return server, listener.Addr().String(), nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

func startCollector(t *testing.T, configuration string) *exec.Cmd {
	t.Helper()
	child := proving.Child(t, "collector", configuration)
	must(t, child.Start())
	t.Cleanup(func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	})
	return child
}

// send sends logs until ctx ends, each in a request of its own, and returns those that the collector
// acknowledged.
func send(ctx context.Context, address, prefix string) ([]string, error) {
	connection, err := connect(address)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	var acknowledged []string
	for number := 0; ctx.Err() == nil; number++ {
		id := fmt.Sprintf("%s-%d", prefix, number)
		if sendOne(ctx, connection, id) == nil {
			acknowledged = append(acknowledged, id)
		}
	}
	return acknowledged, nil
}

func connect(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient(address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, MaxDelay: 200 * time.Millisecond,
			},
			MinConnectTimeout: 5 * time.Second,
		}))
}

// sendOne sends a log, in a request of its own, when the collector is there.
func sendOne(ctx context.Context, connection *grpc.ClientConn, body string) error {
	logs := plog.NewLogs()
	scope := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
	scope.LogRecords().AppendEmpty().Body().SetStr(body)
	request := plogotlp.NewExportRequestFromLogs(logs)
	_, err := plogotlp.NewGRPCClient(connection).Export(ctx, request, grpc.WaitForReady(true))
	return err
}

// A collector that is killed at any moment delivers all that it has acknowledged, after it was
// started again.
func TestAKilledCollectorDeliversWhatItAcknowledged(t *testing.T) {
	backend, out := startSink(t)
	in, err := freeAddress()
	must(t, err)
	directory := filepath.Join(t.TempDir(), "storage")
	random := rand.New(rand.NewPCG(1, 2))
	var acknowledged []string
	for round := range proving.Count(t, "VELLUM_GO_KILLS", 1, 4) {
		text := fmt.Sprintf(configuration, directory, in, out, round%2 == 0, 4)
		collector := startCollector(t, text)
		var clients sync.WaitGroup
		var mu sync.Mutex
		ctx, stop := context.WithCancel(t.Context())
		for client := range 4 {
			clients.Add(1)
			go func() {
				defer clients.Done()
				ids, err := send(ctx, in, fmt.Sprintf("%d-%d", round, client))
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				acknowledged = append(acknowledged, ids...)
			}()
		}
		for range 1 + random.IntN(40) {
			select {
			case <-backend.came:
			case <-time.After(time.Minute):
				t.Fatal("the collector is stuck")
			}
		}
		must(t, collector.Process.Kill())
		_ = collector.Wait()
		stop()
		clients.Wait()
	}
	startCollector(t, fmt.Sprintf(configuration, directory, in, out, true, 4))
	for backend.lacks(acknowledged) > 0 {
		select {
		case <-backend.came:
		case <-time.After(time.Minute):
			t.Fatalf("%d of %d logs are lost", backend.lacks(acknowledged), len(acknowledged))
		}
	}
	t.Logf("%d logs were acknowledged, and came", len(acknowledged))
}
