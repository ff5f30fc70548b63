"""The command of the guest: `python FOLDER OPTIONS`, where FOLDER is this one, by any name.

OPTIONS is a JSON object. Its `serve` is `channel`, `zygote`, `commands` or `program`; see the modules that
are named below.
"""

import importlib
import importlib.util
import json
import os
import sys

__name__ = "toolcrib_worker.__main__"  # the frames of `__main__` are the program's
_FOLDER = os.path.dirname(os.path.abspath(__file__))
_SERVES = {"zygote": "_zygote", "commands": "_commands", "channel": "_guest", "program": "_next_program"}


def _load() -> None:
    """Load the folder as the package `toolcrib_worker`."""
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != _FOLDER]
    place = os.path.join(_FOLDER, "__init__.py")
    spec = importlib.util.spec_from_file_location("toolcrib_worker", place, submodule_search_locations=[_FOLDER])
    if spec is None or spec.loader is None:
        raise ImportError(f"there is no guest in {_FOLDER}")
    package = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = package
    spec.loader.exec_module(package)


_load()
_options = json.loads(sys.argv[1])
importlib.import_module(f"toolcrib_worker.{_SERVES[_options['serve']]}").main(_options)
