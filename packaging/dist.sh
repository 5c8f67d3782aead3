#!/usr/bin/env bash
# Makes every package in target/dist, with checksums and lists of what is inside.
. "$(dirname "$0")/common.sh"
rm -rf "$DIST" "$STAGE"
mkdir -p "$DIST"

# Pages and completions are written by a program that runs here, so this machine comes first.
for arch in "$HOST" ${ARCHITECTURES/$HOST/}; do
  packaging/build.sh "$arch"
  packaging/archive.sh "$arch"
  packaging/deb.sh "$arch"
  packaging/wheels.sh "$arch"
done
maturin sdist --manifest-path crates/vellum-python/Cargo.toml --out "$DIST"
packaging/sbom.sh
(cd "$DIST" && sha256sum -- * >"$STAGE/SHA256SUMS" && mv "$STAGE/SHA256SUMS" .)
say "everything is in $DIST"
