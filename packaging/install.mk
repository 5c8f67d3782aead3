# What users get: the command, man pages, completions, the C library; a wheel; the site. Included by the
# Makefile at the root.

.PHONY: install uninstall wheel site

##@ Install

BIN = $(PREFIX)/bin
SHARE = $(DESTDIR)$(PREFIX)/share
install: build install-c ##* the command, man pages, completions and the C library, into PREFIX=/usr/local
	$(call install-stripped,$(BUILT)/vellum,$(BIN)/vellum)
	@if [ -x $(TARGET)/ship/release/vellum-ship ]; then \
	  install -m 755 $(TARGET)/ship/release/vellum-ship $(DESTDIR)$(BIN)/vellum-ship; \
	else echo "install: without vellum-ship; \`make ship\` builds it in five minutes"; fi
	$(BUILT)/vellum man $(SHARE)/man/man1
	install -d $(dir $(COMPLETIONS))
	$(BUILT)/vellum completions bash >$(word 1,$(COMPLETIONS))
	$(BUILT)/vellum completions zsh >$(word 2,$(COMPLETIONS))
	$(BUILT)/vellum completions fish >$(word 3,$(COMPLETIONS))

COMPLETIONS = $(SHARE)/bash-completion/completions/vellum $(SHARE)/zsh/site-functions/_vellum \
  $(SHARE)/fish/vendor_completions.d/vellum.fish

# The command that is installed knows its own man pages, whichever version it is. With the DEBUGDIR of the
# installation the debug files go too.
uninstall: uninstall-c ##* take away what `make install` installed, with the same PREFIX, and nothing else
	@[ ! -x $(DESTDIR)$(BIN)/vellum ] || { pages=$$(mktemp -d) && $(DESTDIR)$(BIN)/vellum man "$$pages" && \
	  for page in "$$pages"/*; do rm -f "$(SHARE)/man/man1/$${page##*/}"; done; rm -r "$$pages"; }
	rm -f $(addprefix $(DESTDIR)$(BIN)/,vellum vellum-ship) $(COMPLETIONS) \
	  $(if $(DEBUGDIR),$(call debug_file,$(BIN)/vellum))

# A wheel for this machine's C library and every Python from 3.10 on, with the command in it.
wheel: build $(VENV)/bin/maturin ##* the Python package, into target/wheels; needs a compiler, Cargo and Python
	CARGO=$(CARGO) packaging/with-command.sh $(BUILT)/vellum $(VENV)/bin/maturin build --release \
	  --manifest-path $(PYTHON_CRATE)/Cargo.toml --out $(TARGET)/wheels

# The site fetches nothing, so it can be read from the disk as well as from a server. The page of all results
# is made here and nowhere else: it is large, and all of it follows from the files in docs/results.
site: build $(MDBOOK) ##* the documentation as a web site, with the page of all results, into target/site
	$(MDBOOK) build docs --dest-dir $(TARGET)/site
	$(BUILT)/vellum bench report docs/results/*.json --html $(TARGET)/site/results/index.html
	@echo "make: the site starts at $(TARGET)/site/index.html"
