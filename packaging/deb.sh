#!/usr/bin/env bash
# Makes the Debian packages of one architecture. deb.sh ARCHITECTURE
. "$(dirname "$0")/common.sh"
arch=$1
declare -A debian=([x86_64]=amd64 [aarch64]=arm64)
machine=${debian[$arch]}
lib=usr/lib/$arch-linux-gnu
whole=$STAGE/deb-$machine
rm -rf "$whole" && mkdir -p "$whole/all" "$DIST"
umask 022

ZSH=vendor-completions packaging/tree.sh "$arch" gnu "$whole/all" /usr "/$lib"
gzip -9n "$whole"/all/usr/share/man/man1/*

# Moves files of the whole tree to a package. take PACKAGE PATH...
take() {
  local package=$whole/$1 path; shift
  for path; do
    install -d "$package/$(dirname "$path")"
    mv "$whole/all/$path" "$package/$path"
  done
}

# What every package has. finish PACKAGE
finish() {
  local package=$1 root=$whole/$1 doc size
  doc=$root/usr/share/doc/$package
  install -d "$doc" "$root/DEBIAN"
  { cat packaging/debian/copyright; sed 's/^$/./; s/^/ /' LICENSE-MIT; } >"$doc/copyright"
  gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
  printf 'vellum (%s-1) unstable; urgency=medium\n\n  * Release %s: see changelog.gz.\n\n -- %s  %s\n' "$VERSION" "$VERSION" \
    "$MAINTAINER" "$(date -uRd "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$doc/changelog.Debian.gz"
  size=$(du -k --apparent-size -s --exclude=DEBIAN "$root" | cut -f1)
  sed -e "s/@VERSION@/$VERSION-1/g; s/@ARCHITECTURE@/$machine/; s/@SIZE@/$size/; s/@MAINTAINER@/$MAINTAINER/" \
    "packaging/debian/$package.control" >"$root/DEBIAN/control"
  for file in triggers shlibs; do
    [ ! -e "packaging/debian/$package.$file" ] || install -m 644 "packaging/debian/$package.$file" "$root/DEBIAN/$file"
  done
  install -d "$root/usr/share/lintian/overrides"
  sed "s/@PACKAGE@/$package/" packaging/debian/overrides >"$root/usr/share/lintian/overrides/$package"
  (cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
  dpkg-deb --root-owner-group -Zxz --build "$root" "$DIST/${package}_$VERSION-1_$machine.deb" >/dev/null
  say "made ${package}_$VERSION-1_$machine.deb"
}

take libvellum0 "$lib/libvellum.so.0" "$lib/libvellum.so.$VERSION"
take libvellum-dev usr/include "$lib"
install -D -m 644 -t "$whole/libvellum-dev/usr/share/doc/libvellum-dev/examples" crates/vellum-capi/examples/*.c
take vellum usr
rmdir "$whole/vellum/usr/lib"
install -D -m 644 -t "$whole/vellum/usr/share/doc/vellum/examples" packaging/vellum-doctor.service packaging/doctor-job.yaml
for package in libvellum0 libvellum-dev vellum; do finish "$package"; done
