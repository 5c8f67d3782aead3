#!/usr/bin/env bash
# The tests of the core on aarch64, on an x86_64 machine: built for musl, run under qemu-user. Needs root.
. "$(dirname "$0")/common.sh"
MACHINE=aarch64-unknown-linux-musl
BINFMT=/proc/sys/fs/binfmt_misc
NAME=vellum-aarch64

[ "$HOST" != aarch64 ] || { echo "test-aarch64: this machine is one: make test" >&2; exit 1; }
[ "$(id -u)" = 0 ] || { echo "test-aarch64: root is needed, to name qemu to the kernel" >&2; exit 1; }
command -v qemu-aarch64 >/dev/null || { echo "test-aarch64: qemu-aarch64 is missing: apt-get install qemu-user" >&2; exit 1; }

# Tests execute themselves again, as another user too: so it is the kernel that has to call qemu.
[ -e $BINFMT/register ] || mount -t binfmt_misc none $BINFMT
[ -e $BINFMT/qemu-aarch64 ] || [ -e $BINFMT/$NAME ] || {
  magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
  mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
  echo ":$NAME:M::$magic:$mask:$(command -v qemu-aarch64):P" >$BINFMT/register
  trap 'echo -1 >$BINFMT/$NAME' EXIT
}

say "building the tests for $MACHINE"
cargo-zigbuild test --quiet --target $MACHINE -p vellum-sys -p vellum --features "${FEATURES:-zstd}" --no-run
cargo-zigbuild test --target $MACHINE -p vellum-sys -p vellum --features "${FEATURES:-zstd}" --no-fail-fast
