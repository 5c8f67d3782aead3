# What the other targets need, and how it is installed. Included by the Makefile at the root. A target that
# lacks something says in one line what that is, or says that it installs it and does so.

.PHONY: tools lint-tools packages filesystems extras ship-servers ship-servers-all kafka-server peers-java \
  python-tools

##@ Checks that the targets above make

tools: ## that Cargo and a C compiler are there
	@command -v $(CARGO) >/dev/null || { echo "make: cargo is missing: install Rust 1.88 or later" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "make: cc is missing: install a C compiler" >&2; exit 1; }

lint-tools: ## that rustfmt and clippy are there
	@$(CARGO) fmt --version >/dev/null 2>&1 && $(CARGO) clippy --version >/dev/null 2>&1 || \
	  { echo "make: rustfmt or clippy is missing: rustup component add rustfmt clippy" >&2; exit 1; }

# COMMAND:PACKAGE, or FILE:PACKAGE. What makes the filesystems of the tests.
FILESYSTEMS = mkfs.ext4:e2fsprogs mkfs.xfs:xfsprogs mkfs.btrfs:btrfs-progs
# What some tests use: a browser for the HTML report, a FUSE filesystem, fio, QEMU, and what builds C programs and
# watches them. Without it those tests are skipped and say so; with VELLUM_REQUIRE=all that is a failure.
EXTRAS = chromium:chromium bindfs:bindfs mergerfs:mergerfs fio:fio qemu-nbd:qemu-utils cmake:cmake pkg-config:pkg-config c++:g++ /usr/include/spdlog/spdlog.h:libspdlog-dev valgrind:valgrind zstd:zstd

# Shell that collects in $missing the packages among $(1) whose command or file is missing.
find_missing = PATH=$$PATH:/usr/sbin:/sbin; missing=; for pair in $(1); do \
  command -v $${pair%:*} >/dev/null || [ -e $${pair%:*} ] || missing="$$missing $${pair\#*:}"; done; [ -n "$$missing" ] || exit 0

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

MDBOOK_VERSION = 0.5.4
MDBOOK = $(or $(shell command -v mdbook),$(TARGET)/tools/bin/mdbook)

$(TARGET)/tools/bin/mdbook: | tools
	@echo "make: mdbook is missing: building mdbook $(MDBOOK_VERSION) into $(TARGET)/tools, once; this takes some minutes"
	env -u CARGO_TARGET_DIR $(CARGO) install --quiet --locked --root $(TARGET)/tools mdbook@$(MDBOOK_VERSION) --no-default-features --features search

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
