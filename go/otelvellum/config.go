package otelvellum

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

const mebibyte = 1 << 20

// Config is the configuration of the extension.
type Config struct {
	// Directory has a directory for each client.
	Directory string `mapstructure:"directory"`
	// CreateDirectory has the directory made where it is missing.
	CreateDirectory bool `mapstructure:"create_directory"`
	// FSync has each change survive a power cut before it is acknowledged, but for notes of a queue on
	// items that are handed out or done: those do within a second. Otherwise a change survives the
	// death of the collector.
	FSync bool `mapstructure:"fsync"`
	// ReserveMiB is space that is kept free for changes that add no key, such as those by which a
	// queue is drained: they continue when the disk is full. 0 keeps none.
	ReserveMiB int64 `mapstructure:"reserve_mib"`
	// Compaction says when values are moved.
	Compaction CompactionConfig `mapstructure:"compaction"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// CompactionConfig says when values are moved to the end of the log, so that the records before
// them can be removed. A queue, whose oldest values are deleted first, needs none of this.
type CompactionConfig struct {
	// GarbageRatio is the part of the log, from its oldest value on, that may be no values.
	GarbageRatio float64 `mapstructure:"garbage_ratio"`
	// MinimumMiB is the length of the log up to which nothing is moved.
	MinimumMiB int64 `mapstructure:"minimum_mib"`

	// prevent unkeyed literal initialization
	_ struct{}
}

func defaultConfig() *Config {
	return &Config{
		Directory:       "/var/lib/otelcol/vellum",
		CreateDirectory: true,
		ReserveMiB:      16,
		Compaction:      CompactionConfig{GarbageRatio: 0.5, MinimumMiB: 64},
	}
}

// Validate returns the fault of a configuration.
func (c *Config) Validate() error {
	return errors.Join(c.validateDirectory(), c.validateNumbers())
}

func (c *Config) validateDirectory() error {
	if c.Directory == "" {
		return errors.New("directory: it has to be set")
	}
	info, err := os.Stat(c.Directory)
	switch {
	case errors.Is(err, fs.ErrNotExist) && c.CreateDirectory:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("directory: %w; create_directory: true would make it", err)
	case err != nil:
		return fmt.Errorf("directory: %w", err)
	case !info.IsDir():
		return fmt.Errorf("directory: %s is something else", c.Directory)
	default:
		return nil
	}
}

func (c *Config) validateNumbers() error {
	var wrong []error
	if c.ReserveMiB < 0 {
		wrong = append(wrong, errors.New("reserve_mib: it must not be negative"))
	}
	if ratio := c.Compaction.GarbageRatio; ratio < 0.1 || ratio > 0.9 {
		wrong = append(wrong, errors.New("compaction::garbage_ratio: it must be 0.1 to 0.9"))
	}
	if c.Compaction.MinimumMiB < 1 {
		wrong = append(wrong, errors.New("compaction::minimum_mib: it must be at least 1"))
	}
	return errors.Join(wrong...)
}
