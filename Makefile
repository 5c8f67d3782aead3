# Vellum: what a developer runs. `make help` lists it. A target that lacks something says in one line what
# that is, or says that it installs it and does so.

CARGO ?= cargo
PREFIX ?= /usr/local
SECONDS_KILL ?= 60
SECONDS_POWERCUT ?= 300
POWERCUT_RECORDS ?= 2000
SECONDS ?= 60
TARGET = $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)
BUILT = $(TARGET)/release
# The optional features of the library.
FEATURES = vellum/log,vellum/tracing,vellum/zstd
PYTHON ?= python3
PYTHON_CRATE = crates/vellum-python
VENV = $(TARGET)/venv-python

.PHONY: help build demo test openraft lint deny model model-long orders mutants fuzz-check killpoints killpoints-all inject stress powercut \
  powercut-sample fuzz worlds bench bench-peers bench-python results install uninstall clean tools lint-tools \
  filesystems extras wheel test-python python-tools packages setup site ship test-ship test-ship-servers ship-faults \
  ship-servers ship-servers-all kafka-server test-ship-kafka peers peers-java

# A target is listed by the text behind its `##`, a group by `##@`.
help: ## list all targets
	@awk '/^##@ / { print "\n" substr($$0, 5) } \
	  /^[a-z0-9-]+:.*## / { text = $$0; sub(/.*## /, "", text); sub(/:.*/, ""); printf "  %-16s %s\n", $$0, text }' \
	  $(MAKEFILE_LIST)

##@ Build and try

build: tools ## build the command, target/release/vellum
	$(CARGO) build --release --bin vellum

# A workspace of its own, as the peers are.
SHIP = --manifest-path crates/vellum-ship/Cargo.toml --target-dir $(TARGET)/ship --locked
# SHIP_FEATURES=kafka adds topics of Kafka; kafka-ssl those with TLS, which needs Perl and minutes more.
SHIP_FEATURES ?=
ship: tools ## build vellum-ship, which ships logs to object storage: target/ship/release/vellum-ship; SHIP_FEATURES=kafka
	$(CARGO) build --release $(SHIP) $(if $(SHIP_FEATURES),--features $(SHIP_FEATURES))

demo: build ## four processes append to one log, one is killed, every record is checked; ten seconds
	$(BUILT)/vellum demo

##@ Measure

bench: build ## what an append costs, against `write`, `writev` and `fwrite`
	$(BUILT)/vellum bench append

# A workspace of its own, with a lock file of its own: nobody else pays for these dependencies.
PEERS = VELLUM_PEERS_JAVA=$(abspath $(TARGET)/tools/peers-java) $(TARGET)/peers/release/vellum-bench-peers
bench-peers: peers ## what a commit costs, against five other engines; PEERS_FLAGS=append, latency, processes
	$(PEERS) $(PEERS_FLAGS)

peers: tools peers-java ## build the program of `bench-peers`
	$(CARGO) build --release --locked --manifest-path crates/vellum-peers/Cargo.toml --target-dir $(TARGET)/peers

# `latency` and `processes` have systems in Java among the cases, or say that these are missing.
peers-java: ## install Chronicle Queue and Aeron into target/tools, if they are missing and Java and Maven are there
	@$(MAKE) --no-print-directory $(TARGET)/tools/peers-java || \
	  echo "make: Chronicle Queue and Aeron are missing (they need Java 17 and Maven)" >&2

$(TARGET)/tools/peers-java: crates/vellum-peers/java/pom.xml crates/vellum-peers/java/Peers.java
	@command -v java javac mvn >/dev/null && java -version 2>&1 | grep -q 'version "\(1[7-9]\|[2-9][0-9]\)'
	@echo "make: fetching Chronicle Queue and Aeron into $(TARGET)/tools, once"
	rm -rf $@.new
	mvn --quiet --batch-mode --file $< dependency:copy-dependencies -DincludeScope=runtime \
	  -DoutputDirectory=$(abspath $@.new)
	javac -nowarn -cp '$@.new/*' -d $@.new/classes $(word 2,$^)
	rm -rf $@
	mv $@.new $@

