"""Policies of a Cedar file as they are written: the names in each, and its annotations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from toolcrib._numbers import parse_span, span_text
from toolcrib.errors import closest

_ACTIONS: Final = ("run", "approve")
_TYPES: Final = ("Person", "Group", "Tool", "Action")
_ATTRIBUTES: Final = {"resource": ("name", "effect", "tags", "server"), "context": ("arguments", "requester")}
_OF_ALL: Final = ("id", "description")
_ANNOTATIONS: Final = (*_OF_ALL, "people", "place", "after", "instead", "expires", "remind", "not_requester")
_TOKENS: Final = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|;')
_BLANKS: Final = re.compile(r"(\s|//[^\n]*\n)*")


@dataclass(frozen=True, slots=True)
class Statement:
    """One policy of a file.

    Attributes:
        name: Its name, as people read it.
        effect: `permit` or `forbid`.
        actions: Its actions, of `run` and `approve`.
        who: The group or person of its head; empty where it names none, or several.
        is_for_all: Whether it is about everybody, in every case.
        tool: The tool of its head; empty where it names none, or several.
        people: How many have to approve.
        place: For which group of approvers they count; empty where the policy does not say.
        after: From how many seconds on they may; None for at once.
        instead: Whether those who could before no longer may then.
        expires: After how many seconds a request that is not approved is refused.
        remind: After how many seconds those who were told of it are told again.
        not_requester: Whether the approval of the one who asks does not count.
    """

    name: str
    effect: str
    actions: frozenset[str]
    who: str = ""
    is_for_all: bool = False
    tool: str = ""
    people: int = 1
    place: str = ""
    after: float | None = None
    instead: bool = False
    expires: float | None = None
    remind: float | None = None
    not_requester: bool = True

    @property
    def counted(self) -> tuple[str, float | None]:
        """By what its people are counted together with those of other policies: a place, and from when on."""
        return self.place or ("" if self.after is None else self.who), self.after

    def text(self) -> str:
        """Return it in words: `refunds over 1,000: permit finance to approve refund, 2 people`."""
        who = "all" if not self.who else self.who
        times = [] if self.after is None else [f"after {span_text(self.after)}" + (" instead" if self.instead else "")]
        times += [] if self.expires is None else [f"within {span_text(self.expires)}"]
        times += [] if self.remind is None else [f"a reminder after {span_text(self.remind)}"]
        number = [f"{self.people} people"] if self.people > 1 else []
        tool = f" {self.tool}" if self.tool else ""
        return f"{self.name}: " + ", ".join(
            [f"{self.effect} {who} to {' and '.join(sorted(self.actions, reverse=True))}{tool}", *number, *times]
        )


@dataclass(frozen=True, slots=True)
class CedarNames:
    """The entities and arguments that policies name, as keys in the order of the file.

    Of an argument the value is whether a policy reads its fields.
    """

    persons: dict[str, None] = field(default_factory=dict[str, None])
    groups: dict[str, None] = field(default_factory=dict[str, None])
    tools: dict[str, None] = field(default_factory=dict[str, None])
    arguments: dict[str, bool] = field(default_factory=dict[str, bool])

    def add(self, more: CedarNames) -> None:
        """Add the names of a further policy."""
        self.persons.update(more.persons)
        self.groups.update(more.groups)
        self.tools.update(more.tools)
        self.arguments.update(more.arguments)

    def statement(self, policy: Mapping[str, Any], name: str) -> Statement:
        """Record the names in a policy of Cedar's JSON, and return it; raises ValueError for unknown ones.

        Args:
            policy: The policy.
            name: Its name.
        """
        self._read(policy)
        head = policy["action"]
        entities = head.get("entities") or ([head["entity"]] if "entity" in head else [])
        actions = frozenset(entity["id"] for entity in entities) or frozenset(_ACTIONS)
        is_permit = policy["effect"] == "permit" and "approve" in actions
        annotations: Mapping[str, str | None] = policy.get("annotations") or {}
        for annotation in annotations:
            if annotation not in _ANNOTATIONS:
                raise ValueError(f"the annotation @{annotation} is unknown. {closest(annotation, _ANNOTATIONS)}")
            if annotation not in _OF_ALL and not is_permit:
                raise ValueError(f"@{annotation} belongs to a policy that permits to approve; take it out")
        principal, resource = policy["principal"], policy["resource"]
        who = principal.get("in", principal).get("entity", {}).get("id", "")
        return Statement(
            name,
            policy["effect"],
            actions,
            who,
            not who and principal["op"] in ("All", "is") and not policy.get("conditions"),
            resource["entity"]["id"] if "entity" in resource else "",
            **_annotated(annotations),
        )

    def _read(self, part: Any, is_read: bool = False) -> None:
        """Record the entities and arguments that a part of a policy names; raises ValueError for an unknown one."""
        if isinstance(part, list):
            for item in cast("list[Any]", part):
                self._read(item)
        if not isinstance(part, dict):
            return
        node = cast("dict[str, Any]", part)
        if set(node) == {"type", "id"} and all(isinstance(value, str) for value in node.values()):
            self._note_entity(node["type"], node["id"])
        if isinstance(kind := node.get("entity_type"), str):
            _require_known("entity type", kind, _TYPES)
        access, path = _access(node), _path(node)
        if path is not None and not is_read:
            self._note_path(path)
        if access is not None:
            self._read(access["left"], is_read=path is not None)
        elif path is None:
            self._read([value for name, value in node.items() if name != "annotations"])

    def _note_entity(self, kind: str, id: str) -> None:
        _require_known("entity type", kind, _TYPES)
        if kind == "Action":
            _require_known("action", id, _ACTIONS)
        named = {"Person": self.persons, "Group": self.groups, "Tool": self.tools}.get(kind)
        if named is not None:
            named[id] = None

    def _note_path(self, path: Sequence[str]) -> None:
        """Record the variables that a policy reads: `context.arguments.amount` as its parts."""
        variable, *names = path
        if (names and variable in ("principal", "action")) or (names[:1] == ["requester"] and len(names) > 1):
            mend = 'ask for a group, as in principal in Group::"..."'
            raise ValueError(f"{'.'.join(path)}: a {'person' if variable != 'action' else variable} has none; {mend}")
        if names[:1] == ["arguments"] and len(names) > 1:
            self.arguments[names[1]] = len(names) > 2
        elif names:
            _require_known(f"attribute of {variable}", names[0], _ATTRIBUTES[variable])
            if names == ["arguments"]:
                raise ValueError("context.arguments is read by its names: write context.arguments.NAME")
        elif variable == "context":
            raise ValueError("context is read by its names: write context.arguments.NAME or context.requester")


def _access(part: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the part of a policy that reads an attribute, or asks for it; None for any other."""
    found: Any = part.get(".") or part.get("has")
    is_access = isinstance(found, dict) and {"left", "attr"} == set(cast("dict[str, Any]", found))
    return cast("Mapping[str, Any]", found) if is_access else None


