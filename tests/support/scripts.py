"""Scripts outside of the package, as modules."""
import importlib.util


def load(path):
    """Run a script that is in no package, and return its module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
