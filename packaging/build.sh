#!/usr/bin/env bash
# Builds what the packages of one architecture hold. build.sh ARCHITECTURE
. "$(dirname "$0")/common.sh"
build_settings
arch=$1
gnu=$arch-unknown-linux-gnu musl=$arch-unknown-linux-musl

for command in $COMMANDS; do
  name=${command%%:*} manifest=${command#*:}
  for target in "$gnu.$GLIBC" "$musl"; do
    say "building $name for $target"
    "$CARGO" zigbuild --release --quiet --locked --manifest-path "$manifest" --bin "$name" --target "$target"
  done
done

say "building the C library for $gnu.$GLIBC"
library=(--release --quiet --locked --package vellum-capi --lib --features zstd,gzip --target "$gnu.$GLIBC")
cargo-zigbuild rustc "${library[@]}" --crate-type cdylib -- -C link-arg=-Wl,-soname,libvellum.so.0
cargo-zigbuild rustc "${library[@]}" --crate-type staticlib
