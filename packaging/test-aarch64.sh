#!/usr/bin/env bash
# Runs the tests of the core, built for aarch64 and musl, under qemu-user; then cuts the power of a disk on which a log is
# written there, and runs the model. Needs root: tests start their own program again, so the kernel must know what runs
# it (binfmt_misc). The Makefile says which features; words choose tests, and nothing else is run then.
. "$(dirname "$0")/common.sh"
MACHINE=aarch64-unknown-linux-musl
FORMATS=/proc/sys/fs/binfmt_misc
MINE=vellum-aarch64

# The emulator has no ioctl that shuts a filesystem down, and takes no limit of address space and no filter of system
# calls. The last test holds where no writer is without a processor for a tenth of a second: it passes here when it
# runs alone.
LEFT_OUT=(
  a_disk_that_was_lost_and_mounted_again_has_everything_durable
  a_synced_file_survives_a_power_cut
  without_address_space_an_append_is_an_error_and_later_ones_succeed
  durable::failed_syncs
  notes_that_no_device_took_are_written_again_after_a_failed_sync
  a_segment_that_could_not_be_synced_is_restored_once_more
  who_follows_the_files_reads_what_stays_there_though_writers_are_killed
)

[ "$HOST" != aarch64 ] || { echo "test-aarch64: this is one: make test" >&2; exit 1; }
command -v qemu-aarch64 >/dev/null || { echo "test-aarch64: qemu-aarch64 is missing: apt-get install qemu-user" >&2; exit 1; }

# ELF of 64 bits, little-endian, for machine 0xb7; two bits of its type and the ABI may be anything.
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
is_known() { grep -qsx enabled "$FORMATS"/*aarch64*; }
forget() { echo -1 >"$FORMATS/$MINE"; }

[ -e "$FORMATS/register" ] || mount -t binfmt_misc none "$FORMATS"
is_known || {
  echo ":$MINE:M::$magic:$mask:$(command -v qemu-aarch64):" >"$FORMATS/register"
  trap forget EXIT
}
cargo-zigbuild test --target "$MACHINE" --locked --features "$FEATURES" \
  -p vellum-sys -p vellum-files -p vellum -p vellum-loggers -p vellum-parallel -- "${LEFT_OUT[@]/#/--skip=}" "$@"
[ $# = 0 ] || exit 0

# The disk and who checks what is on it are of this machine; who writes is of the other.
cargo build --locked -p vellum-testkit --bin vellum-stress --bin vellum-powercut
cargo-zigbuild build --target "$MACHINE" --locked -p vellum-testkit --bin vellum-stress
"$TARGET/debug/vellum-powercut" --points 30 --at-least 15 --nested \
  --check "$TARGET/debug/vellum-stress --check --torn {dir}/log" \
  --work "$TARGET/$MACHINE/debug/vellum-stress {dir}/log --records 150 --segment-bytes 16384 --trim-every 20 --threads 3 --processes 2"

RUSTFLAGS="--cfg shuttle" cargo-zigbuild test --release --target "$MACHINE" --locked --target-dir "$TARGET/model" \
  -p vellum --lib model
