package raft

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/metrics"
	"github.com/hashicorp/raft-wal/verifier"

	"vellum/raftvellum"
)

// The verifier of raft-wal reads ranges of entries back on each node, and compares their checksum
// with that of the leader.
func TestTheVerifierOfRaftWALFindsNothing(t *testing.T) {
	reports := make(chan verifier.VerificationReport)
	nodes := startNodes(t, func(report verifier.VerificationReport) { reports <- report })
	leader := leaderOf(t, nodes)
	for checkpoint := range 20 {
		for number := range 50 {
			must(t, leader.Apply(fmt.Appendf(nil, "%d-%d", checkpoint, number), time.Minute).Error())
		}
		must(t, leader.Apply([]byte("checkpoint"), time.Minute).Error())
		for range nodes {
			select {
			case report := <-reports:
				if report.Err != nil || report.SkippedRange != nil {
					t.Fatalf("%+v", report)
				}
			case <-time.After(time.Minute):
				t.Fatal("a node does not verify")
			}
		}
	}
}

func isCheckpoint(entry *raft.Log) (bool, error) {
	return string(entry.Data) == "checkpoint", nil
}

// startNodes starts a cluster of three in this process.
func startNodes(t *testing.T, report verifier.ReportFn) []*raft.Raft {
	t.Helper()
	var servers []raft.Server
	var transports []*raft.InmemTransport
	for i := range 3 {
		address, transport := raft.NewInmemTransport(raft.ServerAddress(fmt.Sprint(i)))
		transports = append(transports, transport)
		servers = append(servers, raft.Server{ID: raft.ServerID(address), Address: address})
	}
	for _, from := range transports {
		for _, to := range transports {
			from.Connect(to.LocalAddr(), to)
		}
	}
	var nodes []*raft.Raft
	for i, transport := range transports {
		nodes = append(nodes, startNode(t, servers, i, transport, report))
	}
	return nodes
}

func startNode(t *testing.T, servers []raft.Server, i int, transport raft.Transport,
	report verifier.ReportFn) *raft.Raft {
	t.Helper()
	store, err := raftvellum.Open(t.TempDir() + "/raft")
	must(t, err)
	verified := verifier.NewLogStore(store, isCheckpoint, report, metrics.NewAtomicCollector(verifier.MetricDefinitions))
	config := raft.DefaultConfig()
	config.LocalID = servers[i].ID
	config.LogOutput = io.Discard
	snapshots := raft.NewInmemSnapshotStore()
	configuration := raft.Configuration{Servers: servers}
	must(t, raft.BootstrapCluster(config, verified, store, snapshots, transport, configuration))
	node, err := raft.NewRaft(config, &raft.MockFSM{}, verified, store, snapshots, transport)
	must(t, err)
	t.Cleanup(func() {
		must(t, node.Shutdown().Error())
		must(t, verified.Close())
		must(t, store.Close())
	})
	return node
}

func leaderOf(t *testing.T, nodes []*raft.Raft) *raft.Raft {
	t.Helper()
	won := make(chan *raft.Raft)
	for _, node := range nodes {
		go func() {
			for leads := range node.LeaderCh() {
				if leads {
					won <- node
				}
			}
		}()
	}
	select {
	case leader := <-won:
		return leader
	case <-time.After(time.Minute):
		t.Fatal("nobody leads")
		return nil
	}
}
