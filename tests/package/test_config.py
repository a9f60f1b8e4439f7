"""What pycct says of itself."""

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import pycct
from pycct.runtime.version import RESULTS_VERSION

ROOT = Path(pycct.__file__).parent.parent
KEYS = {
    *("version", "results_version", "build", "why_plain", "instruction_set", "compiler", "abi_version"),
    *("threads", "gil", "python", "numpy", "platform"),
}


def test_it_returns_and_prints_the_same(capsys):
    told = pycct.show_config()
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert set(told) == KEYS
    assert lines == {name: str(value) for name, value in told.items() if value != ""}
    assert told["version"] == pycct.__version__
    assert told["results_version"] == RESULTS_VERSION
    assert told["build"].startswith("compiled")
    assert told["numpy"] == numpy.__version__
    assert told["instruction_set"].split()[0] in ("x86-64", "aarch64", "other")


def test_printing_elsewhere_or_not_at_all(capsys):
    file = io.StringIO()
    told = pycct.show_config(file)
    assert told["compiler"] in file.getvalue()
    assert pycct.show_config(file=None) == told
    assert capsys.readouterr().out == ""
    with pytest.raises(TypeError, match="file"):
        pycct.show_config("out.txt")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_threads_are_those_it_may_use():
    assert pycct.show_config(file=None)["threads"] == len(os.sched_getaffinity(0))
    script = (
        "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
        "import pycct; print(pycct.show_config(file=None)['threads'])"
    )
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"


def test_plain_python_says_why():
    script = "import pycct; told = pycct.show_config(); assert told['compiler'] is None, told"
    env = os.environ | {"PYTHONPATH": str(ROOT), "PYCCT_PURE": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert (lines["build"], lines["why_plain"]) == ("plain Python", "PYCCT_PURE is set")
    assert "compiler" not in lines
