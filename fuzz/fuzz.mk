# Damaging logs at random. Included by the Makefile at the root.

.PHONY: fuzz fuzz-check

# What is new goes to target/fuzz-corpus; `test` replays what is kept in fuzz/corpus.
fuzz: tools ##* damage logs at random, SECONDS=60 for each of three targets (nightly Rust)
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
