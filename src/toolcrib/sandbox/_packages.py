"""Packages of a sandbox: the modules that its programs may import beside Python's own, and where they lie."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_NAME: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_PYTHON: Final = f"python{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True, slots=True)
class Packages:
    """Packages for the programs of a sandbox.

    Attributes:
        names: The modules that are imported before the worker is sealed: `pandas`, `scipy.stats`.
        folders: Where the packages lie.
    """

    names: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    @classmethod
    def of(cls, names: Iterable[str], environment: str | Path | None) -> Packages:
        """Return the packages of these names, in this process's environment or in the one of a folder.

        Raises:
            TypeError: The names are one text.
            ValueError: A name is not a module's, or the folder is not an environment of this version of Python.
        """
        if isinstance(names, str):
            raise TypeError(f"packages must be a list of names: packages=[{names!r}]")
        chosen = tuple(names)
        for name in chosen:
            if _NAME.fullmatch(name) is None:
                raise ValueError(
                    f"packages: {name!r:.100} is not the name of a module. Write what a program imports: `sklearn`, "
                    "and not the project's name, `scikit-learn`"
                )
        return cls(chosen, _folders(environment)) if chosen else cls()

    @property
    def tops(self) -> tuple[str, ...]:
        """The packages themselves, without parts of them: `scipy` for `scipy.stats`."""
        return tuple(dict.fromkeys(name.partition(".")[0] for name in self.names))


def _folders(environment: str | Path | None) -> tuple[str, ...]:
    if environment is None:
        return tuple(folder for folder in sys.path if folder and Path(folder).is_dir())
    root = Path(environment).resolve()
    if not root.is_dir():
        raise ValueError(f"packages_from: there is no folder {root}")
    found = [folder for lib in ("lib", "lib64") if (folder := root / lib / _PYTHON / "site-packages").is_dir()]
    if found:
        return tuple(dict.fromkeys(str(folder.resolve()) for folder in found))
    if others := sorted(path.parent.name for path in root.glob("lib/python*/site-packages")):
        raise ValueError(
            f"packages_from: {root} is an environment of {', '.join(others)}, and programs run in {_PYTHON}. Make one "
            f"of {_PYTHON}"
        )
    return (str(root),)
