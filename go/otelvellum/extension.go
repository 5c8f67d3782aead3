package otelvellum

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
)

// vellumStorage gives each component a log of its own.
type vellumStorage struct {
	config *Config
	logger *zap.Logger
	// Filled by Start, or where a key is added first.
	reserve *reserve
}

var _ storage.Extension = (*vellumStorage)(nil)

// Start makes the directory and keeps the reserve free.
func (s *vellumStorage) Start(context.Context, component.Host) error {
	if s.config.CreateDirectory {
		if err := os.MkdirAll(s.config.Directory, 0o700); err != nil {
			return err
		}
	}
	if err := s.reserve.fill(); err != nil {
		s.logger.Warn("there is no reserve, so no key is added", zap.Error(err),
			zap.Int64("reserve_mib", s.config.ReserveMiB))
	}
	return nil
}

// Shutdown has nothing to do: each component closes its client.
func (s *vellumStorage) Shutdown(context.Context) error {
	return nil
}

// GetClient opens the log of a component. It has one client at a time.
func (s *vellumStorage) GetClient(
	_ context.Context, kind component.Kind, id component.ID, name string,
) (storage.Client, error) {
	path := filepath.Join(s.config.Directory, directoryName(kind, id, name))
	client, err := openClient(path, s.config, s.reserve, s.logger.With(zap.String("log", path)))
	if err != nil {
		return nil, fmt.Errorf("opening the storage of %s: %w", id, err)
	}
	return client, nil
}

// A name of a file has up to 255 bytes.
const nameBytesMax = 200

// directoryName is another one for each kind, component and name.
func directoryName(kind component.Kind, id component.ID, name string) string {
	parts := []string{strings.ToLower(kind.String()), id.Type().String(), id.Name(), name}
	for i, part := range parts {
		parts[i] = escape(part)
	}
	whole := strings.Join(parts, "_")
	if len(whole) <= nameBytesMax {
		return whole
	}
	sum := sha256.Sum256([]byte(whole))
	return whole[:nameBytesMax-2*len(sum)] + hex.EncodeToString(sum[:])
}

// escape writes every byte that a part of a name must not have as % and two digits.
func escape(part string) string {
	var escaped strings.Builder
	for _, b := range []byte(part) {
		isPlain := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' ||
			b == '-' || b == '.'
		if isPlain {
			escaped.WriteByte(b)
		} else {
			fmt.Fprintf(&escaped, "%%%02x", b)
		}
	}
	return escaped.String()
}
