package raftvellum

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vellum/internal/proving"
)

// A cluster of three processes, and clients that have commands applied.
type cluster struct {
	t         *testing.T
	directory string
	addresses []string
	members   [3]*member

	mu           sync.Mutex
	acknowledged map[string]bool
	progress     chan struct{}
}

// A member is a node as the test sees it.
type member struct {
	child *exec.Cmd
	input io.WriteCloser
	dead  chan struct{}

	mu      sync.Mutex
	waiting map[string]chan string
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t, directory: t.TempDir(), acknowledged: map[string]bool{}}
	c.progress = make(chan struct{}, 1)
	for range c.members {
		c.addresses = append(c.addresses, freeAddress(t))
	}
	for i := range c.members {
		c.start(i)
	}
	t.Cleanup(func() {
		for i := range c.members {
			c.kill(i)
		}
	})
	return c
}

func freeAddress(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

func (c *cluster) start(i int) {
	directory := filepath.Join(c.directory, fmt.Sprint(i))
	arguments := append([]string{c.addresses[i], directory}, c.addresses...)
	m := &member{child: proving.Child(c.t, "node", arguments...)}
	m.dead, m.waiting = make(chan struct{}), map[string]chan string{}
	output, err := m.child.StdoutPipe()
	must(c.t, err)
	m.input, err = m.child.StdinPipe()
	must(c.t, err)
	must(c.t, m.child.Start())
	go m.listen(output)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members[i] = m
}

func (m *member) listen(output io.Reader) {
	defer close(m.dead)
	for lines := bufio.NewReader(output); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		to, what, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		m.mu.Lock()
		m.waiting[to] <- what
		delete(m.waiting, to)
		m.mu.Unlock()
	}
}

// ask returns the answer to a line, or "" where the node died.
func (m *member) ask(line, as string) string {
	answer := make(chan string, 1)
	m.mu.Lock()
	m.waiting[as] = answer
	m.mu.Unlock()
	if _, err := fmt.Fprintln(m.input, line); err != nil {
		return ""
	}
	select {
	case what := <-answer:
		return what
	case <-m.dead:
		return ""
	}
}

func (c *cluster) member(i int) *member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members[i]
}

func (c *cluster) kill(i int) {
	m := c.member(i)
	_ = m.child.Process.Kill()
	<-m.dead
	_ = m.child.Wait()
}

// client has commands applied until `done` is closed. It asks the node that said yes last.
func (c *cluster) client(name int, done <-chan struct{}) {
	at := 0
	for number := 0; ; number++ {
		select {
		case <-done:
			return
		default:
		}
		id := fmt.Sprintf("%d-%d", name, number)
		if c.member(at).ask("apply "+id, id) != "ok" {
			at = (at + 1) % len(c.members)
			continue
		}
		c.mu.Lock()
		c.acknowledged[id] = true
		c.mu.Unlock()
		select {
		case c.progress <- struct{}{}:
		default:
		}
	}
}

func (c *cluster) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.acknowledged)
}

// waitFor waits until so many more commands were applied: a cluster that is stuck fails the test.
func (c *cluster) waitFor(more int) {
	stuck := time.After(time.Minute)
	for goal := c.count() + more; c.count() < goal; {
		select {
		case <-c.progress:
		case <-stuck:
			c.t.Fatal("the cluster is stuck")
		}
	}
}

// lists returns the commands of each node, when each has all of them.
func (c *cluster) lists() [3][]command {
	for at := 0; c.member(at).ask("barrier", "barrier") != "ok"; {
		at = (at + 1) % len(c.members)
	}
	var lists [3][]command
	for stuck := time.Now().Add(time.Minute); ; {
		for i := range lists {
			must(c.t, json.Unmarshal([]byte(c.member(i).ask("list", "list")), &lists[i]))
		}
		if slices.Equal(lists[0], lists[1]) && slices.Equal(lists[0], lists[2]) {
			return lists
		}
		if time.Now().After(stuck) {
			c.t.Fatal("the nodes do not agree")
		}
	}
}

// Three nodes lose no command that they acknowledged, whichever of them are killed.
func TestAClusterUnderKillsLosesNothing(t *testing.T) {
	c := newCluster(t)
	done := make(chan struct{})
	var clients sync.WaitGroup
	for name := range 4 {
		clients.Add(1)
		go func() {
			defer clients.Done()
			c.client(name, done)
		}()
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range proving.Count(t, "VELLUM_GO_KILLS", 2, 8) {
		c.waitFor(random.IntN(60) + 1)
		victims := random.Perm(3)[:1+random.IntN(3)]
		for _, i := range victims {
			c.kill(i)
		}
		for _, i := range victims {
			c.start(i)
		}
	}
	c.waitFor(20)
	close(done)
	clients.Wait()
	applied := map[string]bool{}
	for _, command := range c.lists()[0] {
		if applied[command.ID] {
			t.Errorf("%s is applied twice", command.ID)
		}
		applied[command.ID] = true
	}
	for id := range c.acknowledged {
		if !applied[id] {
			t.Errorf("%s is lost", id)
		}
	}
	t.Logf("%d commands were acknowledged", len(c.acknowledged))
}
