#!/usr/bin/env bash
# Lists what is inside of the commands, the C library and the Python module: CycloneDX, in JSON.
. "$(dirname "$0")/common.sh"
for crate in vellum-cli vellum-ship vellum-capi vellum-python; do
  "$CARGO" cyclonedx --quiet --format json --manifest-path "crates/$crate/Cargo.toml" --override-filename sbom-made-here
  # The tool writes a file beside each manifest of the workspace, with the paths of this machine.
  sed "s|$PWD|/vellum|g" "crates/$crate/sbom-made-here.json" >"$DIST/$crate-$VERSION.cdx.json"
  rm -f crates/*/sbom-made-here.json
done
say "made the lists of contents"
