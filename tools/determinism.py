"""Compare one fixed run of 100,000 moves over all compilers and ways of calling.

The program fails unless all runs have one hash. Builds go to build/determinism/NAME, and the table
to docs/determinism_table.md. The run itself is tests/support/hash_run.py.

    python tools/determinism.py                    with this interpreter
    python tools/determinism.py --qemu-root DIR    also aarch64: zig, qemu-user, and the Python of
                                                   the same version in the Debian arm64 root DIR
                                                   (see wheels/README.md)
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "determinism_table.md"
SHORT = f"{sys.version_info[0]}.{sys.version_info[1]}"
# The flags of setup.py without the optimisation level and the inline limit.
PLAIN = "-ffp-contract=off -fno-math-errno -fvisibility=hidden -Wno-unused-function -g0"

WAYS = [
    ("one by one", ""),
    ("one by one, empty caches before each move", "--cold"),
    ("actors and triangles in the opposite order", "--backwards"),
    ("2 threads", "--threads 2"),
    ("8 threads", "--threads 8"),
    *((f"`move_many`, {n} thread{'s' * (n > 1)}", f"--how move_many --threads {n}") for n in (1, 2, 8)),
    *((f"`Crowd`, {n} thread{'s' * (n > 1)}", f"--how crowd --threads {n}") for n in (1, 2, 8)),
]


def first_line(command):
    """Return the first line that a command prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0].strip()


def builds(qemu_root):
    """Return name, flags, environment and Python command of every possible build."""
    run = [sys.executable]
    found = []
    if shutil.which("gcc"):
        name = "gcc " + first_line(["gcc", "-dumpfullversion"])
        gcc = {"CC": "gcc", "LDSHARED": "gcc -shared"}
        found += [(f"{name} -O0", "-O0", gcc, run), (f"{name} -O3", "-O3", gcc, run)]
        if platform.machine() == "x86_64" and "avx2" in Path("/proc/cpuinfo").read_text():
            found.append((f"{name} -O3 -march=x86-64-v3 (AVX2, FMA)", "-O3 -march=x86-64-v3", gcc, run))
    if shutil.which("clang"):
        clang = {"CC": "clang", "LDSHARED": "clang -shared"}
        found += [(f"clang {first_line(['clang', '-dumpversion'])} -O2", "-O2", clang, run)]
    try:
        import ziglang  # noqa: F401
    except ImportError:
        print("no zig: aarch64 is skipped", file=sys.stderr)
        return found
    if qemu_root and shutil.which("qemu-aarch64-static"):
        script = ROOT / "build" / "determinism" / "zigcc"
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ziglang cc -target aarch64-linux-gnu.2.17 "$@"\n')
        script.chmod(0o755)
        short = SHORT
        found.append(
            (
                f"zig {first_line([sys.executable, '-m', 'ziglang', 'version'])} for aarch64, under qemu-user",
                "-O3",
                {
                    "CC": str(script),
                    "LDSHARED": f"{script} -shared",
                    "_PYTHON_HOST_PLATFORM": "linux-aarch64",
                    "SETUPTOOLS_EXT_SUFFIX": f".cpython-{short.replace('.', '')}-aarch64-linux-gnu.so",
                },
                ["qemu-aarch64-static", "-L", qemu_root, f"{qemu_root}/usr/bin/python{short}"],
            )
        )
    return found


def build(name, flags, env):
    """Build pycct and install it into its own folder."""
    folder = ROOT / "build" / "determinism" / "".join(c if c.isalnum() else "_" for c in name)
    # A macro with the name keeps objects of another compiler with equal flags apart.
    marked = f"{flags} {PLAIN} -DPYCCT_BUILT_AS_{folder.name}"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--upgrade"]
    if "_PYTHON_HOST_PLATFORM" in env:
        # pip does not install for another machine, so unpack the wheel.
        wheels = folder.with_suffix(".wheel")
        shutil.rmtree(wheels, ignore_errors=True)
        command = [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "-w",
            str(wheels),
        ]
        subprocess.run([*command, "."], cwd=ROOT, env=os.environ | env | {"PYCCT_CFLAGS": marked}, check=True)
        shutil.rmtree(folder, ignore_errors=True)
        (wheel,) = wheels.glob("*.whl")
        subprocess.run([sys.executable, "-m", "zipfile", "-e", str(wheel), str(folder)], check=True)
        numpy = ["--target", str(folder), "--no-deps", "--only-binary", ":all:", "--implementation", "cp"]
        numpy += ["--python-version", SHORT, "--abi", "cp" + SHORT.replace(".", "")]
        for tag in ("manylinux_2_17_aarch64", "manylinux2014_aarch64", "manylinux_2_28_aarch64"):
            numpy += ["--platform", tag]
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *numpy, "numpy>=2.0"], check=True)
    else:
        command += ["--target", str(folder), "."]
        subprocess.run(command, cwd=ROOT, env=os.environ | env | {"PYCCT_CFLAGS": marked}, check=True)
    return folder


def hashes(run, folder, arguments):
    """Return the hashes that hash_run prints, or None if the build lacks this way of moving."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYCCT_")}
    env |= {"PYTHONPATH": str(folder), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [*run, str(ROOT / "tests" / "support" / "hash_run.py"), *arguments.split()], env=env,
        capture_output=True, text=True
    )
    if "has no attribute" in done.stderr:
        return None
    if done.returncode:
        raise SystemExit(done.stderr)
    return [*done.stdout.split(), ""][:2]


def main():
    """Build, run, compare and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--qemu-root", help="a Debian arm64 root")
    parser.add_argument("--here", action="store_true", help="only the ways of calling, with the build in place")
    args = parser.parse_args()
    sys.path.insert(0, str(ROOT / "pycct" / "runtime"))
    from version import RESULTS_VERSION

    rows, all_found = [], set()

    def row(what, found):
        paths, observed = found
        all_found.add(("paths", paths))
        if observed:
            all_found.add(("observed", observed))
        rows.append(f"| {what} | `{paths}` | {f'`{observed}`' if observed else ''} |")
        print(rows[-1], flush=True)

    plain = None
    if args.here:
        plain = [sys.executable], ROOT
    for name, flags, env, run in [] if args.here else builds(args.qemu_root):
        folder = build(name, flags, env)
        row(f"built by {name}", hashes(run, folder, ""))
        if name.endswith("-O3") or plain is None:
            plain = run, folder
    if plain is None:
        raise SystemExit("no compiler found")
    for what, arguments in WAYS:
        found = hashes(*plain, arguments)
        if found is not None:
            row(what, found)
    TABLE.write_text(
        f"""# Determinism, measured

`make determinism` writes this table with `tests/support/hash_run.py`: 100,000 moves of 200
characters on terrain, stairs, solids and lifts. The first hash covers every position and collision
flag. The second one covers all other observable results. Results version {RESULTS_VERSION}. All rows
must be equal. `tests/properties/test_determinism.py` contains the hashes and checks the ways of
calling in every run, also with flush-to-zero left on.

| | positions and flags | grounds, hits, velocities, states |
|---|---|---|
"""
        + "\n".join(rows)
        + "\n"
    )
    if len(all_found) != 2:
        raise SystemExit(f"the hashes differ: see {TABLE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
