# What is published, and the checks before that. Included by the Makefile at the root.

##@ Packages

DIST_VENV = $(TARGET)/venv-dist
TOOLS = $(TARGET)/tools/bin
TOOL_VERSIONS = cargo-deny@0.20.2 cargo-cyclonedx@0.5.9 cargo-semver-checks@0.51.0
PUBLISHED = vellum-sys vellum-files vellum vellum-advice vellum-loggers vellum-parallel vellum-ship-figures vellum-capi vellum-command vellum-zoo vellum-bench vellum-doctor vellum-cli
# The interfaces that others build on.
STABLE = vellum vellum-advice vellum-loggers vellum-parallel vellum-ship-figures vellum-capi
MSRV = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
# The revision that the interfaces are compared with: the newest release.
SEMVER_BASE ?= $(shell git describe --tags --abbrev=0 2>/dev/null)

.PHONY: dist dist-check dist-tools test-aarch64 release-check crates semver msrv compat

dist: tools dist-tools $(TOOLS)/cargo-cyclonedx ## wheels, Debian packages, archives, checksums and SBOMs, into target/dist (long)
	packaging/dist.sh

dist-check: ## install what `make dist` made in clean roots, and run it (root; fetches Debian's packages)
	packaging/check.sh

test-aarch64: tools dist-tools ## the tests of the core, built for aarch64, under qemu-user (root; half an hour); TESTS=NAME
	FEATURES=$(FEATURES) packaging/test-aarch64.sh $(TESTS)

release-check: crates deny msrv semver ## what must hold before a release: packages, licences, oldest Rust, interfaces

# Built from the packages alone, as a registry hands them out.
crates: tools ## pack the crates that are published, and build each from its package
	$(CARGO) package --locked --allow-dirty $(addprefix --package ,$(PUBLISHED)) --target-dir $(TARGET)/packages

msrv: tools ## build the crates that are published with the oldest Rust that they promise
	@$(CARGO) +$(MSRV) --version >/dev/null 2>&1 || \
	  { echo "make: Rust $(MSRV) is missing: rustup toolchain install $(MSRV) --profile minimal" >&2; exit 1; }
	$(CARGO) +$(MSRV) check --quiet --locked --features $(FEATURES) $(addprefix --package ,$(PUBLISHED)) --target-dir $(TARGET)/msrv

semver: tools $(if $(SEMVER_BASE),$(TOOLS)/cargo-semver-checks) ## compare the interfaces with the newest release; SEMVER_BASE=REVISION
	@[ -n "$(SEMVER_BASE)" ] || echo "make: no release is tagged yet, so no interface is promised: SEMVER_BASE=REVISION compares"
	@[ -z "$(SEMVER_BASE)" ] || PATH=$(TOOLS):$$PATH $(CARGO) semver-checks --baseline-rev $(SEMVER_BASE) \
	  $(addprefix --package ,$(STABLE))

compat: tools ## let an older revision and this one append to one log: OLD=REVISION
	@[ -n "$(OLD)" ] || { echo "make: say which revision: make compat OLD=REVISION" >&2; exit 1; }
	PYTHON=$(PYTHON) packaging/compat.sh $(OLD)

# Cargo's own tools, built once.
$(TOOLS)/%: | tools
	@echo "make: $* is missing: building it into $(TARGET)/tools, once; this takes some minutes"
	env -u CARGO_TARGET_DIR $(CARGO) install --quiet --locked --root $(TARGET)/tools $(filter $*@%,$(TOOL_VERSIONS))

dist-tools: $(DIST_VENV)/installed ## what builds for the other architecture and for other C libraries
	@rustup target add $(foreach arch,x86_64 aarch64,$(arch)-unknown-linux-gnu $(arch)-unknown-linux-musl) 2>/dev/null || \
	  { echo "make: rustup is missing, or cannot get the targets of $@" >&2; exit 1; }

$(DIST_VENV)/installed: packaging/requirements.txt | python-tools
	@echo "make: installing zig, cargo-zigbuild and maturin into $(DIST_VENV)"
	$(PYTHON) -m venv $(DIST_VENV)
	$(DIST_VENV)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@
