# Vellum: the commands of the house. Each says in one line what is missing, or installs it.

CARGO ?= cargo
PREFIX ?= /usr/local
SECONDS_KILL ?= 60
SECONDS ?= 60

.PHONY: help build demo test lint model killpoints killpoints-all stress fuzz bench install clean tools

help:
	@echo "make demo            four processes append to one log, one is killed, all is verified"
	@echo "make test            everything: lint, unit, integration, kill and model tests"
	@echo "make lint            formatting, clippy, documentation"
	@echo "make bench           the three published settings, all ways of appending"
	@echo "make killpoints-all  kill a process at every instruction of every path (long)"
	@echo "make stress          many processes with random kills, VELLUM_STRESS_SECONDS=600"
	@echo "make fuzz            damage logs in any way, SECONDS=60 for each of three targets"
	@echo "make install         the command into PREFIX/bin (PREFIX=$(PREFIX))"

build: tools
	$(CARGO) build --release --bin vellum

demo: build
	target/release/vellum demo

bench: build
	target/release/vellum bench append

test: tools lint
	$(CARGO) test --workspace
	$(MAKE) --no-print-directory model

# The protocol's own code under a model checker, with death at any step.
model:
	RUSTFLAGS="--cfg shuttle" $(CARGO) test --release -p vellum --lib --target-dir target/model model

# A longer sample than the one in `test`; `killpoints-all` tries every instruction.
killpoints:
	$(CARGO) run --release -p vellum-testkit --bin vellum-killpoints -- --seconds $(SECONDS_KILL)

killpoints-all:
	$(CARGO) run --release -p vellum-testkit --bin vellum-killpoints -- --all

stress: export VELLUM_STRESS_SECONDS ?= 600
stress:
	$(CARGO) test --release -p vellum --test it processes -- --nocapture

# What is new goes to target/fuzz-corpus; `test` replays what is kept in fuzz/corpus.
fuzz: tools
	@$(CARGO) fuzz --version >/dev/null 2>&1 || \
	  { echo "make: cargo-fuzz is missing: cargo install cargo-fuzz" >&2; exit 1; }
	@$(CARGO) +nightly --version >/dev/null 2>&1 || \
	  { echo "make: a nightly toolchain is missing: rustup toolchain install nightly" >&2; exit 1; }
	@for target in headers recovery repair; do \
	  mkdir -p target/fuzz-corpus/$$target && \
	  $(CARGO) +nightly fuzz run $$target target/fuzz-corpus/$$target fuzz/corpus/$$target -- \
	    -max_total_time=$(SECONDS) -max_len=128 -timeout=60 -rss_limit_mb=1024 || exit 1; \
	done

lint: tools
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet

install: build
	install -D -m 755 target/release/vellum $(DESTDIR)$(PREFIX)/bin/vellum

clean:
	$(CARGO) clean

tools:
	@command -v $(CARGO) >/dev/null || { echo "make: cargo is missing: install Rust 1.88 or later" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "make: cc is missing: install a C compiler" >&2; exit 1; }
	@$(CARGO) fmt --version >/dev/null 2>&1 && $(CARGO) clippy --version >/dev/null 2>&1 || \
	  { echo "make: rustfmt or clippy is missing: rustup component add rustfmt clippy" >&2; exit 1; }
