"""Layers around workers: which are required, which are in force, and what is said of those that are lacking."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from toolcrib.errors import SandboxUnavailable
from toolcrib.sandbox._control_group import CONTROL_GROUP
from toolcrib.sandbox._worker.messages import LAYERS
from toolcrib.sandbox._zygote import Ready

REQUIRED: Final = frozenset({"no_new_privs", "seccomp", "rlimits", "landlock|empty_root"})
"""The layers without which nothing runs by default; `a|b` is either."""

_REMEDIES: Final[Mapping[str, str]] = {
    "no_new_privs": "It needs Linux",
    "namespaces": "Allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces > 0)",
    "empty_root": "Allow user namespaces, or start as root with the right to mount",
    "dropped_root": "Start as a user who is not root, or give the container CAP_SETUID and CAP_SETGID",
    "no_capabilities": "It needs Linux",
    "landlock": "It needs Linux 5.13 or newer with `landlock` among the security modules (kernel option lsm=)",
    "seccomp": "It needs Linux on x86_64 or aarch64, in a container whose own filter allows seccomp()",
    "rlimits": "Raise the hard limits that this process was started with",
    "closed_descriptors": "It needs a POSIX system",
    "empty_environment": "It needs a POSIX system",
    CONTROL_GROUP: "Give the queue most_memory, or name a group whose cgroup.procs this user may write (cgroup=)",
}
_ALTERNATIVES: Final[Mapping[str, str]] = {
    "ProcessSandbox": (
        "Or choose by name a sandbox that requires no such layer: MontySandbox(), from pip install 'toolcrib[monty]'"
    ),
    "MontySandbox": "Or require less of it",
}
_log = logging.getLogger("toolcrib.sandbox")


class LayerCheck:
    """Checks what guests report of their layers.

    Args:
        require: Layers without which nothing runs; `a|b` is either of them.
        skip: Layers that are not put on.
        sandbox: The class of the sandbox.
        warn: Whether a layer that is lacking is a warning in the log, once.

    Attributes:
        layers: The layers in force, in the order of `LAYERS`; empty before the first report.
        report: Every layer with `on`, `skipped`, or `unavailable: why`.

    Raises:
        ValueError: There is no layer of that name.
    """

    def __init__(
        self,
        require: frozenset[str] = REQUIRED,
        skip: frozenset[str] = frozenset(),
        *,
        sandbox: Literal["ProcessSandbox", "MontySandbox"] = "ProcessSandbox",
        warn: bool = False,
    ) -> None:
        unknown = (skip | {name for choice in require for name in choice.split("|")}) - {*LAYERS, CONTROL_GROUP}
        if unknown:
            raise ValueError(f"there is no layer {', '.join(sorted(unknown))}; there are {', '.join(LAYERS)}")
        self._require, self.skip, self._sandbox, self._warns = require, skip, sandbox, warn
        self.layers: tuple[str, ...] = ()
        self.report: Mapping[str, str] = MappingProxyType({})

    def take(self, ready: Ready) -> None:
        """Read a report.

        Raises:
            SandboxUnavailable: A required layer is not in force, or one that is does not hold.
        """
        self._check(ready)
        warns, self._warns = self._warns, False
        lacking: dict[str | None, list[str]] = {}
        for layer in LAYERS:
            if ready.layers.get(layer) != "on" and layer not in self.skip:
                lacking.setdefault(ready.layers.get(layer), []).append(layer)
        if warns and lacking:
            states = "; ".join(
                f"{', '.join(names)} is {state}. {_REMEDIES[names[0]]}" for state, names in lacking.items()
            )
            _log.warning(
                "programs are confined, and could be confined better: %s. "
                '%s(require="all") refuses to run programs like that',
                states,
                self._sandbox,
            )
        self.report = MappingProxyType(ready.layers)
        self.layers = tuple(name for name in (*LAYERS, CONTROL_GROUP) if ready.layers.get(name) == "on")

    def _check(self, ready: Ready) -> None:
        alternative = _ALTERNATIVES[self._sandbox]
        for layer, why in ready.broken.items():
            raise SandboxUnavailable(
                f"programs are not confined here: {layer} is in force and does not hold, {why}", layer, alternative
            )
        for wanted in sorted(self._require):
            alternatives = wanted.split("|")
            if not any(ready.layers.get(layer) == "on" for layer in alternatives):
                states = ", and ".join(f"{layer} is {ready.layers.get(layer)}" for layer in alternatives)
                remedies = ". ".join(_REMEDIES[layer] for layer in alternatives)
                raise SandboxUnavailable(
                    f"programs cannot be confined here: {states}", alternatives[0], f"{remedies}. {alternative}"
                )
