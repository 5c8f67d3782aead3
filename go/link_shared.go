//go:build vellum_shared

package vellum

// The library stays apart: pkg-config says where it is, and the system finds it when the program
// starts.

// #cgo pkg-config: vellum
import "C"
