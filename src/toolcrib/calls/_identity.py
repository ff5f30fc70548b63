"""Identities of those who answer requests, and what a rule requires of them."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from toolcrib._numbers import span_text
from toolcrib.calls._diff import printable
from toolcrib.calls._json import parse_time
from toolcrib.calls._stored import StoredFields
from toolcrib.errors import explain_options

ANYBODY: Final = "*"
"""The group of every person who has an identity."""
APPROVER_RULES: Final = "toolcrib:approvers:"
"""The prefix of a key in the metadata of an `Ask` whose value is a list of `RequiredApprovers.to_dict()`.

The request has them as `required`, and no longer as metadata.
"""
_MOST_NAMED: Final = 5


@explain_options()
@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of an approver, as a login, a token or the host shows it.

    Attributes:
        id: A unique id: the holder of a token, a claim of a login, an id of a chat.
        by: How it was shown, in a word for the record, such as `console`; `model` is a model, and no person.
        groups: The groups that the login says. Those of a rule's own list are not in it.
        until: When `groups` stop to count for further calls; with a time zone.
        stands_for: Whose right they answer by, as a delegate; empty for their own. `request.grant` says it.
        escalated: Whether they answer as one of a group to which the request was escalated. `request.grant` says it.
        at: When they answered, by the clock of the store that took the answer; None before.
        aliases: Their other ids. They tell people apart, and put nobody into a group.

    Raises:
        ValueError: The id is empty or has a character that does not show, or `until` has no time zone.
    """

    id: str
    by: str = ""
    groups: tuple[str, ...] = ()
    until: datetime | None = None
    stands_for: str = ""
    escalated: bool = False
    at: datetime | None = field(default=None, compare=False)
    aliases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.id.strip() or not self.id.isprintable():
            raise ValueError(f"the id of an identity must be text that can be shown, and is {self.id!r:.80}")
        if self.until is not None and self.until.tzinfo is None:
            raise ValueError(f"until has no time zone: write datetime.now(UTC) + ..., not {self.until!r}")

    @property
    def is_model(self) -> bool:
        """True if a model answered, and no person."""
        return self.by == "model"

    def __str__(self) -> str:
        who = f"{self.id} for {printable(self.stands_for)}" if self.stands_for else self.id
        ways = ", ".join((*([self.by] if self.by else []), *(["by escalation"] if self.escalated else [])))
        return f"{who} ({ways})" if ways else who

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON shapes."""
        return {
            "id": self.id,
            "by": self.by,
            **({"groups": list(self.groups)} if self.groups else {}),
            **({} if self.until is None else {"until": self.until.isoformat()}),
            **({"stands_for": self.stands_for} if self.stands_for else {}),
            **({"escalated": True} if self.escalated else {}),
            **({} if self.at is None else {"at": self.at.isoformat()}),
            **({"aliases": list(self.aliases)} if self.aliases else {}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Identity:
        """Return the identity that `to_dict` described; raises ValueError when a field is missing."""
        values = StoredFields(cls, data)
        values["groups"], values["aliases"] = tuple(values.get("groups", ())), tuple(values.get("aliases", ()))
        values["until"], values["at"] = parse_time(values.get("until")), parse_time(values.get("at"))
        return cls(**values)


@explain_options()
@dataclass(frozen=True, slots=True)
class Delegation:
    """A person's right to answer, given to another one for a time.

    While it holds, the two count as one person: they are never two approvers of one rule, and neither answers what the
    other one asked for.

    Attributes:
        person: Who gives the right, by an id.
        to: Who has it, by an id. They may give it on.
        until: When it ends; with a time zone.
        since: When it begins; at once when None.

    Raises:
        ValueError: An id is empty, both are the same, a time has no time zone, or it ends before it begins.
    """

    person: str
    to: str
    until: datetime
    since: datetime | None = None

    def __post_init__(self) -> None:
        for name in ("person", "to"):
            if not getattr(self, name).strip():
                raise ValueError(f"Delegation: {name} is empty; it is the id of a person")
        if self.person == self.to:
            raise ValueError(f"Delegation: {self.person} gives a right to themselves; name another person as `to`")
        for name, at in (("until", self.until), ("since", self.since)):
            if at is not None and at.tzinfo is None:
                raise ValueError(f"Delegation: {name} has no time zone: write datetime.now(UTC) + ..., not {at!r}")
        if self.since is not None and self.since >= self.until:
            raise ValueError(f"Delegation: it ends at {self.until}, which is not after it begins, at {self.since}")

    def holds(self, at: datetime) -> bool:
        """Return whether it holds at a time."""
        return at < self.until and (self.since is None or self.since <= at)

    def text(self) -> str:
        """Return it in words: `bob for ann until 2030-01-31 12:00+00:00`."""
        since = "" if self.since is None else f" from {_moment(self.since)}"
        return f"{printable(self.to)} for {printable(self.person)}{since} until {_moment(self.until)}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON shapes."""
        since = {} if self.since is None else {"since": self.since.isoformat()}
        return {"person": self.person, "to": self.to, "until": self.until.isoformat(), **since}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Delegation:
        """Return the delegation that `to_dict` described; raises ValueError when a field is missing."""
        values = StoredFields(cls, data)
        values["until"], values["since"] = parse_time(values["until"]), parse_time(values.get("since"))
        return cls(**values)