def _path(part: Mapping[str, Any]) -> list[str] | None:
    """Return the variable that a part of a policy reads, and the names of what it reads of it; None for any other."""
    if set(part) == {"Var"}:
        return [part["Var"]]
    access = _access(part)
    before = None if access is None else _path(access["left"])
    return None if access is None or before is None else [*before, access["attr"]]


def _require_known(what: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise ValueError(f"there is no {what} `{name}`. {closest(name, known)}")


def _annotated(annotations: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the values of a policy's annotations; raises ValueError for an invalid one."""
    found: dict[str, Any] = {}
    for name, text in annotations.items():
        value = text or ""
        if name == "people":
            if not re.fullmatch("[1-9][0-9]{0,3}", value):
                raise ValueError(f'@people must be a number of people, as in @people("2"), and is {value!r:.40}')
            found[name] = int(value)
        elif name in ("after", "expires", "remind"):
            try:
                found[name] = parse_span(value).total_seconds()
            except ValueError as error:
                raise ValueError(f"@{name}: {error}") from None
        elif name in ("instead", "not_requester"):
            if value not in ("", "true", "false"):
                raise ValueError(f'@{name} must be "true" or "false", and is {value!r:.40}')
            found[name] = value != "false"
        elif name == "place":
            if not value.strip():
                raise ValueError("@place is empty; it is the name of the group that people count for")
            found[name] = value
    if found.get("instead") and "after" not in found:
        raise ValueError('@instead goes with @after("1h"), which says when')
    return found


def split_policies(text: str) -> Iterator[tuple[int, str]]:
    """Yield the policies of a text, each with the number of its first line."""
    start = 0
    ends = [found.end() for found in _TOKENS.finditer(text) if found[0] == ";"]
    for end in (*ends, len(text)):
        blank = _BLANKS.match(text, start)
        start = start if blank is None else blank.end()
        if policy := text[start:end].strip():
            yield text.count("\n", 0, start) + 1, policy
        start = end