# With the wheel as it is installed from, in the virtual environment of the tests.
bench-python: wheel $(VENV)/installed ## handlers for Python's `logging` in many processes; PYTHON_FLAGS=...
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-index --find-links $(TARGET)/wheels \
	  --force-reinstall --no-deps vellum-log
	$(VENV)/bin/python $(PYTHON_CRATE)/bench/handlers.py $(PYTHON_FLAGS)

# What docs/results has, a file for each suite, and the tables of the pages that quote them. SUITES names
# those that are measured anew. Behind each is about how many minutes it takes. A run that was stopped
# continues with the suite in which it was stopped: what is done waits in target/measured. The disk needs
# 30 GiB free. `make site` has the page of all suites; the same page is left as target/results.html.
SUITES_ALL = append append-sizes saturate latency commit commit-memory sync big-sync \
  write write-tmpfs write-xfs write-btrfs write-btrfs-raid0 write-striping image image-memory image-long image-filled \
  read scale peers-append peers-latency peers-commit peers-loggers
SUITES = $(SUITES_ALL)
results-append = append --rounds 5 # 10
results-append-sizes = append --rounds 15 --ways vellum-framed,vellum-text,write --setting 4x40000x1024 \
  --setting 4x4000x16384 --setting 4x1500x65536 --setting 4x100x1048576 # 1
results-saturate = append --saturate --ways vellum-framed,vellum-text,write --seconds 12 --rounds 5 # 6
results-latency = latency --seconds 0.5 --rounds 3 # 9
results-commit = commit # 8
results-commit-memory = commit --fs ext4,xfs,btrfs # 22
results-sync = sync --dir . --fs ext4,xfs,btrfs # 10
results-big-sync = sync --cases one-sync --big 10G --rounds 1 # 1
results-write = write # 33
results-write-tmpfs = write --fs tmpfs # 22
results-write-xfs = write --fs xfs # 22
results-write-btrfs = write --fs btrfs # 57
results-write-btrfs-raid0 = write --fs btrfs-raid0 # 60
results-write-striping = write --fs btrfs,btrfs-raid0 --tables parallel --ways pwrite,files \
  --states emptied,preallocated --threads 1,2,4 # 3
results-image = image --states $(RAW_IMAGES),$(QEMU_IMAGES) # 37
results-image-memory = image --fs ext4,xfs --states $(RAW_IMAGES) # 22
results-image-long = image --states metadata,falloc,qcow2-off,qcow2-falloc --engines io_uring --seconds 120 # 27
results-image-filled = image --fs ext4,xfs --fill 95% --states off,metadata,falloc --engines io_uring # 10
results-read = read # 2
results-scale = scale # 2
results-peers-append = processes --rounds 5 # 10
results-peers-latency = latency --reader spinning --rounds 5 # 10
results-peers-commit = --bytes 256,4096,1048576 --threads 1,4,16 --prepared yes --rounds 5 # 10
results-peers-loggers = append --rounds 5 # 5
RAW_IMAGES = off,off-without-zero-range,metadata,falloc,full,extsize-64k,extsize-1m
QEMU_IMAGES = qcow2-off,qcow2-metadata,qcow2-falloc,qcow2-full,qemu-raw
# QUICK=1 tries the whole chain in ten minutes, in target/results-quick. Its figures are worth nothing, so no
# page gets them. 10 GiB are not written.
QUICK =
RESULTS = $(if $(QUICK),$(TARGET)/results-quick,docs/results)
MEASURED = $(TARGET)/measured$(if $(QUICK),-quick)
known = $(or $(results-$(1)),$(error there is no suite $(1): SUITES is some of $(SUITES_ALL)))
is-peers = $(filter peers-%,$(1))
quick-peers = $(subst --rounds 5,--rounds 1,$(known))
quick = $(if $(is-peers),$(quick-peers),$(subst --big 10G,--big 64M,$(known)) --quick)
arguments = $(strip $(if $(QUICK),$(quick),$(known)))
program = $(if $(is-peers),$(PEERS),$(BUILT)/vellum bench)
# A machine that has just built is not idle. After ten minutes it never will be, and the result says so:
# `vellum bench` warns above the same load.
idle = for turn in $$(seq 60); do awk '{ exit $$1 >= 0.5 }' /proc/loadavg && break; \
  [ $$turn != 1 ] || echo "make: waiting until the load average is below 0.5, ten minutes at most"; sleep 10; done
