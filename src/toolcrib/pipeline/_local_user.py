"""Name of the user of this process, for whom calls are made in a run without a principal."""

from __future__ import annotations

import getpass

__all__ = ["local_user"]


def local_user() -> str:
    """Return the name of the user that this process belongs to."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):  # a container's user may have no name
        return "local"
