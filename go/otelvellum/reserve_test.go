package otelvellum

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"vellum/internal/proving"
)

func configIn(directory string) *Config {
	config := defaultConfig()
	config.Directory = directory
	return config
}

// ext2 and ext3 have no fallocate: that is no full disk.
func TestAStorageIsOnDisksWithoutFallocate(t *testing.T) {
	for _, kind := range []string{"ext2", "ext3"} {
		config := configIn(proving.FormattedDisk(t, kind, 100))
		extension := startExtension(t, config)
		client, err := extension.GetClient(t.Context(), component.KindExporter, exporterID, "")
		must(t, err)
		value := make([]byte, 4<<20)
		must(t, client.Set(t.Context(), "key", value))
		var stat syscall.Stat_t
		must(t, syscall.Stat(extension.reserve.path, &stat))
		if stat.Blocks*512 < 16*mebibyte {
			t.Fatal(kind, stat.Blocks)
		}
		for number := byte(0); err == nil; number++ {
			err = client.Set(t.Context(), string([]byte{number}), value)
		}
		if !errors.Is(err, storage.ErrStorageFull) {
			t.Fatal(kind, err)
		}
		must(t, client.Set(t.Context(), "key", []byte("short")))
		must(t, client.Close(t.Context()))
	}
}

// A link, a pipe or a file with the name of the reserve is not followed, waited for, or written to.
func TestTheReserveTouchesNoOtherFile(t *testing.T) {
	plants := map[string]func(path, other string) error{
		"link":      func(path, other string) error { return os.Symlink(other, path) },
		"hard link": func(path, other string) error { return os.Link(other, path) },
		"pipe":      func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
	}
	for name, plant := range plants {
		t.Run(name, func(t *testing.T) {
			other := filepath.Join(t.TempDir(), "other")
			content := bytes.Repeat([]byte("other"), mebibyte)
			must(t, os.WriteFile(other, content, 0o600))
			config := configIn(t.TempDir())
			config.ReserveMiB = 1
			must(t, plant(filepath.Join(config.Directory, "reserve"), other))
			extension := startExtension(t, config)
			must(t, extension.reserve.fill())
			if now, err := os.ReadFile(other); err != nil || !bytes.Equal(now, content) {
				t.Fatal(len(now), err)
			}
		})
	}
	config := configIn(t.TempDir())
	must(t, os.Mkdir(filepath.Join(config.Directory, "reserve"), 0o700))
	client, err := startExtension(t, config).GetClient(t.Context(), component.KindExporter, exporterID, "")
	must(t, err)
	err = client.Set(t.Context(), "key", nil)
	if err == nil || errors.Is(err, storage.ErrStorageFull) {
		t.Fatal(err)
	}
	must(t, client.Close(t.Context()))
}

// Tests of components do without Start.
func TestAClientWorksBeforeStart(t *testing.T) {
	factory := NewFactory()
	set := extensiontest.NewNopSettings(factory.Type())
	made, err := factory.Create(t.Context(), set, configIn(t.TempDir()))
	must(t, err)
	client, err := made.(storage.Extension).GetClient(t.Context(), component.KindExporter, exporterID, "")
	must(t, err)
	must(t, client.Set(t.Context(), "key", []byte("value")))
	value, err := client.Get(t.Context(), "key")
	if err != nil || string(value) != "value" {
		t.Fatal(string(value), err)
	}
	must(t, client.Close(t.Context()))
}
