#!/bin/sh
# Builds a Python without a GIL from the sources of Debian's package, and Sapwood for it; then runs what threads do.
#
# In: the version of a source package (3.14.7 where none is given). Out: build/free-threaded; exit status 1 where a hash
# differs, a test fails or the import of Sapwood has turned the GIL on. Takes about fifteen minutes on two cores.
set -eu
cd "$(dirname "$0")/.."
VERSION=${1:-3.14.7}
SHORT=${VERSION%.*} SOURCE=$PWD WORK=$PWD/build/free-threaded
MIRROR=${MIRROR:-$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2> /dev/null | grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1)}
MIRROR=${MIRROR% } MIRROR=${MIRROR%/}
mkdir -p "$WORK/source" "$WORK/make" && cd "$WORK"
if [ ! -e python/done ]; then
  curl -sSf "$MIRROR/pool/main/p/python$SHORT/python${SHORT}_$VERSION.orig.tar.xz" | tar -xJ -C source --strip-components 1
  (cd make && ../source/configure -q --disable-gil --disable-test-modules --prefix="$WORK/python" && make -s -j2 && make -s install) > python.log 2>&1
  touch python/done
fi
[ -e venv/done ] || {
  "python/bin/python${SHORT}t" -m venv venv
  venv/bin/python -m pip install --quiet numpy scikit-learn narwhals pandas pytest hypothesis
  touch venv/done
}
venv/bin/python -m pip install --quiet --no-deps "$SOURCE"
cd "$SOURCE"
"$WORK/venv/bin/python" -c "import sys, sapwood; sapwood.Dataset([[1.0]], [1.0]); sys.exit(sys._is_gil_enabled())"
"$WORK/venv/bin/python" tools/replay.py --check
"$WORK/venv/bin/python" -m pytest -q -p no:cacheprovider -m 'threads or tiny' tests/smoke tests/system/test_process.py
