"""The thread pool does all work once, also after fork, with default rounding."""

import ctypes
import ctypes.util
import multiprocessing
import os
import platform
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import pycct

pool = pytest.importorskip("pycct.runtime.thread_pool")


def work(n=5000, chunk=7, threads=2, pace=None):
    sums, _ = pool._selftest(n, chunk, threads, pace)
    return sums.tolist() == list(range(1, n + 1))


@pytest.mark.parametrize("pace", [None, 0.0, 1e-3, 10.0])
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_everything_is_done_once(threads, pace):
    for n in (0, 1, 6, 7, 8, 1000):
        assert work(n, 7, threads, pace)
    for chunk in (1, 64, 10**6):
        assert work(1000, chunk, threads, pace)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_what_is_ready_is_done_while_the_rest_becomes_so(threads, chunk):
    for n, end in ((0, 0), (1, 0), (1, 1), (500, 0), (500, 1), (500, 333), (500, 499), (500, 500)):
        done = pool._selftest_ready(n, end, chunk, threads)
        assert done.tolist() == [*range(1, end + 1), *[0] * (n - end)]


@pytest.mark.parametrize("pace", [None, 0.0, 1e-3, 10.0])
def test_threads_that_sleep_wake_up(pace):
    for pause in (0, 0.0001, 0.001, 0.02):
        for n in (200, 20, 100_000) * 6:
            assert work(n, 3, 3, pace)
            time.sleep(pause)


def test_more_threads_than_there_can_be():
    sums, started = pool._selftest(3000, 1, 10**9)
    assert sums.tolist() == list(range(1, 3001))
    assert started < 256


def test_several_callers_at_once():
    wrong = []

    def call():
        for k in range(100):
            if not work(500, 5, 3, (None, 0.0, 1.0)[k % 3]):
                wrong.append(1)

    callers = [threading.Thread(target=call) for _ in range(4)]
    for c in callers:
        c.start()
    for c in callers:
        c.join()
    assert not wrong


@pytest.mark.parametrize("bad", [0, -1, -(10**30)])
def test_too_few_threads(bad):
    with pytest.raises(ValueError, match="threads"):
        pool._selftest(1, 1, bad)


@pytest.mark.parametrize("bad", [1.0, "2", None, True])
def test_threads_is_an_integer(bad):
    with pytest.raises(TypeError, match="threads"):
        pool._selftest(1, 1, bad)


def _child(queue):
    queue.put(work(2000, 3, 3))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own():
    assert work(2000, 3, 3)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=_child, args=(queue,)) for _ in range(2)]
    for c in children:
        c.start()
    assert [queue.get(timeout=60) for _ in children] == [True, True]
    for c in children:
        c.join(60)
        assert c.exitcode == 0
    assert work(2000, 3, 3)


def test_an_interpreter_ends_with_threads_asleep_or_at_work():
    # A daemon thread is in the middle of a batch when the program ends.
    program = """
import threading, time
from pycct.runtime import thread_pool as _pool
_pool._selftest(1000, 3, 4)
def forever():
    while True:
        _pool._selftest(100000, 3, 4)
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.05)
print("end")
"""
    where = {**os.environ, "PYTHONPATH": str(Path(pycct.__file__).parent.parent)}
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", program], env=where, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="knows the floating-point environment of x86-64"
)
def test_flush_to_zero_of_others_is_off_during_a_batch_and_on_again_after():
    libm = ctypes.CDLL(ctypes.util.find_library("m"))
    env = (ctypes.c_uint8 * 64)()
    assert libm.fegetenv(env) == 0
    before = bytes(env)
    word = int.from_bytes(before[28:32], "little")
    env[28:32] = (word | 0x8040).to_bytes(4, "little")  # flush to zero, denormals are zero
    try:
        assert libm.fesetenv(env) == 0
        tiny = float(np.float64(1e-310))
        lost = tiny * 0.5 == 0.0
        right = work(5000, 7, 3) and work(10, 100, 1)
        after = tiny * 0.5 == 0.0
    finally:
        env[:64] = before
        libm.fesetenv(env)
    assert lost, "the test could not switch it on"
    assert right
    assert after
