"""Control groups of Linux, by which the kernel limits all programs of a sandbox, or of a queue, together."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from toolcrib.errors import SandboxUnavailable
from toolcrib.sandbox._worker.messages import THREADS

CONTROL_GROUP: Final = "cgroup"
"""The name of the layer."""

_OF_INTERPRETERS: Final = 256 << 20  # bytes, beside a quarter of what programs may take
_HANDED_DOWN: Final = "cgroup.subtree_control"
_ADVICE: Final = "with systemd, Delegate=yes and DelegateSubgroup=host of the service allow it"


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """A group for programs: its folders, of which there may be one for each limit.

    Attributes:
        folders: Each with its limits, by the names of their files, if it is made and removed with the sandbox.
        problem: The reason why the group has no folders, where it has none.
        is_required: Whether nothing runs without it.
    """

    folders: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    problem: str = ""
    is_required: bool = False

    def checked(self, state: str) -> str:
        """Return `on`, or why the group is not joined, given what the process that should have says.

        Raises:
            SandboxUnavailable: It is required.
        """
        if self.is_required and state != "on":
            raise SandboxUnavailable(
                f"programs cannot be put into the control group {', '.join(self.folders)}: {state}",
                CONTROL_GROUP,
                "Make it, and let this user write its cgroup.procs and that of the group above both",
            )
        return self.problem or state


def named_group(folder: str | Path | None) -> ControlGroup | None:
    """Return the group that the user has made, with its limits."""
    return None if folder is None else ControlGroup({str(folder): {}}, is_required=True)


def own_group(memory: int) -> ControlGroup:
    """Return a group below the one of this process; it is made with the first zygote in it.

    Args:
        memory: Bytes that programs may take together. The group may have a quarter more, and what interpreters take.
    """
    name = f"toolcrib-{secrets.token_hex(4)}"
    most = memory * 5 // 4 + _OF_INTERPRETERS
    try:
        groups = _groups_of_host()
        if "memory" in groups and "pids" in groups:  # version 1
            limits = [(groups["memory"], "memory.limit_in_bytes", most), (groups["pids"], "pids.max", THREADS)]
        else:
            above = handing_down(groups[""])
            limits = [(above, "memory.max", most), (above, "pids.max", THREADS)]
        found: dict[str, dict[str, int]] = {}
        for above, file, limit in limits:
            if not os.access(above, os.W_OK):
                raise PermissionError(f"{above} may not be written; {_ADVICE}")
            found.setdefault(str(above / name), {})[file] = limit
    except (OSError, KeyError) as error:
        return ControlGroup(problem=f"unavailable: {error}")
    return ControlGroup(found)


def _groups_of_host() -> dict[str, Path]:
    """Return the folders of this process's groups by controller; that of version 2 has no name."""
    paths: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        paths |= dict.fromkeys(controllers.split(","), path)
    found: dict[str, Path] = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        place, _, about = line.partition(" - ")
        kind, _, options = about.split()[:3]
        root, point = place.split()[3:5]
        for name in {"cgroup": options.split(","), "cgroup2": [""]}.get(kind, []):
            if name in paths and not (below := os.path.relpath(paths[name], root)).startswith(".."):
                found.setdefault(name, Path(point, below))
    return found


def handing_down(group: Path) -> Path:
    """Return the group of version 2 whose children may have limits: the own one, or that above if it is handed to us.

    Raises:
        OSError: A group that holds processes cannot give its children limits.
    """
    if _hands_down(group):
        return group
    above = group
    with suppress(OSError):
        above = group.parent if os.getxattr(group.parent, "user.delegate") == b"1" else group
    if not _hands_down(above):
        try:
            (above / _HANDED_DOWN).write_text("+memory +pids")
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}; {_ADVICE}", str(above)) from None
    return above


def _hands_down(group: Path) -> bool:
    return {"memory", "pids"} <= set((group / _HANDED_DOWN).read_text().split())