# Each suite has a line of its own, so that make stops at the first one that fails. The results do not name this directory.
define measure
@[ -s $(MEASURED)/$(1).json ] || { $(if $(QUICK),,$(idle);) echo "make: $(if $(is-peers),vellum-bench-peers,vellum bench) $(arguments)" && \
  $(program) $(arguments) --json $(MEASURED)/$(1).part && \
  sed -i 's|$(CURDIR)/*||g' $(MEASURED)/$(1).part && \
  mv $(MEASURED)/$(1).part $(MEASURED)/$(1).json; }

endef
results: build $(if $(call is-peers,$(SUITES)),peers) ## measure what docs/results has, SUITES=...: nine hours, on an idle machine (root); QUICK=1 tries it
	mkdir -p $(MEASURED) $(RESULTS)
	$(foreach suite,$(SUITES),$(call measure,$(suite)))
	mv $(SUITES:%=$(MEASURED)/%.json) $(RESULTS)
	$(BUILT)/vellum bench report $(RESULTS)/*.json --html $(TARGET)/results.html
	$(if $(QUICK),,VELLUM_BLESS=1 $(CARGO) test --quiet -p vellum-docs --test figures)

##@ Test

setup: tools packages filesystems extras ship-servers $(VENV)/installed ## install what `make test` needs, and do nothing else

test: tools packages filesystems extras lint fuzz-check ## everything: lint, unit, integration, kill, model, power-cut and Python tests
	$(CARGO) test --workspace --features $(FEATURES)
	$(MAKE) --no-print-directory test-python
	$(MAKE) --no-print-directory openraft
	$(MAKE) --no-print-directory test-ship
	$(MAKE) --no-print-directory model
	$(MAKE) --no-print-directory powercut-sample

# The package as users get it, but unoptimized; its types against itself, then its behaviour.
test-python: tools $(VENV)/installed ## the tests of the Python package
	rm -rf $(TARGET)/wheels-dev
	CARGO=$(CARGO) $(VENV)/bin/maturin build --profile dev --quiet --manifest-path $(PYTHON_CRATE)/Cargo.toml \
	  --out $(TARGET)/wheels-dev
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $(TARGET)/wheels-dev/*.whl
	cd $(PYTHON_CRATE) && $(VENV)/bin/mypy --strict --cache-dir $(TARGET)/mypy-cache -p vellum_log
	cd $(PYTHON_CRATE) && $(VENV)/bin/python -m mypy.stubtest vellum_log --mypy-config-file pyproject.toml
	$(VENV)/bin/pytest -o cache_dir=$(TARGET)/pytest-cache $(PYTHON_CRATE)/tests

# A workspace of its own, as the peers are. The first build takes two minutes, the tests fifteen seconds.
openraft: tools ## openraft's own test suite on the Raft log of `examples/raft_log`
	$(CARGO) test --manifest-path crates/vellum-openraft/Cargo.toml --target-dir $(TARGET)/openraft --locked --quiet

# Clippy is the compiler here, so the three hundred dependencies are built once: `cargo clippy` would
# check all of them again, which takes two minutes. It is the same compiler, with lints.
LINTED = RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
test-ship: tools lint-tools ship-servers ## shipping: its model, stores, reading, kills
	$(CARGO) fmt --manifest-path crates/vellum-ship/Cargo.toml --check
	$(LINTED) $(CARGO) test $(SHIP) --quiet

# Kills of each campaign, every how manieth system call, and moments of each recording.
ship-faults: tools ship-servers ## kill shippers, writers and machines for long: over a thousand kills, each system call, each moment (half an hour)
	VELLUM_SHIP_KILLS=150 VELLUM_SHIP_STOPS=1 VELLUM_SHIP_CUTS=100 $(CARGO) test --release $(SHIP) --test faults --test powercut

test-ship-servers: tools ship-servers-all ## the contract of stores on every server that can be had: versitygw, moto, azurite
	$(CARGO) test $(SHIP) --test stores servers -- --include-ignored

# Not in `test`: librdkafka takes minutes to build, and a broker of Java is slow. VELLUM_SHIP_KILLS=30.
test-ship-kafka: tools kafka-server ## sending to a topic of Kafka: a real broker, kills (Java 17, Maven)
	$(CARGO) clippy $(SHIP) --features kafka --all-targets -- -D warnings
	$(CARGO) test $(SHIP) --features kafka --quiet --lib -- kafka
	$(CARGO) test $(SHIP) --features kafka --quiet --test kafka

# The protocol's own code under two model checkers.
WEAK = RUSTFLAGS="--cfg loom" $(CARGO) test --release -p vellum --lib --target-dir target/weak
model: ## the protocol under two model checkers: death at any step, and weak memory
	RUSTFLAGS="--cfg shuttle" $(CARGO) test --release -p vellum --lib --target-dir target/model model
	$(WEAK) weak::

model-long: ## the same with the models that take minutes
	RUSTFLAGS="--cfg shuttle" $(CARGO) test --release -p vellum --lib --target-dir target/model model -- --include-ignored
	$(WEAK) weak:: -- --include-ignored

orders: ## weaken each memory order of the protocol by one step, and see which model fails (docs/orders.md)
	$(PYTHON) crates/vellum/tests/orders/weaken.py

# MUTANTS='format --sample 50': which areas, and how many of each. It goes on where it was stopped; all of them take hours.
mutants: ## change the library in a thousand small ways, and count which the tests notice
	$(CARGO) run -p vellum-mutants -- $(MUTANTS)

# A longer sample than the one in `test`; `killpoints-all` tries every instruction.
killpoints: ## kill a process at sampled instructions, SECONDS_KILL=60
	$(CARGO) run --release -p vellum-testkit --bin vellum-killpoints -- --seconds $(SECONDS_KILL)

killpoints-all: ## kill a process at every instruction of every path (long)
	$(CARGO) run --release -p vellum-testkit --bin vellum-killpoints -- --all

inject: ## let every system call of every path fail with every error (half an hour)
	$(CARGO) run --release -p vellum-testkit --bin vellum-killpoints -- --inject all --all

stress: export VELLUM_STRESS_SECONDS ?= 600
stress: ## many processes with random kills, VELLUM_STRESS_SECONDS=600
	$(CARGO) test --release -p vellum --test it processes -- --nocapture

# What each world promises is in docs/worlds.md; a sample is in `test`. All of the storage takes an hour.
SECONDS_STORAGE ?=
worlds: tools filesystems ## logs among forks, limits, users, containers, copies, full disks and failing storage, SECONDS_STORAGE=600 (root)
	$(CARGO) run --release -p vellum-testkit --bin vellum-worlds -- --pairs
	$(BUILT)/vellum-worlds storage $(if $(SECONDS_STORAGE),--seconds $(SECONDS_STORAGE))

# Text logs that go on in new files often.
POWERCUT_TEXT = --layout text --segment-bytes 16384 --rotate-bytes 4096 --compress=yes

# Framed logs of several processes, whose oldest segments go and are used again.
POWERCUT_CROWD = --segment-bytes 65536 --trim-every 40 --threads 3 --processes 2 --bytes 20-9000 --batch 3 --checkpoint-every 25 \
  --prepare-every 15
# Records that are written to the stage by system call, and stages that are used again.
POWERCUT_LONG_RECORDS = --segment-bytes 524288 --trim-every 20 --threads 3 --processes 2 --bytes 20-400000
POWERCUT_LONG = $(BUILT)/vellum-powercut --seconds $(SECONDS_POWERCUT) \
  --check '$(BUILT)/vellum-stress --check --torn {dir}/log' --work '$(BUILT)/vellum-stress {dir}/log

# The disk is recorded under `vellum-stress`, then built as a power cut at any write leaves it.
powercut: tools filesystems ## cut the power at any write on ext4, XFS and btrfs, SECONDS_POWERCUT=300 each (root)
	$(CARGO) build --release --bin vellum-stress --bin vellum-powercut
	$(POWERCUT_LONG) --records $(POWERCUT_RECORDS)' --prefix --nested
	$(POWERCUT_LONG) --records $(POWERCUT_RECORDS) $(POWERCUT_CROWD)' --nested
	$(POWERCUT_LONG) --records $(POWERCUT_RECORDS) $(POWERCUT_CROWD) --commit-path fdatasync/4096/2,dsync/4096/1' --physical-sectors
	$(POWERCUT_LONG) --records 60 $(POWERCUT_LONG_RECORDS)' --nested
	$(POWERCUT_LONG) --records $(POWERCUT_RECORDS) $(POWERCUT_CROWD) --fill mapped --cursor' --nested
	$(POWERCUT_LONG) --records $(POWERCUT_RECORDS) --commit 5 --retain-files 9 $(POWERCUT_TEXT)' --prefix --nested
	$(POWERCUT_LONG) --records $(POWERCUT_RECORDS) --follow $(POWERCUT_CROWD)' --nested

# A few hundred cuts on each filesystem, in the settings that differ most, each opened in two boots. The commands are those that
# the tests use, so that `test` has nothing to build here. 77: this machine cannot do it; where
# VELLUM_REQUIRE=all that is another status.
POWERCUT = $(TARGET)/debug/vellum-powercut --check '$(TARGET)/debug/vellum-stress --check --torn {dir}/log' \
  --work '$(TARGET)/debug/vellum-stress {dir}/log
powercut-sample: tools filesystems ## a few hundred power cuts, each opened in two boots, as `make test` runs them (root)
	$(CARGO) test --workspace --features $(FEATURES) --no-run --quiet
	@$(POWERCUT) --records 150 --segment-bytes 16384 --trim-every 20 --cursor' --points 30 --at-least 15 --prefix --nested || [ $$? -eq 77 ]
	@$(POWERCUT) --records 400 --segment-bytes 32768 --trim-every 40 --threads 3 --processes 2 --bytes 20-9000' \
	  --points 75 --at-least 37 || [ $$? -eq 77 ]
	@$(POWERCUT) --records 200 --segment-bytes 65536 --threads 3 --bytes 20-3000 --fill pwrite' \
	  --points 30 --at-least 15 || [ $$? -eq 77 ]
	@$(POWERCUT) --records 150 $(POWERCUT_TEXT) --bytes 20-900 --commit 3 --retain-files 5' \
	  --points 10 --at-least 5 --prefix --nested || [ $$? -eq 77 ]
	@$(POWERCUT) --records 300 $(POWERCUT_TEXT) --threads 2 --processes 2 --commit 5 --retain-files 8 --fill pwrite' \
	  --points 15 --at-least 7 || [ $$? -eq 77 ]
	@$(POWERCUT) --records 200 --segment-bytes 65536 --threads 2 --processes 2 --follow' --points 15 --at-least 7 || [ $$? -eq 77 ]
	@$(POWERCUT) --records 200 --segment-bytes 65536 --threads 2 --processes 2 --batch 3 --envelope' --points 15 --at-least 7 || [ $$? -eq 77 ]
	@$(POWERCUT) --records 200 $(POWERCUT_TEXT) --bytes 20-900 --commit 3 --follow' --points 15 --at-least 7 || [ $$? -eq 77 ]
	@for failure in write:90 flush:70 lose:70; do \
	  $(POWERCUT) --records 200 --segment-bytes 65536 --threads 3 --bytes 20-3000' \
	    --points 20 --at-least 10 --fs ext4,xfs --fail $$failure || [ $$? -eq 77 ] || exit 1; done

# What is new goes to target/fuzz-corpus; `test` replays what is kept in fuzz/corpus.
fuzz: tools ## damage logs at random, SECONDS=60 for each of three targets (nightly Rust)
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
fuzz-check: tools ## build the fuzz targets, where nightly Rust is installed
	@if $(CARGO) +nightly --version >/dev/null 2>&1; then \
	  $(CARGO) +nightly check --quiet --manifest-path fuzz/Cargo.toml --target-dir $(TARGET)/fuzz-check; \
	else echo "make: no nightly toolchain: the fuzz targets are not built" >&2; fi

lint: tools lint-tools ## formatting, clippy, rustdoc
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --features $(FEATURES) -- -D warnings
	$(CARGO) clippy -p vellum --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet --features $(FEATURES)

# What deny.toml says of the dependencies. DENY=advisories asks for known faults, and fetches their list.
DENY ?= --offline bans licenses sources
deny: tools $(TARGET)/tools/bin/cargo-deny ## licences, versions and sources of the dependencies; DENY=advisories: their known faults
	PATH=$(TARGET)/tools/bin:$$PATH $(CARGO) deny $(filter --%,$(DENY)) check $(filter-out --%,$(DENY))

##@ Install

include crates/vellum-capi/install/install.mk

BIN = $(DESTDIR)$(PREFIX)/bin
SHARE = $(DESTDIR)$(PREFIX)/share
install: build install-c ## the command, man pages, completions and the C library, into PREFIX=/usr/local
	$(call install-stripped,$(BUILT)/vellum,$(BIN)/vellum)
	@[ ! -x $(TARGET)/ship/release/vellum-ship ] || \
	  install -m 755 $(TARGET)/ship/release/vellum-ship $(BIN)/vellum-ship
	$(BUILT)/vellum man $(SHARE)/man/man1
	install -d $(dir $(COMPLETIONS))
	$(BUILT)/vellum completions bash >$(word 1,$(COMPLETIONS))
	$(BUILT)/vellum completions zsh >$(word 2,$(COMPLETIONS))
	$(BUILT)/vellum completions fish >$(word 3,$(COMPLETIONS))

COMPLETIONS = $(SHARE)/bash-completion/completions/vellum $(SHARE)/zsh/site-functions/_vellum \
  $(SHARE)/fish/vendor_completions.d/vellum.fish

# The command that is installed knows its own man pages, whichever version it is.
uninstall: uninstall-c ## take away what `make install` installed, with the same PREFIX, and nothing else
	@[ ! -x $(BIN)/vellum ] || { pages=$$(mktemp -d) && $(BIN)/vellum man "$$pages" && \
	  for page in "$$pages"/*; do rm -f "$(SHARE)/man/man1/$${page##*/}"; done; rm -r "$$pages"; }
	rm -f $(BIN)/vellum $(BIN)/vellum-ship $(BIN)/.debug/vellum.debug $(COMPLETIONS)
	@rmdir $(BIN)/.debug 2>/dev/null || true

