"""The training example runs all of its parts in some seconds."""
import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "train_ppo.py"
if not SCRIPT.exists():
    pytest.skip("examples/ is not here", allow_module_level=True)
pytest.importorskip("gymnasium", reason="the extra rl is not installed")
pytest.importorskip("stable_baselines3", reason="the extra train is not installed")


@pytest.mark.slow
def test_the_short_run_trains_tests_and_writes_the_curve(tmp_path):
    """No curve row is complete after 1,024 steps, so that the file contains its heading only."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, SCRIPT, "--short", "--out", tmp_path / "curve"], cwd=tmp_path, capture_output=True,
        env={**os.environ, "PYTHONPATH": path}, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"success on 4 unseen levels: \d+\.\d %", done.stdout)
    rows = list(csv.reader((tmp_path / "curve.csv").open()))
    assert rows[0] == ["seconds", "steps", "success"]
