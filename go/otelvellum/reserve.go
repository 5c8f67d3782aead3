package otelvellum

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"vellum"
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

// fill makes the file where it is not there. Without space that is vellum.ErrNoSpace.
func (r *reserve) fill() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isHeld || r.bytes == 0 {
		r.isHeld = true
		return nil
	}
	err := r.make()
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("making the reserve: %w: %w", vellum.ErrNoSpace, err)
	}
	if err != nil {
		return fmt.Errorf("making the reserve: %w", err)
	}
	r.isHeld = true
	return nil
}

// make takes a new file, in place of the file that has its name: nothing is written to that file.
func (r *reserve) make() error {
	if r.isThere() {
		return nil
	}
	if err := syscall.Unlink(r.path); err != nil && err != syscall.ENOENT {
		return &os.PathError{Op: "remove", Path: r.path, Err: err}
	}
	file, err := os.OpenFile(r.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = r.allocate(file)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(r.path)
	}
	return err
}

// isThere reports whether a collector before this one has left the file as it should be.
func (r *reserve) isThere() bool {
	var stat syscall.Stat_t
	err := syscall.Lstat(r.path, &stat)
	return err == nil && stat.Mode&syscall.S_IFMT == syscall.S_IFREG && stat.Nlink == 1 &&
		stat.Size == r.bytes && stat.Blocks*512 >= r.bytes
}

// allocate gives the file its blocks. ext2 and ext3 have no fallocate: zeros are written there.
func (r *reserve) allocate(file *os.File) error {
	err := syscall.Fallocate(int(file.Fd()), 0, 0, r.bytes)
	if err != syscall.EOPNOTSUPP && err != syscall.ENOSYS {
		return err
	}
	zeros := make([]byte, mebibyte)
	for written := int64(0); written < r.bytes; written += int64(len(zeros)) {
		if _, err := file.Write(zeros[:min(int64(len(zeros)), r.bytes-written)]); err != nil {
			return err
		}
	}
	// Where blocks are given later, the disk may turn out to be full only now.
	return file.Sync()
}

// use gives the space to changes that must continue, and reports whether there was any.
func (r *reserve) use() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isHeld || r.bytes == 0 {
		return false
	}
	r.isHeld = false
	return os.Remove(r.path) == nil
}