# A wheel for this machine's C library and every Python from 3.10 on.
wheel: tools $(VENV)/bin/maturin ## the Python package, into target/wheels; needs a compiler, Cargo and Python
	CARGO=$(CARGO) $(VENV)/bin/maturin build --release --manifest-path $(PYTHON_CRATE)/Cargo.toml --out $(TARGET)/wheels

# The site fetches nothing, so it can be read from the disk as well as from a server. The page of all results
# is made here and nowhere else: it is large, and all of it follows from the files in docs/results.
MDBOOK_VERSION = 0.5.4
MDBOOK = $(or $(shell command -v mdbook),$(TARGET)/tools/bin/mdbook)
site: build $(MDBOOK) ## the documentation as a web site, with the page of all results, into target/site
	$(MDBOOK) build docs --dest-dir $(TARGET)/site
	$(BUILT)/vellum bench report docs/results/*.json --html $(TARGET)/site/results/index.html
	@echo "make: the site starts at $(TARGET)/site/index.html"

$(TARGET)/tools/bin/mdbook: | tools
	@echo "make: mdbook is missing: building mdbook $(MDBOOK_VERSION) into $(TARGET)/tools, once; this takes some minutes"
	env -u CARGO_TARGET_DIR $(CARGO) install --quiet --locked --root $(TARGET)/tools mdbook@$(MDBOOK_VERSION) --no-default-features --features search

include packaging/dist.mk

clean: ## remove everything that was built
	$(CARGO) clean

##@ Checks that the targets above make

tools: ## that Cargo and a C compiler are there
	@command -v $(CARGO) >/dev/null || { echo "make: cargo is missing: install Rust 1.88 or later" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "make: cc is missing: install a C compiler" >&2; exit 1; }

lint-tools: ## that rustfmt and clippy are there
	@$(CARGO) fmt --version >/dev/null 2>&1 && $(CARGO) clippy --version >/dev/null 2>&1 || \
	  { echo "make: rustfmt or clippy is missing: rustup component add rustfmt clippy" >&2; exit 1; }

# COMMAND:PACKAGE. What makes the filesystems of the tests.
FILESYSTEMS = mkfs.ext4:e2fsprogs mkfs.xfs:xfsprogs mkfs.btrfs:btrfs-progs
# What some tests use: a browser for the HTML report, a FUSE filesystem, fio, QEMU, and what builds C programs and
# watches them. Without it those tests are skipped and say so; with VELLUM_REQUIRE=all that is a failure.
EXTRAS = chromium:chromium bindfs:bindfs mergerfs:mergerfs fio:fio qemu-nbd:qemu-utils cmake:cmake pkg-config:pkg-config c++:g++ valgrind:valgrind zstd:zstd

# Shell that collects in $missing the packages among $(1) whose command is missing.
find_missing = PATH=$$PATH:/usr/sbin:/sbin; missing=; for pair in $(1); do \
  command -v $${pair%:*} >/dev/null || missing="$$missing $${pair\#*:}"; done; [ -n "$$missing" ] || exit 0

packages: ## say which packages `make test` is going to install
	@$(call find_missing,$(FILESYSTEMS) $(EXTRAS)); \
	if [ "$$(id -u)" -eq 0 ]; then echo "make: going to install:$$missing (\`make setup\` does only that)"; \
	else echo "make: only root can install what is missing:$$missing"; fi

filesystems: ## install what makes ext4, XFS and btrfs, if it is missing
	@$(call find_missing,$(FILESYSTEMS)); echo "make: installing$$missing"; \
	apt-get install --yes --quiet $$missing || { echo "make: missing:$$missing" >&2; exit 1; }

extras: ## install what some tests use, if it is missing and can be installed
	@$(call find_missing,$(EXTRAS)); \
	install="apt-get install --yes --quiet --no-install-recommends $$missing"; \
	[ "$$(id -u)" -ne 0 ] || echo "make: installing$$missing"; \
	{ [ "$$(id -u)" -eq 0 ] && { $$install || { apt-get update --quiet && $$install; }; }; } >/dev/null 2>&1 || \
	  { echo "make: missing:$$missing; the tests that need them are skipped" >&2; [ "$$VELLUM_REQUIRE" != all ]; }

# Servers that speak the languages of clouds, on loopback. The first one is S3 with create-if-absent that
# holds; it takes two minutes to build, once.
VERSITYGW_VERSION = v1.8.0
MOTO_VERSION = 5.2.5
AZURITE_VERSION = 3.37.0
ship-servers: ## install versitygw into target/tools, if it is missing and Go is there
	@[ -x $(TARGET)/tools/bin/versitygw ] || $(MAKE) --no-print-directory $(TARGET)/tools/bin/versitygw || \
	  { echo "make: versitygw is missing (it needs Go): its tests are skipped" >&2; [ "$$VELLUM_REQUIRE" != all ]; }

ship-servers-all: ship-servers $(TARGET)/tools/venv-ship/bin/moto_server $(TARGET)/tools/azurite/node_modules/.bin/azurite-blob ## the same with moto and azurite

$(TARGET)/tools/bin/versitygw:
	@echo "make: building versitygw $(VERSITYGW_VERSION) into $(TARGET)/tools, once; this takes two minutes"
	GOBIN=$(abspath $(TARGET))/tools/bin go install github.com/versity/versitygw/cmd/versitygw@$(VERSITYGW_VERSION)

$(TARGET)/tools/venv-ship/bin/moto_server: | python-tools
	$(PYTHON) -m venv $(TARGET)/tools/venv-ship
	$(TARGET)/tools/venv-ship/bin/pip install --quiet --disable-pip-version-check 'moto[server]==$(MOTO_VERSION)'

$(TARGET)/tools/azurite/node_modules/.bin/azurite-blob:
	mkdir -p $(TARGET)/tools/azurite
	npm install --silent --no-audit --no-fund --prefix $(TARGET)/tools/azurite azurite@$(AZURITE_VERSION)

# A broker of Apache Kafka, from Maven's repository, with the classes that it needs.
KAFKA_VERSION = 4.1.0
kafka-server: ## install Apache Kafka into target/tools, if it is missing and Java and Maven are there
	@[ -d $(TARGET)/tools/kafka ] || $(MAKE) --no-print-directory $(TARGET)/tools/kafka || \
	  { echo "make: Apache Kafka is missing (it needs Java 17 and Maven): its tests are skipped" >&2; \
	    [ "$$VELLUM_REQUIRE" != all ]; }

$(TARGET)/tools/kafka: crates/vellum-ship/tests/kafka/pom.xml
	@command -v java mvn >/dev/null && java -version 2>&1 | grep -q 'version "\(1[7-9]\|[2-9][0-9]\)'
	@echo "make: fetching Apache Kafka $(KAFKA_VERSION) into $(TARGET)/tools, once"
	rm -rf $@.new
	mvn --quiet --batch-mode --file $< -Dkafka.version=$(KAFKA_VERSION) dependency:copy-dependencies \
	  -DincludeScope=runtime -DoutputDirectory=$(abspath $@.new)
	mv $@.new $@

$(VENV)/bin/pip: | python-tools
	$(PYTHON) -m venv $(VENV)

# The one package that builds a wheel.
$(VENV)/bin/maturin: $(PYTHON_CRATE)/requirements.txt | $(VENV)/bin/pip
	@echo "make: installing maturin into $(VENV)"
	$(VENV)/bin/pip install --quiet --disable-pip-version-check $$(grep '^maturin==' $<)
	@touch $@

$(VENV)/installed: $(PYTHON_CRATE)/requirements.txt | $(VENV)/bin/pip
	@echo "make: installing what the Python tests need into $(VENV)"
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check uwsgi==2.0.31 || \
	  { echo "make: uwsgi can't be built here (it needs a C compiler and python3-dev): its tests are skipped"; \
	    [ "$$VELLUM_REQUIRE" != all ]; }
	@touch $@

# Python itself is not installed; the part of it that Debian leaves out is, where it can be.
python-tools: ## that Python 3.10 with venv is there; installs python3-venv, if it can
	@command -v $(PYTHON) >/dev/null || \
	  { echo "make: $(PYTHON) is missing: install Python 3.10 or later (Debian: apt-get install python3-venv)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "make: $(PYTHON) is too old: install Python 3.10 or later, or say which: PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { [ "$$(id -u)" -eq 0 ] && echo "make: installing python3-venv" && \
	    apt-get install --yes --quiet python3-venv >/dev/null; } || \
	  { echo "make: $(PYTHON) lacks venv: apt-get install python3-venv" >&2; exit 1; }
