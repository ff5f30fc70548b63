"""A program under the seal: a script that puts the seal on and becomes the program, started in the program's place."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from toolcrib.sandbox._layers import LAYERS
from toolcrib.sandbox._worker.launch import FOLDER
from toolcrib.sandbox._worker.messages import CHECK
from toolcrib.sandbox._zygote import Ready

_SCRIPT: Final = """\
#!{python} {flags}
import runpy, sys
sys.argv[1:1] = [{options!r}]
runpy.run_path({folder!r}, run_name="__main__")
"""
_LONGEST: Final = 120  # characters of a script's first line that every kernel reads
_SECONDS: Final = 30.0
_LIBRARY: Final = re.compile(r"(?:=> |^\s+)(/\S+)", re.MULTILINE)


class SealedProgram:
    """A program that runs under the seal, tried once.

    Args:
        program: Its path.
        trial: Arguments with which it soon ends well, given nothing to read.
        skip: Layers to leave off.

    Attributes:
        report: The states of all layers; a program that does not start under them has none.
        command: The path to start it by, for as long as this object is there; without a seal its own.
    """

    def __init__(self, program: str, trial: Sequence[str], skip: frozenset[str]) -> None:
        self._folder, self._made_by = "", os.getpid()
        try:
            if sys.platform != "linux":
                raise OSError("it needs Linux")
            self._folder = tempfile.mkdtemp(prefix="toolcrib-")
            options = {"program": program, "libraries": _libraries([program, *trial]), "skip": sorted(skip)}
            command = [self._script("trial", {**options, "layers": {}}), CHECK, *trial]
            ran = _run(command, {})
            if ran.returncode != 0:
                words = ran.stderr.decode(errors="replace").strip().rpartition("\n")[2]
                raise OSError(f"the program does not start under it ({words or f'status {ran.returncode}'})")
            report = json.loads(ran.stdout)
            self.report = Ready(report["ready"], report["broken"])
            self.command = self._script("program", {**options, "layers": self.report.layers})
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self.report = Ready(dict.fromkeys(LAYERS, f"unavailable: {error}"), {})
            self.command = program

    def __del__(self) -> None:
        if self._folder and os.getpid() == self._made_by:  # a forked child leaves it to its parent
            shutil.rmtree(self._folder, ignore_errors=True)

    def _script(self, name: str, options: Mapping[str, Any]) -> str:
        """Write a script, and return its path."""
        flags = "-ISB" if sys.dont_write_bytecode else "-IS"
        if not sys.executable or " " in sys.executable or len(sys.executable) + len(flags) > _LONGEST:
            raise OSError(f"a script cannot name this Python by its path, {sys.executable!r}")
        text = json.dumps({"serve": "program", **options})
        script = Path(self._folder, name)
        script.write_text(_SCRIPT.format(python=sys.executable, flags=flags, options=text, folder=FOLDER))
        script.chmod(0o700)
        return str(script)


def _libraries(command: Sequence[str]) -> list[str]:
    """Return the paths of the libraries that a program loads, and that of its loader, which names them itself."""
    return _LIBRARY.findall(_run(command, {"LD_TRACE_LOADED_OBJECTS": "1"}).stdout.decode())


def _run(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
    )
