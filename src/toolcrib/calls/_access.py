"""Access: what the token of a request allows and says of its holder, without the token itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, cast

from toolcrib.errors import explain_options

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@explain_options()
@dataclass(frozen=True, slots=True)
class Access:
    """The scopes and the claims of a request's token. A tool, a hook and a policy read them from the run.

    Attributes:
        scopes: The scopes that were granted.
        claims: The authorization server's statements about the holder; they cannot be changed.
        ids: The ids of the holder wherever they log in: the subject with the issuer, a verified email address, and the
            claim that names the principal. A rule that keeps out the one who asks compares them all.
    """

    scopes: frozenset[str] = frozenset()
    claims: Mapping[str, Any] = field(default_factory=lambda: _NOTHING, repr=False)
    ids: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scopes", frozenset(self.scopes))
        object.__setattr__(self, "claims", _frozen(self.claims))

    def lacks(self, needed: Iterable[str]) -> tuple[str, ...]:
        """Return which of these scopes were not granted, in order."""
        return tuple(sorted(frozenset(needed) - self.scopes))


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return MappingProxyType({key: _frozen(inner) for key, inner in cast("Mapping[str, Any]", value).items()})
    if isinstance(value, list | tuple):
        return tuple(_frozen(inner) for inner in cast("list[Any]", value))
    return value
