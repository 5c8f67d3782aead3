# What users get: the command, man pages, completions, the C library; a wheel; the site. Included by the
# Makefile at the root.

.PHONY: install uninstall wheel site

##@ Install

BIN = $(PREFIX)/bin
SHARE = $(PREFIX)/share
# What `make ship` has built.
SHIP_BUILT = $(TARGET)/ship/release/vellum-ship
# What `make build` has built: its pages go below those of `vellum doctor`, which are the same.
DOCTOR_BUILT = $(BUILT)/vellum-doctor
# What --json writes.
SCHEMAS = docs/results.schema.json docs/doctor.schema.json
COMPLETIONS = $(addprefix $(DESTDIR)$(SHARE)/,bash-completion/completions/$(1) zsh/site-functions/_$(1) \
  fish/vendor_completions.d/$(1).fish)

# Installs the program $(1) as the command $(2), with its man pages and completions.
define install-command
	$(call install-stripped,$(1),$(BIN)/$(2))
	$(1) man $(DESTDIR)$(SHARE)/man/man1
	install -d $(dir $(call COMPLETIONS,$(2)))
	$(1) completions bash >$(word 1,$(call COMPLETIONS,$(2)))
	$(1) completions zsh >$(word 2,$(call COMPLETIONS,$(2)))
	$(1) completions fish >$(word 3,$(call COMPLETIONS,$(2)))
endef

install: build install-c ##* the commands, man pages, completions and the C library, into PREFIX=/usr/local
	$(if $(wildcard $(DOCTOR_BUILT)),$(call install-command,$(DOCTOR_BUILT),vellum-doctor))
	$(call install-command,$(BUILT)/vellum,vellum)
	install -D -m 644 -t $(DESTDIR)$(SHARE)/vellum $(SCHEMAS)
	$(if $(wildcard $(SHIP_BUILT)),$(call install-command,$(SHIP_BUILT),vellum-ship),\
	  @echo "install: without vellum-ship: build it by \`make ship\` (five minutes), and install once more")

# The commands that are installed know their own man pages, whichever version they are. With the DEBUGDIR of the
# installation the debug files go too.
uninstall: uninstall-c ##* take away what `make install` installed, with the same PREFIX, and nothing else
	@for command in $(addprefix $(DESTDIR)$(BIN)/,vellum vellum-doctor vellum-ship); do \
	  [ -x $$command ] && pages=$$(mktemp -d) || continue; $$command man "$$pages"; \
	  for page in "$$pages"/*; do rm -f "$(DESTDIR)$(SHARE)/man/man1/$${page##*/}"; done; rm -r "$$pages"; done
	rm -f $(foreach command,vellum vellum-doctor vellum-ship,$(DESTDIR)$(BIN)/$(command) $(call COMPLETIONS,$(command)) \
	  $(if $(DEBUGDIR),$(call debug_file,$(BIN)/$(command))))
	rm -f $(addprefix $(DESTDIR)$(SHARE)/vellum/,$(notdir $(SCHEMAS)))
	-rmdir $(DESTDIR)$(SHARE)/vellum 2>/dev/null

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
