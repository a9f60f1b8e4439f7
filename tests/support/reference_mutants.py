"""Mutants of the reference: one mistake each, which a test must notice.

``wrong(monkeypatch, "move", (old, new), ...)`` makes `pycct.reference` run a copy of one of its
modules with replaced text. Each old text must occur exactly once, so that no mutant is lost when
the code changes.
"""

import sys
import types
from pathlib import Path

from pycct import reference


def wrong(monkeypatch, module, *changes):
    """Use the names of a changed copy of a reference module everywhere."""
    path = Path(reference.__file__).parent / f"{module}.py"
    source = path.read_text()
    for old, new in changes:
        assert source.count(old) == 1, f"{module}.py has {source.count(old)} times: {old}"
        source = source.replace(old, new)
    original = sys.modules[f"pycct.reference.{module}"]
    copy = types.ModuleType(f"pycct.reference._wrong_{module}")
    copy.__file__ = str(path)
    monkeypatch.setitem(sys.modules, copy.__name__, copy)
    exec(compile(source, str(path), "exec"), copy.__dict__)
    # Functions and the move itself; plain data keeps its types.
    right = {
        n: v
        for n, v in vars(original).items()
        if getattr(v, "__module__", "") == original.__name__ and (isinstance(v, types.FunctionType) or n == "Move")
    }
    for user in [m for n, m in sys.modules.items() if n.startswith("pycct.reference.") and m is not copy]:
        for name, value in right.items():
            if vars(user).get(name) is value:
                monkeypatch.setattr(user, name, vars(copy)[name])
