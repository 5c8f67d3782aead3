#!/usr/bin/env bash
# Installs what `make dist` made where nothing else is, and runs ten lines of each. Needs root, for chroot.
. "$(dirname "$0")/common.sh"
declare -A debian=([x86_64]=amd64 [aarch64]=arm64)
# MIRROR is where debootstrap fetches from; without it, it chooses itself.
SUITE=${SUITE:-bookworm}
CHECK=$TARGET/dist-check
mkdir -p "$CHECK"

# The other machine's programs run under qemu-user, which Debian has.
for tool in debootstrap:debootstrap lintian:lintian qemu-aarch64:qemu-user dpkg-deb:dpkg ${PYTHON_SOURCE:+musl-gcc:musl-tools}; do
  command -v "${tool%:*}" >/dev/null || { echo "dist-check: ${tool%:*} is missing: apt-get install ${tool#*:}" >&2; exit 1; }
done

# A small Debian with a C compiler and Python is made once. in_root runs a command in a copy that is thrown
# away, without a network, so nothing can be fetched.
clean_root() {
  [ -e "$CHECK/root/made" ] || {
    say "making a clean root"
    rm -rf "$CHECK/root"
    debootstrap --variant=minbase --include=gcc,libc6-dev,pkg-config,python3-venv "$SUITE" "$CHECK/root" ${MIRROR:+"$MIRROR"} >"$CHECK/debootstrap.log"
    touch "$CHECK/root/made"
  }
}
in_root() {
  unshare --mount --net --fork bash -eu -c '
    check=$1 dist=$2 scripts=$3; shift 3
    mount -t tmpfs none "$check/mnt" && mkdir "$check"/mnt/{upper,work,root}
    mount -t overlay -o "lowerdir=$check/root,upperdir=$check/mnt/upper,workdir=$check/mnt/work" none "$check/mnt/root"
    root=$check/mnt/root
    mkdir "$root/dist" "$root/check"
    mount --bind "$dist" "$root/dist" && mount --bind "$scripts" "$root/check"
    mount -t proc none "$root/proc" && mount -t tmpfs none "$root/tmp"
    exec env -i HOME=/nowhere PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin chroot "$root" bash -euc "$*"
  ' - "$CHECK" "$DIST" "$PWD/packaging/check" "$@"
}

check_sums() {
  (cd "$DIST" && sha256sum --quiet --check SHA256SUMS)
  say "checksums agree"
}

# Nothing in a package names the machine that built it, and no library has debug information.
check_contents() {
  local inside=$CHECK/inside file
  rm -rf "$inside" && mkdir -p "$inside"
  for file in "$DIST"/*; do
    local into=$inside/${file##*/}
    mkdir "$into"
    case $file in
      *.tar.gz) tar -xzf "$file" -C "$into" ;;
      *.whl) "${PYTHON:-python3}" -m zipfile -e "$file" "$into" ;;
      *.deb) dpkg-deb -R "$file" "$into" ;;
      *) cp "$file" "$into" ;;
    esac
  done
  ! grep -rlF -e "$PWD" -e "${CARGO_HOME:-$HOME/.cargo}" "$inside" || { echo "dist-check: these name this machine" >&2; exit 1; }
  local libraries=0 sections
  while read -r file; do
    libraries=$((libraries + 1))
    sections=$(readelf -SW "$file")
    [[ $sections = *.text* && $sections != *.debug_line* ]] || { echo "dist-check: $file has debug information" >&2; exit 1; }
  done < <(find "$inside" -name 'libvellum*.a' -o -name 'libvellum.so.*.*')
  [ "$libraries" -gt 0 ] || { echo "dist-check: no package has libvellum.a" >&2; exit 1; }
  rm -r "$inside"
  say "no package names this machine, and $libraries libraries have no debug information"
}

check_doctor() { # one file, for a container of one file, which has /proc and /dev/null all the same
  local file=$DIST/vellum-doctor-$VERSION-linux-$HOST bytes
  bytes=$(stat -c %s "$file")
  [ "$bytes" -le 5000000 ] || { echo "dist-check: vellum-doctor has $bytes bytes, and 5000000 are allowed" >&2; exit 1; }
  in_root '
    mkdir -p /tmp/doctor/dev /tmp/doctor/data /tmp/doctor/proc && mount -t proc none /tmp/doctor/proc
    mknod -m 666 /tmp/doctor/dev/null c 1 3
    cp /dist/vellum-doctor-*-linux-'"$HOST"' /tmp/doctor/vellum-doctor
    chroot /tmp/doctor /vellum-doctor --version
    chroot /tmp/doctor /vellum-doctor --for etcd --seconds 1 --accept memory --json /data/told.json /data || [ $? -ge 5 ]
    grep -q "\"etcd\"" /tmp/doctor/data/told.json
    chroot /tmp/doctor /vellum-doctor man /data/man && test -e /tmp/doctor/data/man/vellum-doctor.1'
  say "vellum-doctor has $bytes bytes, and works alone"
}

