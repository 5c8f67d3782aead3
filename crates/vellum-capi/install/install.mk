# The library for C and C++: header, libvellum.so, libvellum.a, pkg-config and CMake files.
# Included by the Makefile at the root. PREFIX, LIBDIR, INCLUDEDIR and DESTDIR are as usual;
# C_FEATURES= leaves zstd and gzip out: such a library reads no compressed files; C_PROFILE=dev is for tests.

LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
C_PROFILE ?= release
C_FEATURES ?= zstd,gzip

CAPI = crates/vellum-capi
C_VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
C_ABI = $(shell sed -n 's/^\#define VELLUM_ABI_VERSION //p' $(CAPI)/include/vellum.h)
C_BUILT = $(TARGET)/$(if $(filter dev,$(C_PROFILE)),debug,$(C_PROFILE))
C_CARGO = $(CARGO) rustc --quiet --package vellum-capi --lib --profile $(C_PROFILE) \
  $(if $(C_FEATURES),--features $(C_FEATURES))

# What a program that links libvellum.a needs besides, as the compiler says it. The compiler puts a new
# file where its output goes, which must not be /dev/null: root would replace the device.
NATIVE_LIBS = $(shell echo | $(RUSTC) --crate-type staticlib --print native-static-libs \
  -o $(C_BUILT)/native-libs.a - 2>&1 | sed -n 's/.*native-static-libs: //p')
RUSTC ?= rustc

INCLUDE_FROM_LIB = $(shell realpath --canonicalize-missing --no-symlinks --relative-to='$(LIBDIR)' '$(INCLUDEDIR)')
FILL = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR:$(PREFIX)/%=$${prefix}/%)|' \
  -e 's|@INCLUDEDIR@|$(INCLUDEDIR:$(PREFIX)/%=$${prefix}/%)|' -e 's|@VERSION@|$(C_VERSION)|' \
  -e 's|@ABI@|$(C_ABI)|' -e 's|@NATIVE_LIBS@|$(NATIVE_LIBS)|' -e 's|@INCLUDE_FROM_LIB@|$(INCLUDE_FROM_LIB)|'

.PHONY: build-c install-c install-c-built uninstall-c

C_HEADERS = vellum.h vellum.hpp vellum_spdlog.hpp

# What of the library is installed: below LIBDIR, and below INCLUDEDIR.
C_LIBRARY = libvellum.so.$(C_VERSION)
C_FILES = $(addprefix $(DESTDIR)$(LIBDIR)/,$(C_LIBRARY) libvellum.so.$(C_ABI) libvellum.so libvellum.a \
  pkgconfig/vellum.pc cmake/vellum/vellum-config.cmake \
  cmake/vellum/vellum-config-version.cmake) $(addprefix $(DESTDIR)$(INCLUDEDIR)/,$(C_HEADERS))

# Installs the file $(1) as $(2) below DESTDIR, without its debug symbols. With DEBUGDIR=/usr/lib/debug they go
# below that directory, where debuggers and Rust's backtraces look for them by the path of the file.
OBJCOPY ?= objcopy
DEBUGDIR ?=
debug_file = $(DESTDIR)$(DEBUGDIR)$(1).debug
define install-stripped
	install -d $(dir $(DESTDIR)$(2))
	@rm -f $(DESTDIR)$(2)
	$(if $(DEBUGDIR),install -d $(dir $(call debug_file,$(2))))
	$(if $(DEBUGDIR),$(OBJCOPY) --only-keep-debug --compress-debug-sections $(1) $(call debug_file,$(2)))
	$(if $(DEBUGDIR),chmod 644 $(call debug_file,$(2)))
	$(OBJCOPY) --strip-all $(if $(DEBUGDIR),--add-gnu-debuglink=$(call debug_file,$(2))) $(1) $(DESTDIR)$(2)
	chmod 755 $(DESTDIR)$(2)
endef

# One after the other, so that each is optimised as a whole.
build-c: tools ## build the C library alone
	$(C_CARGO) --crate-type cdylib -- -C link-arg=-Wl,-soname,libvellum.so.$(C_ABI)
	$(C_CARGO) --crate-type staticlib

install-c: build-c ## the C library alone: headers, libvellum, pkg-config and CMake files
	@$(MAKE) --no-print-directory install-c-built

# What C_BUILT holds, which others may have built for another machine: the packages do so.
install-c-built: ## install what C_BUILT holds, without building it
	install -d $(DESTDIR)$(INCLUDEDIR) $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(LIBDIR)/cmake/vellum
	install -m 644 $(addprefix $(CAPI)/include/,$(C_HEADERS)) $(DESTDIR)$(INCLUDEDIR)
	$(if $(filter release,$(C_PROFILE)),$(call install-stripped,$(C_BUILT)/libvellum_capi.so,$(LIBDIR)/$(C_LIBRARY)),\
	  install -m 755 $(C_BUILT)/libvellum_capi.so $(DESTDIR)$(LIBDIR)/$(C_LIBRARY))
	ln -sf $(C_LIBRARY) $(DESTDIR)$(LIBDIR)/libvellum.so.$(C_ABI)
	ln -sf libvellum.so.$(C_ABI) $(DESTDIR)$(LIBDIR)/libvellum.so
	install -m 644 $(C_BUILT)/libvellum_capi.a $(DESTDIR)$(LIBDIR)/libvellum.a
	$(if $(filter dev,$(C_PROFILE)),,$(OBJCOPY) --strip-debug $(DESTDIR)$(LIBDIR)/libvellum.a)
	$(FILL) $(CAPI)/install/vellum.pc.in >$(DESTDIR)$(LIBDIR)/pkgconfig/vellum.pc
	@for file in vellum-config vellum-config-version; do \
	  $(FILL) $(CAPI)/install/$$file.cmake.in >$(DESTDIR)$(LIBDIR)/cmake/vellum/$$file.cmake || exit 1; done

uninstall-c: ## take the C library away again
	rm -f $(C_FILES) $(if $(DEBUGDIR),$(call debug_file,$(LIBDIR)/$(C_LIBRARY)))
	@rmdir $(DESTDIR)$(LIBDIR)/cmake/vellum 2>/dev/null || true
