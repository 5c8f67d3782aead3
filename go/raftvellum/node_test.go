package raftvellum

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// command is a command of the state machine, and its index.
type command struct {
	Index uint64
	ID    string
}

// machine is a state machine that remembers every command, and that notices disorder.
type machine struct {
	mu       sync.Mutex
	commands []command
}

func (m *machine) Apply(entry *raft.Log) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := len(m.commands) - 1; last >= 0 && m.commands[last].Index >= entry.Index {
		panic(fmt.Sprintf("entry %d comes behind %d", entry.Index, m.commands[last].Index))
	}
	m.commands = append(m.commands, command{entry.Index, string(entry.Data)})
	return nil
}

func (m *machine) all() []command {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.commands[:len(m.commands):len(m.commands)]
}

type snapshot []command

func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	return snapshot(m.all()), nil
}

func (m *machine) Restore(from io.ReadCloser) error {
	var commands []command
	if err := json.NewDecoder(from).Decode(&commands); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.commands = commands
	return nil
}

func (s snapshot) Persist(sink raft.SnapshotSink) error {
	if err := json.NewEncoder(sink).Encode([]command(s)); err != nil {
		_ = sink.Cancel()
		return err
	}
	return sink.Close()
}

func (snapshot) Release() {}

// A node reads lines from its standard input, and answers each:
//
//	apply ID   ID ok, when the command is applied, or ID no
//	barrier    barrier and the index up to which everything is applied, or barrier no
//	list       list and all commands as JSON
type node struct {
	raft    *raft.Raft
	machine *machine
	mu      sync.Mutex
}

// runNode has the arguments: its address, its directory, the addresses of all nodes.
func runNode(arguments []string) error {
	address, directory, all := arguments[0], arguments[1], arguments[2:]
	n := &node{machine: &machine{}}
	if err := n.start(address, directory, all); err != nil {
		return err
	}
	scanner := bufio.NewScanner(os.Stdin)
	for scanner.Scan() {
		go n.answer(scanner.Text())
	}
	return scanner.Err()
}

func (n *node) start(address, directory string, all []string) error {
	if err := os.MkdirAll(directory, 0o777); err != nil {
		return err
	}
	store, err := openSmall(filepath.Join(directory, "log"))
	if err != nil {
		return err
	}
	snapshots, err := raft.NewFileSnapshotStore(directory, 2, io.Discard)
	if err != nil {
		return err
	}
	transport, err := raft.NewTCPTransport(address, nil, 3, time.Second, io.Discard)
	if err != nil {
		return err
	}
	config := nodeConfig(address)
	var servers raft.Configuration
	for _, address := range all {
		servers.Servers = append(servers.Servers,
			raft.Server{ID: raft.ServerID(address), Address: raft.ServerAddress(address)})
	}
	err = raft.BootstrapCluster(config, store, store, snapshots, transport, servers)
	if err != nil && err != raft.ErrCantBootstrap {
		return err
	}
	n.raft, err = raft.NewRaft(config, n.machine, store, store, snapshots, transport)
	return err
}

// nodeConfig has snapshots made all the time, so that entries are deleted.
func nodeConfig(address string) *raft.Config {
	config := raft.DefaultConfig()
	config.LocalID = raft.ServerID(address)
	config.HeartbeatTimeout = 150 * time.Millisecond
	config.ElectionTimeout = 150 * time.Millisecond
	config.LeaderLeaseTimeout = 100 * time.Millisecond
	config.CommitTimeout = 5 * time.Millisecond
	config.SnapshotInterval = 100 * time.Millisecond
	config.SnapshotThreshold = 30
	config.TrailingLogs = 10
	config.LogOutput = io.Discard
	return config
}

func (n *node) answer(line string) {
	switch word, id, _ := strings.Cut(line, " "); word {
	case "apply":
		if err := n.raft.Apply([]byte(id), time.Second).Error(); err != nil {
			n.say(id, "no")
			return
		}
		n.say(id, "ok")
	case "barrier":
		if err := n.raft.Barrier(time.Second).Error(); err != nil {
			n.say("barrier", "no")
			return
		}
		n.say("barrier", "ok")
	case "list":
		all, err := json.Marshal(n.machine.all())
		if err != nil {
			panic(err)
		}
		n.say("list", string(all))
	}
}

func (n *node) say(to, what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	fmt.Println(to, what)
}
