# The Go packages: the library that they link, and their tests. Included by the Makefile at the root.

##@ Go

GO ?= go
# Where programs of this clone find libvellum.a: go/link_static.go names it.
GO_LIB ?= go/lib
# No other toolchain is fetched than the one that is there.
export GOTOOLCHAIN ?= local
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
# The modules with what they use from elsewhere are apart, so that nobody else pays for that.
GO_MODULES = $(filter-out $(GO_PEERS),$(patsubst %/go.mod,%,$(wildcard go/go.mod go/*/go.mod)))
# Those that build the programs of others are tested once, and without the race detector: that would build them
# three times.
GO_PEERS = $(patsubst %/go.mod,%,$(wildcard go/*peers/go.mod))

.PHONY: build-go lint-go test-go test-go-modules powercut-go

# The C library that a program is linked with, where it is not this machine's: x86_64-unknown-linux-musl. Debian's
# musl-gcc has no unwinder for musl, so Rust's goes into the library.
GO_TARGET ?=
GO_BUILT = $(if $(GO_TARGET),$(TARGET)/$(GO_TARGET)/$(notdir $(C_BUILT)),$(C_BUILT))
RUST_UNWIND = $(shell $(RUSTC) --print sysroot)/lib/rustlib/$(GO_TARGET)/lib/self-contained/libunwind.a

# Without its debug symbols, as `install-c` installs it.
build-go: tools ## what a Go program of this clone links, into go/lib; GO_TARGET=...-musl
	$(if $(GO_TARGET),CC_$(subst -,_,$(GO_TARGET))=musl-gcc) $(C_CARGO) --crate-type staticlib $(GO_TARGET:%=--target %)
	install -d $(GO_LIB)
	install -m 644 $(GO_BUILT)/libvellum_capi.a $(GO_LIB)/libvellum.a
	$(if $(GO_TARGET),printf 'open %s\naddlib %s\nsave\nend\n' $(GO_LIB)/libvellum.a $(RUST_UNWIND) | ar -M)
	$(OBJCOPY) --strip-debug $(GO_LIB)/libvellum.a
	@echo "// Go builds anew when this changes. libvellum.a: $$(sha256sum <$(GO_LIB)/libvellum.a)" >go/built.h

lint-go: ## the formatting of the Go packages, where Go is there
	@command -v gofmt >/dev/null || exit 0; changed=$$(gofmt -l go); [ -z "$$changed" ] || \
	  { echo "make: gofmt would change" $$changed >&2; exit 1; }

test-go: ## the tests of the Go packages, with the race detector and the checks of cgo; GO_TEST=-short as in `test`, or -run=NAME
	@if command -v $(GO) >/dev/null; then $(MAKE) --no-print-directory test-go-modules; \
	else echo "make: go is missing (Go 1.24 or later): the tests of the Go packages are skipped" >&2; \
	  [ "$$VELLUM_REQUIRE" != all ]; fi

# Go does not see that a library has changed, so no result is taken from its cache.
GO_TEST ?=
test-go-modules powercut-go: export CGO_LDFLAGS = -g -O2 -L$(abspath $(TARGET))/go
test-go-modules powercut-go: export VELLUM_POWERCUT = $(abspath $(TARGET))/debug/vellum-powercut
test-go-modules: lint-go ## the same, where Go is there
	@$(MAKE) --no-print-directory build-go C_PROFILE=dev GO_LIB=$(TARGET)/go
	$(PROGRAMS)
	@for module in $(GO_MODULES); do cd $(CURDIR)/$$module && echo "make: $$module" && \
	  $(GO) vet ./... && $(GO) run $(STATICCHECK) ./... && $(GO) test -count=1 -race -skip PowerCut $(GO_TEST) ./... && \
	  GOEXPERIMENT=cgocheck2 GOMAXPROCS=1 $(GO) test -count=1 -short $(GO_TEST) ./... || exit 1; done
	@for module in $(GO_PEERS); do cd $(CURDIR)/$$module && echo "make: $$module" && \
	  $(GO) vet ./... && $(GO) test -count=1 $(GO_TEST) ./... || exit 1; done

# The queue, the Raft store, the collector's storage and a collector, each on disks that are recorded.
GO_CUT = go/vellumqueue go/raftvellum go/otelvellum go/otelpeers
powercut-go: filesystems ##* cut the power under the Go packages, CUTS=1000 times under each (root)
	@$(MAKE) --no-print-directory build-go C_PROFILE=dev GO_LIB=$(TARGET)/go
	$(PROGRAMS)
	@for package in $(GO_CUT); do cd $(CURDIR)/$$package && VELLUM_REQUIRE=all VELLUM_GO_CUTS=$(or $(CUTS),1000) \
	  $(GO) test -count=1 -timeout 3h -v -run PowerCut . || exit 1; done
