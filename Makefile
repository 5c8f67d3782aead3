# Vellum: what a developer runs. `make help` lists it.

CARGO ?= cargo
PREFIX ?= /usr/local
SECONDS_KILL ?= 60
SECONDS_POWERCUT ?= 300
SECONDS ?= 60
TARGET = $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)
BUILT = $(TARGET)/release
# The optional features of the libraries.
FEATURES = vellum/zstd,vellum/gzip,vellum-loggers/log,vellum-loggers/tracing
PYTHON ?= python3
PYTHON_CRATE = crates/vellum-python
VENV = $(TARGET)/venv-python

.PHONY: help help-all build demo bench bench-peers peers bench-python results setup quick test test-workspace test-beside test-python \
  openraft mutants instructions killpoints killpoints-all inject stress worlds powercut powercut-sample zoo deny clean

# A target is listed by the text behind its `##`, with `##*` among those of every day; a group by `##@`.
LIST = { text = $$0; sub(/.*\#\#\*? /, "", text); sub(/:.*/, ""); printf "  %-17s%s\n", $$0, text }
help: ##* list the targets of every day
	@awk '/^[a-z0-9-]+:.*\#\#\* / $(LIST)' $(MAKEFILE_LIST)

help-all: ##* list all targets
	@awk '/^\#\#@ / { print "\n" substr($$0, 5) } /^[a-z0-9-]+:.*\#\#\*? / $(LIST)' $(MAKEFILE_LIST)

##@ Build and try

build: tools ##* build the commands, target/release/vellum*
	$(CARGO) build --release --bin vellum --bin vellum-doctor

demo: build ##* four processes append to one log, one is killed, every record is checked; ten seconds
	$(BUILT)/vellum demo

##@ Measure

bench: build ##* what an append costs, against `write`, `writev` and `fwrite`
	$(BUILT)/vellum bench append

# A workspace of its own, with a lock file of its own: nobody else pays for these dependencies.
PEERS = VELLUM_PEERS_JAVA=$(abspath $(TARGET)/tools/peers-java) $(TARGET)/peers/release/vellum-bench-peers
bench-peers: peers ##* what a commit costs, against five other engines; PEERS_FLAGS=append, latency, processes
	$(PEERS) $(PEERS_FLAGS)

peers: tools peers-java ## build the program of `bench-peers`
	$(CARGO) build --release --locked --manifest-path crates/vellum-peers/Cargo.toml --target-dir $(TARGET)/peers

# With the wheel as it is installed from, in the virtual environment of the tests.
bench-python: wheel $(VENV)/installed ## handlers for Python's `logging` in many processes; PYTHON_FLAGS=...
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-index --find-links $(TARGET)/wheels \
	  --force-reinstall --no-deps vellum-log
	$(VENV)/bin/python $(PYTHON_CRATE)/bench/handlers.py $(PYTHON_FLAGS)

# `vellum bench publish --list` says what is measured, and how long it takes. SUITES names those that are
# measured anew. A run that was stopped continues where it was stopped. QUICK=1 tries the whole chain in
# ten minutes, in target/results-quick; no page gets its figures. The disk needs 30 GiB free. `make site`
# has the page of all suites; the same page is left as target/results.html.
SUITES =
QUICK =
RESULTS = $(if $(QUICK),$(TARGET)/results-quick,docs/results)
results: build $(if $(SUITES),$(if $(filter peers-%,$(SUITES)),peers),peers) ##* measure what docs/results has, SUITES=...: nine hours, on an idle machine (root)
	$(BUILT)/vellum bench publish --target $(TARGET) $(if $(SUITES),--only $(SUITES)) $(if $(QUICK),--quick)
	$(BUILT)/vellum bench report $(RESULTS)/*.json --html $(TARGET)/results.html
	$(if $(QUICK),,VELLUM_BLESS=1 $(CARGO) test --quiet -p vellum-docs --test figures)

##@ Test

setup: tools packages filesystems extras ship-servers $(VENV)/installed ##* install what `make test` needs, and do nothing else

# Most tests wait for processes and disks, so there are more of them at the same time than processors.
export RUST_TEST_THREADS ?= $(shell expr 2 \* $$(nproc))

# Without campaigns, other workspaces, filesystems of their own, and the minute of the bench.
SLOW = processes:: damage:: examples:: faults:: api::round_trip api::random_access durable::damage durable::trust durable::identity \
  ship::restoring text::power
quick: tools lint-tools ##* what to run before each commit, in three minutes: lints, unit tests, rules, the quick half of the tests
	$(CARGO) fmt --all --check
	$(LINTED) $(CARGO) check --workspace --all-targets --features $(FEATURES) --quiet
	$(CARGO) test --workspace --exclude vellum-bench --features $(FEATURES) --lib --quiet
	$(CARGO) test -p vellum-docs --quiet
	$(CARGO) test -p vellum -p vellum-loggers -p vellum-cli --features $(FEATURES) --test it --quiet -- $(SLOW:%=--skip %)

# What has workspaces or flags of its own is built and tested while the tests of this one wait.
test: tools packages filesystems extras lint-code fuzz-check ##* everything: lint, unit, integration, kill, model, power-cut, Python and Go tests
	+@MAKE="$(MAKE)" packaging/beside.sh $(TARGET)/test-beside.log test-workspace test-beside

# Both take about as long. `lint-docs` and `powercut-sample` need what the other has built by then.
test-workspace: ## the part of `test` that is printed at once
	$(CARGO) test --workspace --features $(FEATURES)
	$(MAKE) --no-print-directory test-python
	$(MAKE) --no-print-directory test-go GO_TEST=-short

test-beside: ## the part of `test` that runs beside it
	$(MAKE) --no-print-directory test-ship
	$(MAKE) --no-print-directory openraft
	$(MAKE) --no-print-directory lint-docs
	$(MAKE) --no-print-directory model
	$(MAKE) --no-print-directory powercut-sample

# The programs as `cargo test` has them in this workspace, so that `test` builds none of them twice.
PROGRAMS = $(CARGO) test --workspace --features $(FEATURES) --no-run --quiet

# The package as users get it, but unoptimized; its types against itself, then its behaviour.
test-python: tools $(VENV)/installed ## the tests of the Python package
	rm -rf $(TARGET)/wheels-dev
	$(PROGRAMS)
	CARGO=$(CARGO) packaging/with-command.sh $(TARGET)/debug/vellum $(VENV)/bin/maturin build --profile dev --quiet \
	  --manifest-path $(PYTHON_CRATE)/Cargo.toml --out $(TARGET)/wheels-dev
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $(TARGET)/wheels-dev/*.whl
	cd $(PYTHON_CRATE) && $(VENV)/bin/mypy --strict --cache-dir $(TARGET)/mypy-cache -p vellum_log
	cd $(PYTHON_CRATE) && $(VENV)/bin/python -m mypy.stubtest vellum_log --mypy-config-file pyproject.toml
	$(VENV)/bin/pytest -o cache_dir=$(TARGET)/pytest-cache $(PYTHON_CRATE)/tests

# A workspace of its own, as the peers are. The first build takes two minutes, the tests fifteen seconds.
openraft: tools ## openraft's own test suite on the Raft log of `examples/raft_log`
	$(CARGO) test --manifest-path examples/openraft/Cargo.toml --target-dir $(TARGET)/openraft --locked --quiet

# MUTANTS='format --sample 50': which areas, and how many of each. It goes on where it was stopped; all of them take hours.
mutants: ## change the library in a thousand small ways, and count which the tests notice
	$(CARGO) run -p vellum-mutants -- $(MUTANTS)

# A longer sample than the one in `test`; `killpoints-all` tries every instruction.
killpoints: ##* kill a process at sampled instructions, SECONDS_KILL=60
	$(CARGO) run --release -p vellum-testkit --bin vellum-killpoints -- --seconds $(SECONDS_KILL)

instructions: ## count the instructions of an append, in a build with optimizations
	$(CARGO) test --release -p vellum-testkit --test system_calls

killpoints-all: ## kill a process at every instruction of every path (long)
	$(CARGO) run --release -p vellum-testkit --bin vellum-killpoints -- --all

inject: ## let every system call of every path fail with every error (half an hour)
	$(CARGO) run --release -p vellum-testkit --bin vellum-killpoints -- --inject all --all

stress: export VELLUM_STRESS_SECONDS ?= 600
stress: ##* many processes with random kills, VELLUM_STRESS_SECONDS=600
	$(CARGO) test --release -p vellum --test it processes -- --nocapture

# What each world promises is in ARCHITECTURE.md; a sample is in `test`. All of the storage takes an hour.
SECONDS_STORAGE ?=
worlds: tools filesystems ## logs among forks, limits, users, containers, copies, full disks and failing storage, SECONDS_STORAGE=600 (root)
	$(CARGO) run --release -p vellum-testkit --bin vellum-worlds -- --pairs
	$(BUILT)/vellum-worlds storage $(if $(SECONDS_STORAGE),--seconds $(SECONDS_STORAGE))

# The disk is recorded under `vellum-stress`, then built as a power cut at any write leaves it.
powercut: tools filesystems ##* cut the power at any write on ext4, XFS and btrfs, SECONDS_POWERCUT=300 each (root)
	$(CARGO) build --release --bin vellum-stress --bin vellum-powercut
	$(BUILT)/vellum-powercut --profile long --seconds $(SECONDS_POWERCUT)

# 77: this machine cannot do it; where VELLUM_REQUIRE=all that is another status.
powercut-sample: tools filesystems ##* a few hundred power cuts, each opened in two boots, as `make test` runs them (root)
	$(PROGRAMS)
	@$(TARGET)/debug/vellum-powercut --profile sample || [ $$? -eq 77 ]

zoo: tools filesystems ## `vellum doctor --lies` on lying and honest disks, CUTS=50 power cuts each (root)
	$(CARGO) run -p vellum-testkit --bin vellum-lies -- --cuts $(or $(CUTS),50)

# What deny.toml says of the dependencies. DENY=advisories asks for known faults, and fetches their list.
DENY ?= --offline bans licenses sources
deny: tools $(TARGET)/tools/bin/cargo-deny ## licences, versions and sources of the dependencies; DENY=advisories: their known faults
	PATH=$(TARGET)/tools/bin:$$PATH $(CARGO) deny $(filter --%,$(DENY)) check $(filter-out --%,$(DENY))

clean: ##* remove everything that was built
	$(CARGO) clean

include crates/vellum-docs/lint.mk
include crates/vellum/models.mk
include fuzz/fuzz.mk
include crates/vellum-ship/ship.mk
include packaging/tools.mk
include packaging/install.mk
include crates/vellum-capi/install/install.mk
include packaging/dist.mk
include go/go.mk
