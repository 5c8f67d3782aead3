package otelvellum

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension/extensiontest"

	"vellum"
)

var exporterID = component.MustNewIDWithName("otlp", "backend")

func startExtension(t *testing.T, config *Config) *vellumStorage {
	t.Helper()
	must(t, config.Validate())
	factory := NewFactory()
	set := extensiontest.NewNopSettings(factory.Type())
	made, err := factory.Create(t.Context(), set, config)
	must(t, err)
	must(t, made.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { must(t, made.Shutdown(t.Context())) })
	return made.(*vellumStorage)
}

func TestEachComponentHasAStorageOfItsOwn(t *testing.T) {
	config := createDefaultConfig().(*Config)
	config.Directory = filepath.Join(t.TempDir(), "made", "by", "the", "extension")
	config.ReserveMiB = 1
	storage := startExtension(t, config)
	names := map[string]bool{}
	for _, kind := range []component.Kind{component.KindReceiver, component.KindExporter} {
		for _, id := range []component.ID{
			component.MustNewID("otlp"), exporterID, component.MustNewIDWithName("otlp", "a_b"),
			component.MustNewIDWithName("otlp", "a"),
		} {
			for _, name := range []string{"", "logs", "b", "../x", strings.Repeat("long", 100)} {
				client, err := storage.GetClient(t.Context(), kind, id, name)
				must(t, err)
				must(t, client.Set(t.Context(), "key", []byte(kind.String()+id.String()+name)))
				must(t, client.Close(t.Context()))
				names[directoryName(kind, id, name)] = true
			}
		}
	}
	if len(names) != 40 {
		t.Fatalf("%d names", len(names))
	}
	client, err := storage.GetClient(t.Context(), component.KindExporter, exporterID, "../x")
	must(t, err)
	value, err := client.Get(t.Context(), "key")
	if err != nil || string(value) != "Exporterotlp/backend../x" {
		t.Fatalf("%q, %v", value, err)
	}
	_, err = storage.GetClient(t.Context(), component.KindExporter, exporterID, "../x")
	if !errors.Is(err, vellum.ErrInUse) {
		t.Fatal(err)
	}
	must(t, client.Close(t.Context()))
}

func TestAConfigurationIsRead(t *testing.T) {
	config := createDefaultConfig().(*Config)
	must(t, confmap.NewFromStringMap(map[string]any{
		"directory":        "/somewhere",
		"create_directory": false,
		"fsync":            true,
		"reserve_mib":      7,
		"compaction":       map[string]any{"garbage_ratio": 0.25, "minimum_mib": 9},
	}).Unmarshal(config))
	want := Config{
		Directory: "/somewhere", FSync: true, ReserveMiB: 7,
		Compaction: CompactionConfig{GarbageRatio: 0.25, MinimumMiB: 9},
	}
	if *config != want {
		t.Fatalf("%+v", config)
	}
}

func TestAConfigurationThatMakesNoSenseIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for wrong, change := range map[string]func(*Config){
		"directory: it has":          func(c *Config) { c.Directory = "" },
		"is something else":          func(c *Config) { c.Directory = file },
		"create_directory: true":     func(c *Config) { c.Directory, c.CreateDirectory = file+"-none", false },
		"reserve_mib":                func(c *Config) { c.ReserveMiB = -1 },
		"compaction::garbage_ratio":  func(c *Config) { c.Compaction.GarbageRatio = 1 },
		"compaction::garbage_ratio:": func(c *Config) { c.Compaction.GarbageRatio = 0 },
		"compaction::minimum_mib":    func(c *Config) { c.Compaction.MinimumMiB = 0 },
	} {
		config := createDefaultConfig().(*Config)
		config.Directory = t.TempDir()
		must(t, config.Validate())
		change(config)
		if err := config.Validate(); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
