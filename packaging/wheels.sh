#!/usr/bin/env bash
# Builds the wheels of one architecture, for both C libraries. wheels.sh ARCHITECTURE
. "$(dirname "$0")/common.sh"
build_settings
arch=$1
mkdir -p "$DIST"

wheel() { # TARGET PLATFORM
  say "building a wheel for $arch, $2"
  maturin build --release --quiet --locked --zig --target "$1" --compatibility "$2" \
    --manifest-path crates/vellum-python/Cargo.toml --out "$DIST"
}
wheel "$arch-unknown-linux-gnu" "manylinux_${GLIBC/./_}"
wheel "$arch-unknown-linux-musl" musllinux_1_2
