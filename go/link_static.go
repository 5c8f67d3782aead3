//go:build !vellum_shared

package vellum

// The library becomes a part of the program. It is looked for in the directory lib beside this
// file, where `make go` puts it, then where CGO_LDFLAGS says and where the system has its
// libraries. The header is that of the clone, or that of the system.

// #cgo CFLAGS: -I${SRCDIR}/../crates/vellum-capi/include
// #cgo LDFLAGS: -L${SRCDIR}/lib -l:libvellum.a -lutil -lrt -lpthread -lm -ldl
import "C"
