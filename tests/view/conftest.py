"""A recording, and a browser."""

import shutil

import numpy as np
import pytest

from pycct import Behavior, Box, Crowd, Mesh, Scene
from pycct.record import record

DT = 1 / 60


@pytest.fixture
def recorded(tmp_path):
    scene = Scene()
    scene.add(Mesh([(-9, -9, 0), (9, -9, 0), (9, 9, 0), (-9, 9, 0)], [(0, 1, 2), (0, 2, 3)]))
    scene.add(Box((0.2, 5, 1)), (3, 0, 1))
    lift = scene.add(Box((1, 1, 0.1)), (-3, 0, 0.1), body="kinematic", behavior=Behavior.CAN_RIDE)
    crowd = Crowd(scene, [(0, 0, 0.91), (0, 3, 0.91), (-3, 0, 1.11)])
    with record(tmp_path / "r", scene, crowd):
        for tick in range(30):
            lift.move_to((-3, 0, 0.1 + 0.02 * tick))
            if tick == 10:
                crowd.add([(5, 5, 0.91)], radius=0.2)
            crowd.move(np.tile((0.05, 0.0, -0.01), (len(crowd), 1)), DT)
    return tmp_path / "r"


# No wider scope: the driver keeps an event loop running, which asyncio.run() of other tests meets.
@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=path, args=[
            "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"])
        yield found
        found.close()
