// Package otelvellum is a storage extension of the OpenTelemetry Collector: the state of components
// and their queues are in Vellum logs.
package otelvellum

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
)

// Type is the name of the extension in the configuration of a collector.
var Type = component.MustNewType("vellum_storage")

// NewFactory makes the factory of the extension.
func NewFactory() extension.Factory {
	return extension.NewFactory(Type, createDefaultConfig, create, component.StabilityLevelAlpha)
}

func createDefaultConfig() component.Config {
	return defaultConfig()
}

func create(_ context.Context, set extension.Settings, config component.Config) (
	extension.Extension, error,
) {
	c := config.(*Config)
	reserve := newReserve(c.Directory, c.ReserveMiB*mebibyte)
	return &vellumStorage{config: c, logger: set.Logger, reserve: reserve}, nil
}
