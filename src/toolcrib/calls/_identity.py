"""Identities of those who answer requests, and what a rule requires of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from toolcrib._numbers import span_text
from toolcrib.calls._diff import printable
from toolcrib.calls._json import parse_time
from toolcrib.calls._stored import StoredFields
from toolcrib.errors import explain_options

__all__ = ["ANYBODY", "APPROVER_RULES", "Identity", "RequiredApprovers"]

ANYBODY: Final = "*"
"""The group of every person who has an identity."""
APPROVER_RULES: Final = "toolcrib:approvers:"
"""What a key in the metadata of an `Ask` begins with whose value is a list of `RequiredApprovers.to_dict()`.

The request has them as `required`, and no longer as metadata.
"""
_MOST_NAMED: Final = 5


@explain_options()
@dataclass(frozen=True, slots=True)
class Identity:
    """Who answers, as a login, a token or the host shows it.

    Attributes:
        id: What tells them from all others: the holder of a token, a claim of a login, an id of a chat.
        by: How it was shown, in a word for the record, such as `console`; `model` is a model, and no person.
        groups: The groups that the login says. Those of a rule's own list are not in it.
        until: When `groups` stop to count for further calls; with a time zone.

    Raises:
        ValueError: The id is empty or has a character that does not show, or `until` has no time zone.
    """

    id: str
    by: str = ""
    groups: tuple[str, ...] = ()
    until: datetime | None = None

    def __post_init__(self) -> None:
        if not self.id.strip() or not self.id.isprintable():
            raise ValueError(f"the id of an identity is a text that shows, and is {self.id!r:.80}")
        if self.until is not None and self.until.tzinfo is None:
            raise ValueError(f"until has no time zone: write datetime.now(UTC) + ..., not {self.until!r}")

    @property
    def is_model(self) -> bool:
        """Whether it is a model, and no person."""
        return self.by == "model"

    def __str__(self) -> str:
        return f"{self.id} ({self.by})" if self.by else self.id

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON shapes."""
        until = {} if self.until is None else {"until": self.until.isoformat()}
        return {"id": self.id, "by": self.by, **({"groups": list(self.groups)} if self.groups else {}), **until}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Identity:
        """Return the identity that `to_dict` described; raises ValueError when a field is missing."""
        values = StoredFields(cls, data)
        values["groups"], values["until"] = tuple(values.get("groups", ())), parse_time(values.get("until"))
        return cls(**values)


@explain_options()
@dataclass(frozen=True, slots=True)
class RequiredApprovers:
    """Who has to approve one request, by one rule.

    Attributes:
        rule: The name of the rule.
        of: How many people of each group; each person counts for one of the groups.
        members: The people of each group when the request was made, each as their ids.
        from_login: The groups that logins say.
        excluded: The ids of the one who asked, whose approval does not count.
        expires_after: After how many seconds a request that is not approved is refused; None for never.
    """

    rule: str
    of: Mapping[str, int]
    members: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict[str, Sequence[Sequence[str]]])
    from_login: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    expires_after: float | None = None

    @property
    def people(self) -> int:
        """How many people it takes."""
        return sum(self.of.values())

    def text(self) -> str:
        """Return it in words: `refunds over 1,000: 2 of finance (ann, bob, cid), not ada, who asked`."""
        parts = " and ".join(f"{number} of {self._group(group)}" for group, number in self.of.items())
        asked = f", not {printable(self.excluded[0])}, who asked" if self.excluded else ""
        within = "" if self.expires_after is None else f", within {span_text(self.expires_after)}"
        return f"{printable(self.rule)}: {parts}{asked}{within}"

    def _group(self, group: str) -> str:
        if group == ANYBODY:
            return "all who have an identity"
        names = [printable(ids[0]) for ids in self.members.get(group, ()) if not set(ids) & set(self.excluded)]
        names[_MOST_NAMED:] = ["..."] if len(names) > _MOST_NAMED else []
        return f"{printable(group)} ({', '.join(names)})" if names else printable(group)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON shapes."""
        return {
            "rule": self.rule,
            "of": dict(self.of),
            "members": {group: [list(ids) for ids in people] for group, people in self.members.items()},
            "from_login": list(self.from_login),
            "excluded": list(self.excluded),
            **({} if self.expires_after is None else {"expires_after": self.expires_after}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RequiredApprovers:
        """Return what `to_dict` described; raises ValueError when a field is missing."""
        values = StoredFields(cls, data)
        values["from_login"] = tuple(values.get("from_login", ()))
        values["excluded"] = tuple(values.get("excluded", ()))
        return cls(**values)
