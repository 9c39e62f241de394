#!/bin/sh
# Builds the core for aarch64 and runs the replay and the smoke suite under qemu-user, once for each compiler.
#
# In: the names of compilers (gcc, clang; both where none is given). Out: build/arm, and the last lines of each run;
# exit status 1 where a hash differs or a test fails. The root of an ARM Debian comes from packages, without its own
# installation; Python packages for ARM come as wheels. Takes about three minutes a compiler on two cores.
set -eu
cd "$(dirname "$0")/.."
SOURCE=$PWD WORK=$PWD/build/arm PYTHON=${PYTHON:-python3.11}
PACKAGES="python3.11 python3.11-minimal libpython3.11-stdlib libpython3.11-minimal libpython3.11-dev libc6 libstdc++6 libgcc-s1
  zlib1g libexpat1 libffi8 libssl3 libbz2-1.0 liblzma5 libsqlite3-0 libuuid1 libcrypt1 libgfortran5 libgomp1 libatomic1"

for tool in qemu-aarch64 aarch64-linux-gnu-g++ "$PYTHON"; do
  command -v "$tool" > /dev/null || {
    echo "$tool is missing. On Debian 12, as root:"
    echo "  dpkg --add-architecture arm64 && apt-get update"
    echo "  apt-get install qemu-user g++-aarch64-linux-gnu clang lld python3-venv"
    exit 1
  }
done

mkdir -p "$WORK/debs" && cd "$WORK"
if [ ! -e root/done ]; then
  (cd debs && apt-get -qq download $(printf '%s:arm64 ' $PACKAGES))
  for deb in debs/*.deb; do dpkg-deb -x "$deb" root; done
  cp -rL root/usr/include/python3.11 include
  cp root/usr/include/aarch64-linux-gnu/python3.11/pyconfig.h include/
  touch root/done
fi
if [ ! -e packages/done ]; then
  "$PYTHON" -m venv venv
  venv/bin/python -m pip install --quiet nanobind cmake ninja
  venv/bin/python -m pip download --quiet --dest wheels --only-binary=:all: --python-version 3.11 \
    --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux2014_aarch64 \
    --platform manylinux_2_17_aarch64 numpy scikit-learn scipy narwhals joblib threadpoolctl pytest hypothesis
  for wheel in wheels/*.whl; do venv/bin/python -m zipfile -e "$wheel" packages; done
  touch packages/done
fi

LIBRARIES=$WORK/root/lib/aarch64-linux-gnu:$WORK/root/usr/lib/aarch64-linux-gnu
arm() { # the Python of the ARM root, with the package of one compiler
  site=$1 && shift
  qemu-aarch64 -L "$WORK/root" -E LD_LIBRARY_PATH="$LIBRARIES" -E PYTHONPATH="$site:$WORK/packages" \
    "$WORK/root/usr/bin/python3.11" "$@"
}

for compiler in ${*:-gcc clang}; do
  case $compiler in
  gcc) flags="-DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++" ;;
  clang) flags="-DCMAKE_CXX_COMPILER=clang++ -DCMAKE_CXX_COMPILER_TARGET=aarch64-linux-gnu -DCMAKE_MODULE_LINKER_FLAGS=-fuse-ld=lld
    -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld" ;;
  *) echo "no compiler named $compiler; choose gcc or clang" && exit 1 ;;
  esac
  venv/bin/cmake -G Ninja -S "$SOURCE" -B "$compiler" -DCMAKE_BUILD_TYPE=Release -DSAPWOOD_LTO=OFF \
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_MAKE_PROGRAM="$WORK/venv/bin/ninja" $flags \
    -DPython_EXECUTABLE="$WORK/venv/bin/python" -DPython_INCLUDE_DIR="$WORK/include" ${CMAKE_ARGS:-} > "$compiler.log"
  venv/bin/ninja -C "$compiler" > "$compiler.log"
  rm -rf "site-$compiler" && mkdir "site-$compiler" && cp -r "$SOURCE/src/sapwood" "site-$compiler/"
  rm -f "site-$compiler"/sapwood/_core*.so
  cp "$compiler"/_core*.so "site-$compiler/sapwood/_core.cpython-311-aarch64-linux-gnu.so"
  echo "aarch64, $compiler:"
  (cd "$SOURCE" && arm "$WORK/site-$compiler" tools/replay.py --check)
  (cd "$SOURCE" && arm "$WORK/site-$compiler" -m pytest -q -p no:cacheprovider tests/smoke)
done