check_archive() { # the static command where there is nothing else, then the library
  in_root '
    mkdir -p /tmp/empty/dev && cp /dist/vellum-[0-9]*-linux-'"$HOST"' /tmp/empty/vellum
    printf "one\ntwo\n" | chroot /tmp/empty /vellum append /log && chroot /tmp/empty /vellum verify /log
    mkdir /opt/vellum && tar -xzf /dist/vellum-*-linux-'"$HOST"'.tar.gz -C /opt/vellum --strip-components 1
    sh /check/command.sh /opt/vellum/bin/vellum
    sh /check/ship.sh /opt/vellum/bin/vellum
    export PKG_CONFIG_PATH=/opt/vellum/lib/pkgconfig LD_LIBRARY_PATH=/opt/vellum/lib
    cd /tmp && gcc /check/library.c $(pkg-config --cflags --libs vellum) -o shared && ./shared'
  say "the archive works"
}

check_deb() {
  in_root '
    dpkg -i /dist/*_'"${debian[$HOST]}"'.deb >/dev/null
    sh /check/command.sh vellum
    sh /check/ship.sh vellum
    test -e /usr/share/man/man1/vellum.1.gz && test -e /usr/share/bash-completion/completions/vellum
    vellum-doctor --version && grep -q "^ExecStart=/usr/bin/vellum-doctor " /usr/share/doc/vellum/examples/vellum-doctor.service
    test -e /usr/share/man/man1/vellum-doctor.1.gz && test -e /usr/share/bash-completion/completions/vellum-doctor
    test -e /usr/share/man/man1/vellum-ship-trim.1.gz && test -e /usr/share/bash-completion/completions/vellum-ship
    cd /tmp && gcc /check/library.c $(pkg-config --cflags --libs vellum) -o shared && ./shared
    gcc /check/library.c $(pkg-config --static --cflags --libs vellum | sed s/-lvellum/-l:libvellum.a/) -o static && ./static
    files=$(dpkg -L vellum libvellum0 libvellum-dev)
    dpkg -P libvellum-dev libvellum0 vellum >/dev/null
    for file in $files; do [ -d "$file" ] || [ ! -e "$file" ] || { echo "$file is left" >&2; exit 1; }; done'
  say "the Debian packages install, work and go"
}

check_wheel() {
  in_root '
    cd /tmp && python3 -m venv venv && venv/bin/pip install --quiet --no-index --find-links /dist vellum-log
    venv/bin/python /check/wheel.py && venv/bin/python -m vellum_log --version && venv/bin/vellum --version'
  say "the wheel works"
}

# From the sources, as for a Python that no wheel is for. Cargo fetches what the lock file names.
check_sdist() {
  local venv=$CHECK/venv-sdist
  rm -rf "$venv" && "${PYTHON:-python3}" -m venv "$venv"
  env -u CARGO_TARGET_DIR TMPDIR="$CHECK" "$venv/bin/pip" install --quiet --disable-pip-version-check \
    --no-binary vellum-log "$DIST"/vellum_log-*.tar.gz
  "$venv/bin/python" packaging/check/wheel.py
  say "the source distribution builds and works"
}

# A musl C library and a Python without the GIL are in no Debian, so both Pythons are built, once, from
# PYTHON_SOURCE: the source archive of CPython 3.14 or later. What is optional of a Python is left out.
built_python() { # NAME, CONFIGURE'S ARGUMENTS: into $CHECK/NAME
  local name=$1 work=$CHECK/$1-build
  shift
  [ ! -e "$CHECK/$name/made" ] || return 0
  say "building a Python: $name"
  rm -rf "$work" "${CHECK:?}/$name" && mkdir "$work"
  tar -xf "$PYTHON_SOURCE" -C "$work" --strip-components 1
  (cd "$work" && PKG_CONFIG=false ./configure -q --prefix="$CHECK/$name" --disable-ipv6 --disable-test-modules --without-ensurepip "$@" \
    && make -j2 && make install) >"$work.log" 2>&1 || { tail -n 3 "$work.log" >&2; echo "dist-check: see $work.log" >&2; exit 1; }
  rm -r "$work"
  touch "$CHECK/$name/made"
}
runs_wheel() { # NAME PLATFORM ABI [WHAT STARTS A PROGRAM THERE]: what pip takes for such a system
  local name=$1 platform=$2 abi=$3 version packages=$CHECK/$1/packages
  shift 3
  local python=("$@" "$CHECK/$name"/bin/python3.??)
  version=$("${python[@]}" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  rm -rf "$packages"
  "$TARGET/venv-dist/bin/pip" install --quiet --disable-pip-version-check --no-index --find-links "$DIST" --no-deps --only-binary :all: \
    --target "$packages" --platform "$platform" --python-version "$version" ${abi:+--abi "cp${version/./}$abi"} vellum-log
  PYTHONPATH=$packages "${python[@]}" -W error packaging/check/wheel.py
}
check_built_pythons() {
  [ -n "${PYTHON_SOURCE:-}" ] || {
    say "not run: the wheels for musl and for a Python without the GIL; PYTHON_SOURCE=FILE builds these Pythons from CPython's sources"
    return 0
  }
  # The compiler names the C library of this system when it is asked, and the configuration stops there.
  printf '#!/bin/sh\n[ "$*" = --print-multiarch ] || exec musl-gcc "$@"\n' >"$CHECK/cc-musl" && chmod +x "$CHECK/cc-musl"
  built_python python-musl CC="$CHECK/cc-musl"
  runs_wheel python-musl "musllinux_1_2_$HOST" ""
  built_python python-free-threaded --disable-gil
  runs_wheel python-free-threaded "manylinux_2_17_$HOST" t
  built_python python-musl-free-threaded CC="$CHECK/cc-musl" --disable-gil
  runs_wheel python-musl-free-threaded "musllinux_1_2_$HOST" t
  [ "$HOST" != x86_64 ] || other_built_pythons
  say "the wheels for musl and for a Python without the GIL work"
}
# The same for the other machine, built across. The C library that starts them is Debian's.
other_built_pythons() {
  fetch_other_machine
  other_built_python musl "" musllinux_1_2
  other_built_python musl t musllinux_1_2
  other_built_python gnu t manylinux_2_17
}
other_built_python() { # C-LIBRARY ABI PLATFORM
  local other=aarch64-linux-$1 free=${2:+-free-threaded}
  # Zig links statically for musl, and refuses files that say when they were compiled; CPython has one. CPython tells
  # musl by a macro that Zig's own header hides. And Debian's musl lacks two functions of the one that Zig links with.
  printf '#!/bin/sh\nexec "%s" -m ziglang cc -target %s -dynamic -Wno-date-time "$@"\n' "$TARGET/venv-dist/bin/python" "$other" >"$CHECK/cc-$other"
  printf '#!/bin/sh\nexec "%s" -m ziglang ar "$@"\n' "$TARGET/venv-dist/bin/python" >"$CHECK/ar-$other"
  chmod +x "$CHECK"/{cc,ar}-"$other"
  built_python "python-$other$free" ${free:+--disable-gil} --host="$other" --build="$HOST-linux-gnu" \
    --with-build-python="$(echo "$CHECK/python-musl$free"/bin/python3.??)" CC="$CHECK/cc-$other" AR="$CHECK/ar-$other" \
    CPP="$CHECK/cc-$other -E -D__DEFINED_va_list" ac_cv_func_preadv2=no ac_cv_func_pwritev2=no \
    ac_cv_file__dev_ptmx=yes ac_cv_file__dev_ptc=no
  runs_wheel "python-$other$free" "$3_aarch64" "$2" qemu-aarch64 -L "$CHECK/aarch64"
}

check_lintian() {
  lintian --allow-root --fail-on error,warning --tag-display-limit 0 "$DIST"/*.deb
  say "lintian has nothing to say that is not explained"
}

# Without a second system: the libraries of the other machine, unpacked, and its programs under qemu-user.
fetch_other_machine() {
  local other=$CHECK/aarch64
  [ ! -e "$other/made" ] || return 0
  say "fetching the libraries and the Python of aarch64"
  rm -rf "$other"
  debootstrap --foreign --arch=arm64 --variant=minbase --include=musl,python3-minimal,python3 "$SUITE" "$other" ${MIRROR:+"$MIRROR"} >"$CHECK/debootstrap-arm64.log"
  for package in "$other"/var/cache/apt/archives/*.deb; do dpkg-deb -x "$package" "$other"; done
  touch "$other/made"
}
check_other_machine() {
  local other=$CHECK/aarch64
  [ "$HOST" = x86_64 ] || return 0
  fetch_other_machine
  chmod +x "$DIST"/vellum-*-linux-aarch64
  sh packaging/check/command.sh "qemu-aarch64 $(echo "$DIST"/vellum-*-linux-aarch64)"
  rm -rf "$CHECK/arm64" && mkdir "$CHECK/arm64"
  for package in "$DIST"/*_arm64.deb; do dpkg-deb -x "$package" "$CHECK/arm64"; done
  sh packaging/check/command.sh "qemu-aarch64 -L $other $CHECK/arm64/usr/bin/vellum"
  "${PYTHON:-python3}" -m zipfile -e "$DIST"/*-abi3-manylinux*_aarch64.whl "$CHECK/arm64/wheel"
  PYTHONPATH=$CHECK/arm64/wheel qemu-aarch64 -L "$other" "$other/usr/bin/python3" packaging/check/wheel.py
  say "aarch64: the static command, the Debian package and the wheel work under qemu-user"
}

mkdir -p "$CHECK/mnt"
case ${1:-all} in
  all) check_sums; check_contents; check_lintian; clean_root; check_archive; check_doctor; check_deb; check_wheel; check_sdist; check_built_pythons; check_other_machine ;;
  contents | sdist | lintian | built_pythons | other_machine) "check_$1" ;;
  *) clean_root; "check_$1" ;;
esac
