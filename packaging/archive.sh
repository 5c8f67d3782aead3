#!/usr/bin/env bash
# Makes the .tar.gz of one architecture, and the static commands as files of their own. archive.sh ARCHITECTURE
. "$(dirname "$0")/common.sh"
arch=$1
name=vellum-$VERSION-linux-$arch
root=$STAGE/$name
rm -rf "$root" && mkdir -p "$root" "$DIST"

packaging/tree.sh "$arch" musl "$root" "" /lib
install -D -m 644 -t "$root/share/doc/vellum" README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE
install -D -m 644 -t "$root/share/doc/vellum/examples" crates/vellum-capi/examples/*.c \
  packaging/vellum-doctor.service packaging/doctor-job.yaml
sed -i 's|^prefix=.*|prefix=${pcfiledir}/../..|' "$root/lib/pkgconfig/vellum.pc"

tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$STAGE" -c "$name" |
  gzip -9n >"$DIST/$name.tar.gz"
for command in $COMMANDS; do
  install -m 755 "$root/bin/${command%%:*}" "$DIST/${command%%:*}-$VERSION-linux-$arch"
done
say "made $name.tar.gz"
