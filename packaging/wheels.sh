#!/usr/bin/env bash
# Builds the wheels of one architecture, for both C libraries, with the command that build.sh has
# built. wheels.sh ARCHITECTURE
. "$(dirname "$0")/common.sh"
build_settings
arch=$1
mkdir -p "$DIST"

# One wheel is for every Python that has the GIL: it is for the oldest. One that has none
# ("free-threaded") has an interface that still differs from version to version.
FREE_THREADED=3.14t

wheels() { # TARGET PLATFORM
  say "building wheels for $arch, $2"
  local interpreter
  for interpreter in "" "--interpreter=$FREE_THREADED"; do
    packaging/with-command.sh "$TARGET/$1/release/vellum" maturin build --release --quiet --locked --zig --target "$1" --compatibility "$2" ${interpreter:+"$interpreter"} \
      --manifest-path crates/vellum-python/Cargo.toml --out "$DIST"
  done
}
wheels "$arch-unknown-linux-gnu" "manylinux_${GLIBC/./_}"
wheels "$arch-unknown-linux-musl" musllinux_1_2
