//go:build !vellum_shared

package vellum

// The library becomes a part of the program. It is looked for where CGO_LDFLAGS says, then in the
// directory lib beside this file, where `make build-go` puts it, and where the system has its
// libraries. The header is vellum.h beside this file, a link to that of the clone; where the link
// leads nowhere, that of the system.

// #cgo CFLAGS: -I${SRCDIR}
// #cgo LDFLAGS: -L${SRCDIR}/lib -l:libvellum.a -lutil -lrt -lpthread -lm -ldl
import "C"
