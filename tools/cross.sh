#!/bin/sh
# Compiles the core for systems that are not at hand: macOS and Windows, with the clang of PyPI's ziglang.
#
# In: targets (all where none is given). Out: build/cross/TARGET; exit status 1 where a file does not compile. Objects
# only: nothing is linked or run, so this says that the code has no assumption of Linux, not that it works there.
set -eu
cd "$(dirname "$0")/.."
SOURCE=$PWD WORK=$PWD/build/cross PYTHON=${PYTHON:-python3}
mkdir -p "$WORK" && cd "$WORK"
[ -e venv/done ] || {
  "$PYTHON" -m venv venv
  venv/bin/python -m pip install --quiet nanobind cmake ninja ziglang
  touch venv/done
}
printf '#!/bin/sh\nexec "%s/venv/bin/python" -m ziglang c++ "$@"\n' "$WORK" > zig-c++
chmod +x zig-c++
LIBRARY=$WORK/$(venv/bin/python -c "import sys; print('python%d%d.lib' % sys.version_info[:2])")
touch "$LIBRARY" # asked for on Windows, where nothing is linked

# Python's headers are those of this machine; what they say of its types is changed to what holds on Windows.
INCLUDE=$(venv/bin/python -c "import sysconfig; print(sysconfig.get_path('include'))")
rm -rf include-windows && cp -rL "$INCLUDE" include-windows
cat > include-windows/pyconfig.h << 'END'
#define MS_WINDOWS
#define MS_WIN64
#define NT_THREADS
#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_VOID_P 8
#define SIZEOF_TIME_T 8
#define SIZEOF_WCHAR_T 2
#define SIZEOF_PID_T 8
#define ALIGNOF_MAX_ALIGN_T 16
#define HAVE_STDARG_PROTOTYPES
#define WITH_DOC_STRINGS 1
#define PY_LONG_LONG long long
typedef long long Py_ssize_t;
#define PY_SSIZE_T_MAX 9223372036854775807LL
#define HAVE_PY_SSIZE_T 1
END

for target in ${*:-aarch64-macos x86_64-macos x86_64-windows-gnu}; do
  include=$INCLUDE system=Darwin
  case $target in *windows*) include=$WORK/include-windows system=Windows ;; esac
  venv/bin/cmake -G Ninja -S "$SOURCE" -B "$target" -DCMAKE_BUILD_TYPE=Debug -DSAPWOOD_LTO=OFF \
    -DCMAKE_SYSTEM_NAME=$system -DCMAKE_SYSTEM_PROCESSOR="${target%%-*}" -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY \
    -DCMAKE_CXX_COMPILER="$WORK/zig-c++" -DCMAKE_CXX_COMPILER_TARGET="$target" -DCMAKE_CXX_FLAGS_DEBUG=-O1 \
    -DCMAKE_MAKE_PROGRAM="$WORK/venv/bin/ninja" -DPython_EXECUTABLE="$WORK/venv/bin/python" \
    -DPython_INCLUDE_DIR="$include" -DPython_LIBRARY="$LIBRARY" ${CMAKE_ARGS:-} > "$target.log" 2>&1 || { cat "$target.log"; exit 1; }
  objects=$(venv/bin/ninja -C "$target" -t targets all | sed -n 's/: CXX_COMPILER.*//p')
  venv/bin/ninja -C "$target" -k 0 $objects > "$target.log" || { grep -E "error|FAILED" -A 3 "$target.log"; exit 1; }
  echo "$target: $(echo "$objects" | wc -l) files compile"
done
