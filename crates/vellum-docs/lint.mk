# Formatting, clippy and rustdoc. Included by the Makefile at the root.

##@ Lint

.PHONY: lint lint-code lint-docs

# Clippy as the compiler: it is the same one, with lints. So what it has checked or built is not checked or
# built again by rustdoc or by tests, which after `cargo clippy` it would be.
LINTED = RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__

lint: lint-code lint-docs ##* formatting, clippy, rustdoc

lint-code: tools lint-tools lint-go ## formatting and clippy
	$(CARGO) fmt --all --check
	$(LINTED) $(CARGO) check --workspace --all-targets --features $(FEATURES)
	$(LINTED) $(CARGO) check -p vellum --all-targets

# Apart, because it keeps less than one processor busy: in `test` it runs beside other things.
lint-docs: tools lint-tools ## rustdoc
	$(LINTED) RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet --features $(FEATURES)
