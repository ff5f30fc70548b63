"""Trust in what a server says of its tools and results, as labels for a `Provenance` policy.

A server that the host does not trust can only lower trust: what it says in its own favour counts for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from toolcrib.adapters.mcp_client._values import RemoteTool
from toolcrib.tools import Effect, Trust

_TRUST: Final = "io.modelcontextprotocol/trust-annotations"  # the extension that SEP-1913 became
_ANNOTATIONS: Final = "annotations"  # where drafts of SEP-1913 had them
_UNTRUSTED: Final = ("untrusted", "openWorldHint", "maliciousActivityHint")
_PRIVATE: Final = ("sensitive", "privateHint", "sensitiveHint")


@dataclass(frozen=True, slots=True)
class Warnings:
    """What a server warns of in the `_meta` of a tool or a result.

    Attributes:
        untrusted: Others may have written it.
        private: It is not for everybody.
    """

    untrusted: bool = False
    private: bool = False

    @property
    def labels(self) -> frozenset[str]:
        """What it warns of, by name."""
        return frozenset(name for name in ("untrusted", "private") if getattr(self, name))


def warnings_in(meta: Mapping[str, Any] | None) -> Warnings:
    """Return what is warned of; what is written in another way than expected is a warning, too."""
    found: list[Any] = [(meta or {}).get(key) for key in (_TRUST, _ANNOTATIONS)]
    said = [cast("Mapping[str, Any]", each) for each in found if isinstance(each, Mapping)]
    return Warnings(_says(said, _UNTRUSTED), _says(said, _PRIVATE))


def _says(said: list[Mapping[str, Any]], names: tuple[str, ...]) -> bool:
    return any(each.get(name) not in (None, False, "none", "low") for each in said for name in names)


def effect_of(about: RemoteTool, *, trusted: bool) -> Effect | None:
    """Return what a tool does, by its hints; None where they do not say so, or not reliably."""
    if about.kind == "resource":
        return "none"  # it takes no arguments, and the protocol has nothing but reading for it
    if about.read_only:
        return None if not trusted else "fetch" if about.open_world else "none"
    return "send" if about.open_world else None


def source_of(about: RemoteTool, warned: Warnings, *, trusted: bool) -> Trust:
    """Return how far a tool's results can be trusted, by its hints."""
    is_own = trusted and about.open_world is False and not warned.untrusted
    return "trusted" if is_own else "untrusted"
