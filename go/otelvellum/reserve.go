package otelvellum

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// reserve is a file that only takes space. It is removed when the disk is full, for changes that
// add no key. Until it can be made again, no key is added.
type reserve struct {
	path  string
	bytes int64

	mu     sync.Mutex
	isHeld bool
}

func newReserve(directory string, bytes int64) *reserve {
	return &reserve{path: filepath.Join(directory, "reserve"), bytes: bytes}
}

// fill makes the file where it is not there, and reports whether it is there now.
func (r *reserve) fill() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isHeld {
		r.isHeld = r.bytes == 0 || r.make() == nil
	}
	return r.isHeld
}

func (r *reserve) make() error {
	file, err := os.OpenFile(r.path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := syscall.Fallocate(int(file.Fd()), 0, 0, r.bytes); err != nil {
		_ = os.Remove(r.path)
		return err
	}
	return file.Truncate(r.bytes) // an earlier one may have been larger
}

// use gives the space to those who must go on, and reports whether there was any.
func (r *reserve) use() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isHeld || r.bytes == 0 {
		return false
	}
	r.isHeld = false
	return os.Remove(r.path) == nil
}
