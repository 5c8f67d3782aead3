# Vellum: the commands of the house. Each says in one line what is missing, or installs it.

CARGO ?= cargo
PREFIX ?= /usr/local
SECONDS_KILL ?= 60
SECONDS_POWERCUT ?= 300
POWERCUT_RECORDS ?= 2000
SECONDS ?= 60
TARGET = $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)
BUILT = $(TARGET)/release
# What the library has only where it is asked for.
FEATURES = vellum/log,vellum/tracing,vellum/zstd
PYTHON ?= python3
PYTHON_CRATE = crates/vellum-python
VENV = $(TARGET)/venv-python

.PHONY: help build demo test lint model model-long fuzz-check killpoints killpoints-all inject stress powercut \
  powercut-sample fuzz worlds bench bench-peers bench-python install clean tools lint-tools filesystems extras wheel \
  test-python python-tools

help:
	@echo "make demo            four processes append to one log, one is killed, all is verified"
	@echo "make test            everything: lint, unit, integration, kill and model tests"
	@echo "make lint            formatting, clippy, documentation"
	@echo "make bench           the three published settings, all ways of appending"
	@echo "make bench-peers     what a commit costs, against five other engines (PEERS_FLAGS=...)"
	@echo "                     with PEERS_FLAGS=append: what a log line costs, against other loggers"
	@echo "make bench-python    handlers for Python's logging in many processes (PYTHON_FLAGS=...)"
	@echo "make model-long      the protocol under a model checker, all models (long)"
	@echo "make killpoints-all  kill a process at every instruction of every path (long)"
	@echo "make inject          have every system call of every path fail (long)"
	@echo "make stress          many processes with random kills, VELLUM_STRESS_SECONDS=600"
	@echo "make powercut        cut the power at any write on ext4, XFS and btrfs, under framed and text logs,"
	@echo "                     SECONDS_POWERCUT=300 for each (root)"
	@echo "make worlds          logs among forks, limits, users, containers and copies, in each and in pairs (root)"
	@echo "make fuzz            damage logs in any way, SECONDS=60 for each of three targets"
	@echo "make wheel           the Python package, into $(TARGET)/wheels"
	@echo "make test-python     the tests of the Python package"
	@echo "make install         the command with man pages and completions, and the library for C, into PREFIX=$(PREFIX)"
	@echo "make install-c       the library for C alone: header, libvellum, pkg-config and CMake files"

build: tools
	$(CARGO) build --release --bin vellum

demo: build
	$(BUILT)/vellum demo

bench: build
	$(BUILT)/vellum bench append

# A workspace of its own, with a lock file of its own: nobody else pays for these dependencies.
bench-peers: tools
	$(CARGO) run --release --manifest-path crates/vellum-peers/Cargo.toml -- $(PEERS_FLAGS)

# With the wheel as it is installed from, in the virtual environment of the tests.
bench-python: wheel
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-index --find-links $(TARGET)/wheels \
	  --force-reinstall --no-deps vellum-log
	$(VENV)/bin/python $(PYTHON_CRATE)/bench/handlers.py $(PYTHON_FLAGS)

test: tools filesystems extras lint fuzz-check
	$(CARGO) test --workspace --features $(FEATURES)
	$(MAKE) --no-print-directory test-python
	$(MAKE) --no-print-directory model
	$(MAKE) --no-print-directory powercut-sample

# A wheel for this machine's C library and every Python from 3.10 on.
wheel: tools $(VENV)/installed
	CARGO=$(CARGO) $(VENV)/bin/maturin build --release --manifest-path $(PYTHON_CRATE)/Cargo.toml --out $(TARGET)/wheels