def _moment(at: datetime) -> str:
    return at.isoformat(sep=" ", timespec="minutes")


@dataclass(frozen=True, slots=True)
class RequiredApprovers:
    """The people who have to approve one request, by one rule.

    Attributes:
        rule: The name of the rule.
        of: How many people of each group; each person counts for one of the groups.
        members: The people of each group when the request was made, each as their ids.
        from_login: The groups that logins say.
        excluded: The ids of the one who asked, whose approval does not count.
        expires_after: After how many seconds a request that is not approved is refused; None for never.
        remind_after: After how many seconds those who were told of the request are told again; None for never.
        escalation: Groups whose people count for each of the groups, and from how many seconds on.
        delegations: Who gave their right to answer to whom.
        aliases: The ids of people in `delegations`, for each who has several.
        instead: Whether a request that is escalated is no longer of those who could answer it before.
        counts_as: For which groups of the rule the people of a login's group count, besides that of its name.
        over: Of a rule that is not about the request as it is: the numbers that arguments are over, once edited.
        up_to: The numbers that arguments are at most.
    """

    rule: str
    of: Mapping[str, int]
    members: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict[str, Sequence[Sequence[str]]])
    from_login: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    expires_after: float | None = None
    remind_after: float | None = None
    escalation: tuple[tuple[float, str], ...] = ()
    delegations: tuple[Delegation, ...] = ()
    aliases: tuple[tuple[str, ...], ...] = ()
    instead: bool = False
    counts_as: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    over: Mapping[str, str] = field(default_factory=dict[str, str])
    up_to: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def people(self) -> int:
        """The number of people who have to approve."""
        return sum(self.of.values())

    @property
    def has_times(self) -> bool:
        """True if anything of the rule depends on the time."""
        times = (self.expires_after, self.remind_after)
        return bool(self.escalation or self.delegations) or any(time is not None for time in times)

    def ids_of(self, one: str) -> Sequence[str]:
        """Return all ids of the person with an id, as far as they are known."""
        listed = (*(ids for people in self.members.values() for ids in people), *self.aliases)
        return next((ids for ids in listed if one in ids), (one,))

    def escalated_to(self, asked_at: datetime, at: datetime) -> list[str]:
        """Return the groups to which a request of a time is escalated at another one."""
        due = [(after, group) for after, group in self.escalation if asked_at + timedelta(seconds=after) <= at]
        return [group for after, group in due if not self.instead or after == due[-1][0]]

    def stood_for_by(self, id: str, at: datetime | None) -> list[str]:
        """Return those whose right a person has at a time, or at any when None, the nearest first."""
        found = [id]
        for person in found:  # which grows: a right may be given on
            valid = (delegation for delegation in self.delegations if at is None or delegation.holds(at))
            found += [right.person for right in valid if right.to in self.ids_of(person) and right.person not in found]
        return found[1:]

    def groups_of(self, one: Identity, asked_at: datetime, at: datetime) -> set[str]:
        """Return the groups of the rule that a person counts for at a time, in a request of another one.

        A model is in those alone that list it, and stands for nobody.
        """
        return self._counted(one, self.stood_for_by(one.id, at), self.escalated_to(asked_at, at))

    def claimed(self, one: Identity, asked_at: datetime, at: datetime) -> Identity:
        """Return an identity that says by what it counts for the rule: whom it stands for, and by escalation.

        One that counts later or earlier says so, too; one that never counts, and one that counts anyway, are the same.
        """
        now, ever = self.stood_for_by(one.id, at), self.stood_for_by(one.id, None)
        groups = [group for _, group in self.escalation]
        for persons, escalated_to in ((now, self.escalated_to(asked_at, at)), (now, groups), (ever, groups)):
            for person in (one.stands_for, *persons):
                for escalated in (one.escalated, True):
                    claim = replace(one, stands_for=person, escalated=escalated)
                    if self._counted(claim, persons, escalated_to):
                        return claim
        return one

    def _counted(self, identity: Identity, persons: Container[str], escalated_to: Sequence[str]) -> set[str]:
        """Return the groups of the rule for which one counts who stands for some people, where it is escalated so."""
        found = self._listing(identity.id)
        if not identity.is_model:
            logins = {*(group for group in identity.groups if group in self.from_login), ANYBODY}
            found |= logins.union(*(self.counts_as.get(group, ()) for group in logins))
            found |= self._listing(identity.stands_for) if identity.stands_for in persons else set()
        if identity.escalated and found.intersection(escalated_to):
            return {*self.of}
        return set() if self.instead and escalated_to else found & self.of.keys()

    def _listing(self, id: str) -> set[str]:
        return {group for group, people in self.members.items() if any(id in ids for ids in people)}

    def text(self) -> str:
        """Return it in words: `refunds over 1,000: 2 of finance (ann, bob, cid), not ada, who asked`."""
        parts = " and ".join(f"{number} of {self._group(group)}" for group, number in self.of.items())
        asked = f", not {printable(self.excluded[0])}, who asked" if self.excluded else ""
        within = "" if self.expires_after is None else f", within {span_text(self.expires_after)}"
        later = "".join(
            f"; after {span_text(after)} {self._group(group)} may answer{' instead' if self.instead else ', too'}"
            for after, group in self.escalation
        )
        listed = {id for people in self.members.values() for ids in people for id in ids}
        rights = [f"; {delegation.text()}" for delegation in self.delegations if delegation.person in listed]
        rights[_MOST_NAMED:] = ["; ..."] if len(rights) > _MOST_NAMED else []
        return f"{printable(self.rule)}: {parts}{asked}{within}{later}{''.join(rights)}"

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
            **({} if self.remind_after is None else {"remind_after": self.remind_after}),
            **({"escalation": [list(step) for step in self.escalation]} if self.escalation else {}),
            **({"delegations": [delegation.to_dict() for delegation in self.delegations]} if self.delegations else {}),
            **({"aliases": [list(ids) for ids in self.aliases]} if self.aliases else {}),
            **({"instead": True} if self.instead else {}),
            **({"counts_as": {group: list(of) for group, of in self.counts_as.items()}} if self.counts_as else {}),
            **({"over": dict(self.over)} if self.over else {}),
            **({"up_to": dict(self.up_to)} if self.up_to else {}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RequiredApprovers:
        """Return the value that `to_dict` described; raises ValueError when a field is missing."""
        values = StoredFields(cls, data)
        for name in ("from_login", "excluded"):
            values[name] = tuple(values.get(name, ()))
        for name in ("escalation", "aliases"):
            values[name] = tuple(tuple(row) for row in values.get(name, ()))
        values["delegations"] = tuple(Delegation.from_dict(delegation) for delegation in values.get("delegations", ()))
        return cls(**values)
