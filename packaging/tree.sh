#!/usr/bin/env bash
# Puts together what is installed, below a directory. tree.sh ARCHITECTURE KIND DIRECTORY PREFIX LIBDIR
# KIND is the C library of the commands: gnu or musl.
. "$(dirname "$0")/common.sh"
arch=$1 kind=$2 root=$3 prefix=$4 libdir=$5
built=$TARGET/$arch-unknown-linux
share=$root$prefix/share
# Where zsh looks: Debian has a directory for its packages.
ZSH=${ZSH:-site-functions}

for command in $COMMANDS; do
  name=${command%%:*}
  install -D -m 755 "$built-$kind/release/$name" "$root$prefix/bin/$name"
  # The pages are the same on every machine; this one runs its own program.
  own=$TARGET/$HOST-unknown-linux-musl/release/$name
  [ -x "$own" ] || own=$TARGET/$HOST-unknown-linux-gnu/release/$name
  "$own" man "$share/man/man1"
  install -d "$share/bash-completion/completions" "$share/zsh/$ZSH" "$share/fish/vendor_completions.d"
  "$own" completions bash >"$share/bash-completion/completions/$name"
  "$own" completions zsh >"$share/zsh/$ZSH/_$name"
  "$own" completions fish >"$share/fish/vendor_completions.d/$name.fish"
done

install -D -m 644 -t "$share/vellum" docs/results.schema.json docs/doctor.schema.json

# Rust's own library has debug information, which no profile leaves out of libvellum.a. The `objcopy` of a
# system knows its own machine; the one that comes with the compiler knows all of them.
sysroot=$(rustc --print sysroot)
objcopy="env LD_LIBRARY_PATH=$sysroot/lib $sysroot/lib/rustlib/$HOST-unknown-linux-gnu/bin/rust-objcopy"
make --no-print-directory --silent install-c-built C_PROFILE=shipped "C_BUILT=$built-gnu/release" \
  "OBJCOPY=$objcopy" "DESTDIR=$root" "PREFIX=$prefix" "LIBDIR=$libdir"
chmod 644 "$root$libdir/$(basename "$(readlink -f "$root$libdir/libvellum.so")")"
