# What the scripts of this directory share: where things are, and what is made. They source it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

CARGO=${CARGO:-cargo}
TARGET=${CARGO_TARGET_DIR:-$PWD/target}
DIST=$TARGET/dist
STAGE=$TARGET/dist-stage
VERSION=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
HOST=$(uname -m)
# The oldest C library of GNU that Rust's own library runs with.
GLIBC=2.17

# Who answers for the packages: who builds them says so.
MAINTAINER=${MAINTAINER:-The Vellum authors <vellum@localhost>}
# Commands to ship, as NAME:MANIFEST. One more is one more word here. Where two have a page of one name, that of
# the later one is taken: `vellum doctor` and vellum-doctor are the same.
COMMANDS=${COMMANDS:-vellum-doctor:crates/vellum-doctor/Cargo.toml vellum:Cargo.toml vellum-ship:crates/vellum-ship/Cargo.toml}
ARCHITECTURES=${ARCHITECTURES:-x86_64 aarch64}

export PATH=$TARGET/venv-dist/bin:$TARGET/tools/bin:$PATH CARGO_TARGET_DIR=$TARGET
# The same time in every archive, so that the same sources give the same files.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH

say() { echo "dist: $*"; }

# Paths of the building machine are no part of what is built: neither in panics nor in symbols.
build_settings() {
  local crates=${CARGO_HOME:-$HOME/.cargo}/registry/src prefix
  local flags="--remap-path-prefix=$PWD=/vellum"
  for prefix in "$crates"/*; do flags+=" --remap-path-prefix=$prefix=/crates"; done
  export RUSTFLAGS="$flags" CFLAGS="-g0 -ffile-prefix-map=$crates=/crates -ffile-prefix-map=$TARGET=/target"
  # Symbols are most of a file. Who debugs builds with `make install`.
  export CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_STRIP=symbols
}