# The package as users get it, but unoptimized; its types against itself, then its behaviour.
test-python: tools $(VENV)/installed
	rm -rf $(TARGET)/wheels-dev
	CARGO=$(CARGO) $(VENV)/bin/maturin build --profile dev --quiet --manifest-path $(PYTHON_CRATE)/Cargo.toml \
	  --out $(TARGET)/wheels-dev
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $(TARGET)/wheels-dev/*.whl
	cd $(PYTHON_CRATE) && $(VENV)/bin/mypy --strict --cache-dir $(TARGET)/mypy-cache -p vellum_log
	cd $(PYTHON_CRATE) && $(VENV)/bin/python -m mypy.stubtest vellum_log --mypy-config-file pyproject.toml
	$(VENV)/bin/pytest -o cache_dir=$(TARGET)/pytest-cache $(PYTHON_CRATE)/tests

$(VENV)/installed: $(PYTHON_CRATE)/requirements.txt | python-tools
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check uwsgi==2.0.31 || \
	  { echo "make: uwsgi can't be built here (it needs a C compiler and python3-dev): its tests are skipped"; \
	    [ "$$VELLUM_REQUIRE" != all ]; }
	@touch $@

# Python itself is not installed; the part of it that Debian leaves out is, where it can be.
python-tools:
	@command -v $(PYTHON) >/dev/null || \
	  { echo "make: $(PYTHON) is missing: install Python 3.10 or later (Debian: apt-get install python3-venv)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "make: $(PYTHON) is too old: install Python 3.10 or later, or say which: PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { [ "$$(id -u)" -eq 0 ] && echo "make: installing python3-venv" && \
	    apt-get install --yes --quiet python3-venv >/dev/null; } || \
	  { echo "make: $(PYTHON) lacks venv: apt-get install python3-venv" >&2; exit 1; }

# The protocol's own code under a model checker, with death at any step.
model:
	RUSTFLAGS="--cfg shuttle" $(CARGO) test --release -p vellum --lib --target-dir target/model model

# The models too that take minutes each.
model-long:
	RUSTFLAGS="--cfg shuttle" $(CARGO) test --release -p vellum --lib --target-dir target/model model -- --include-ignored

# A longer sample than the one in `test`; `killpoints-all` tries every instruction.
killpoints:
	$(CARGO) run --release -p vellum-testkit --bin vellum-killpoints -- --seconds $(SECONDS_KILL)

killpoints-all:
	$(CARGO) run --release -p vellum-testkit --bin vellum-killpoints -- --all

# Every error that any system call can give, at each call of every case (half an hour).
inject:
	$(CARGO) run --release -p vellum-testkit --bin vellum-killpoints -- --inject all --all

stress: export VELLUM_STRESS_SECONDS ?= 600
stress:
	$(CARGO) test --release -p vellum --test it processes -- --nocapture

# What each world promises is in docs/worlds.md; a sample is in `test`.
worlds: tools filesystems
	$(CARGO) run --release -p vellum-testkit --bin vellum-worlds -- --pairs

# Text logs that go on in new files often.
POWERCUT_TEXT = --layout text --segment-bytes 16384 --rotate-bytes 4096 --compress yes

# Framed logs of several processes, whose oldest segments go and are used again.
POWERCUT_CROWD = --segment-bytes 65536 --trim-every 40 --threads 3 --processes 2 --bytes 20-9000 --batch 3 --checkpoint-every 25 \
  --prepare-every 15
POWERCUT_LONG = $(BUILT)/vellum-powercut --seconds $(SECONDS_POWERCUT) \
  --check '$(BUILT)/vellum-stress --check --torn {dir}/log' --work '$(BUILT)/vellum-stress {dir}/log

# The disk is recorded under `vellum-stress`, then built as a power cut at any write leaves it.
powercut: tools filesystems
	$(CARGO) build --release --bin vellum-stress --bin vellum-powercut
	$(POWERCUT_LONG) --records $(POWERCUT_RECORDS)' --prefix --nested
	$(POWERCUT_LONG) --records $(POWERCUT_RECORDS) $(POWERCUT_CROWD)' --nested
	$(POWERCUT_LONG) --records $(POWERCUT_RECORDS) $(POWERCUT_CROWD) --fill mapped' --nested
	$(POWERCUT_LONG) --records $(POWERCUT_RECORDS) --commit 5 --retain-files 9 $(POWERCUT_TEXT)' --prefix --nested

# A few hundred cuts on each filesystem, in the settings that differ most. The commands are those that
# the tests use, so that `test` has nothing to build here. 77: this machine cannot do it; where
# VELLUM_REQUIRE=all that is another status.
POWERCUT = $(TARGET)/debug/vellum-powercut --check '$(TARGET)/debug/vellum-stress --check --torn {dir}/log' \
  --work '$(TARGET)/debug/vellum-stress {dir}/log
powercut-sample: tools filesystems
	$(CARGO) test --workspace --features $(FEATURES) --no-run --quiet
	@$(POWERCUT) --records 150 --segment-bytes 16384 --trim-every 20' --points 60 --at-least 30 --prefix --nested || [ $$? -eq 77 ]
	@$(POWERCUT) --records 400 --segment-bytes 32768 --trim-every 40 --threads 3 --processes 2 --bytes 20-9000' \
	  --points 150 --at-least 75 || [ $$? -eq 77 ]
	@$(POWERCUT) --records 200 --segment-bytes 65536 --threads 3 --bytes 20-3000 --fill pwrite' \
	  --points 60 --at-least 30 || [ $$? -eq 77 ]
	@$(POWERCUT) --records 150 $(POWERCUT_TEXT) --bytes 20-900 --commit 3 --retain-files 5' \
	  --points 20 --at-least 10 --prefix --nested || [ $$? -eq 77 ]
	@$(POWERCUT) --records 300 $(POWERCUT_TEXT) --threads 2 --processes 2 --commit 5 --retain-files 8 --fill pwrite' \
	  --points 30 --at-least 15 || [ $$? -eq 77 ]
	@for failure in write:90 flush:70 lose:70; do \
	  $(POWERCUT) --records 200 --segment-bytes 65536 --threads 3 --bytes 20-3000' \
	    --points 40 --at-least 20 --fs ext4,xfs --fail $$failure || [ $$? -eq 77 ] || exit 1; done

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

# The targets of the fuzzer still build, where the toolchain that they need is there; `test` replays what
# they have found in any case.
fuzz-check: tools
	@if $(CARGO) +nightly --version >/dev/null 2>&1; then \
	  $(CARGO) +nightly check --quiet --manifest-path fuzz/Cargo.toml --target-dir $(TARGET)/fuzz-check; \
	else echo "make: no nightly toolchain: the fuzz targets are not built" >&2; fi

lint: tools lint-tools
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --features $(FEATURES) -- -D warnings
	$(CARGO) clippy -p vellum --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet --features $(FEATURES)

include crates/vellum-capi/install/install.mk

SHARE = $(DESTDIR)$(PREFIX)/share
install: build install-c
	install -D -s -m 755 $(BUILT)/vellum $(DESTDIR)$(PREFIX)/bin/vellum
	$(BUILT)/vellum man $(SHARE)/man/man1
	install -d $(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions $(SHARE)/fish/vendor_completions.d
	$(BUILT)/vellum completions bash >$(SHARE)/bash-completion/completions/vellum
	$(BUILT)/vellum completions zsh >$(SHARE)/zsh/site-functions/_vellum
	$(BUILT)/vellum completions fish >$(SHARE)/fish/vendor_completions.d/vellum.fish

clean:
	$(CARGO) clean

tools:
	@command -v $(CARGO) >/dev/null || { echo "make: cargo is missing: install Rust 1.88 or later" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "make: cc is missing: install a C compiler" >&2; exit 1; }

lint-tools:
	@$(CARGO) fmt --version >/dev/null 2>&1 && $(CARGO) clippy --version >/dev/null 2>&1 || \
	  { echo "make: rustfmt or clippy is missing: rustup component add rustfmt clippy" >&2; exit 1; }

# What makes the filesystems is installed where it is missing and can be.
filesystems:
	@PATH=$$PATH:/usr/sbin:/sbin; for pair in mkfs.ext4:e2fsprogs mkfs.xfs:xfsprogs mkfs.btrfs:btrfs-progs; do \
	  command -v $${pair%:*} >/dev/null || missing="$$missing $${pair#*:}"; \
	done; \
	[ -z "$$missing" ] || { echo "make: installing$$missing"; apt-get install --yes --quiet $$missing; } || \
	  { echo "make: missing:$$missing" >&2; exit 1; }

# What some tests look at the work with: a browser for the HTML report, a FUSE filesystem, fio, and what
# C programs are built and watched with. They are installed where they are missing and can be; without
# them those tests are skipped, and say so; with VELLUM_REQUIRE=all that is a failure.
extras:
	@for pair in chromium:chromium bindfs:bindfs fio:fio cmake:cmake pkg-config:pkg-config \
	  c++:g++ valgrind:valgrind zstd:zstd; do \
	  command -v $${pair%:*} >/dev/null || missing="$$missing $${pair#*:}"; \
	done; \
	[ -n "$$missing" ] || exit 0; \
	install="apt-get install --yes --quiet --no-install-recommends $$missing"; \
	[ "$$(id -u)" -ne 0 ] || echo "make: installing$$missing"; \
	{ [ "$$(id -u)" -eq 0 ] && { $$install || { apt-get update --quiet && $$install; }; }; } >/dev/null 2>&1 || \
	  { echo "make: missing:$$missing; the tests that need them are skipped" >&2; [ "$$VELLUM_REQUIRE" != all ]; }
