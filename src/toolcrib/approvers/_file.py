"""File of the rules of approvers and of the groups of people, in TOML or JSON."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, date, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from toolcrib._json_writer import read_json
from toolcrib._numbers import parse_span
from toolcrib.approvers._gate import ApproverRules
from toolcrib.approvers._rule import ApproverRule, CallRule, Groups
from toolcrib.calls import Delegation
from toolcrib.errors import PolicyError, closest, value_problem

T = TypeVar("T")

_GROUPS: Final = 'and under [groups] the people of each, as in finance = ["ann"]'
_RULE: Final = TypeAdapter(ApproverRule)


class _Document(BaseModel):
    """The whole of a file; see `read_rules`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    rules: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    cedar: str | None = None
    groups: dict[str, list[str]] = Field(default_factory=dict[str, "list[str]"])
    people: dict[str, list[str]] = Field(default_factory=dict[str, "list[str]"])
    from_login: list[str] = Field(default_factory=list[str])
    delegate: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])


class _FileRules(ApproverRules):
    """The rules of a file, which is read anew when it has changed. One that cannot be used then fails each call."""

    def __init__(self, path: Path) -> None:
        self._path, self._read = path, {path: _stamp(path)}
        super().__init__(*self._parsed())

    def refresh(self) -> None:
        if any(_stamp(path) != read for path, read in self._read.items()):
            super().__init__(*self._parsed())

    def _parsed(self) -> tuple[list[CallRule], Groups]:
        read = _read_file(self._path)
        named = cast("dict[str, Any]", read).get("cedar") if isinstance(read, dict) else None
        paths = [self._path, *([self._path.parent / named] if isinstance(named, str) else [])]
        stamps = {path: _stamp(path) for path in paths}
        rules, groups = _rules_in(read, str(self._path), self._path.parent)
        _gate(rules, groups, str(self._path))
        self._read = stamps
        return rules, groups


def load_rules(path: str | os.PathLike[str]) -> ApproverRules:
    """Return the rules of a TOML or JSON file as a gate, which reads it anew when it has changed.

    Raises:
        PolicyError: The file cannot be read, or a part of it is wrong; the error names the rule and the field.
    """
    return _FileRules(Path(path))


def describe_rules(path: str | os.PathLike[str]) -> list[str]:
    """Return the rules of a file in words, which a policy in Cedar (`.cedar`) may be as well.

    Raises:
        PolicyError: The file cannot be read, or a part of it is wrong; the error names the rule or the policy.
    """
    file = Path(path)
    return _cedar_policy(file).lines(Groups()) if file.suffix == ".cedar" else load_rules(file).lines()


def read_rules(
    document: Mapping[str, Any], where: str = "approvers", folder: str | os.PathLike[str] = "."
) -> ApproverRules:
    """Return rules that are given as the file has them.

    Args:
        document: `rules`, each with the fields of `ApproverRule`, or `cedar`, the path of a policy in Cedar, or both;
            `groups`, the ids of the people in each; `people`, the further ids of each; `from_login`, the groups that
            logins say; `delegate`, each with `from`, `to`, `until` and `since`, as dates or their texts.
        where: The name of it in errors.
        folder: The folder of the path of a policy in Cedar.

    Raises:
        PolicyError: A part of it is wrong; the error names the rule and the field.
    """
    rules, groups = _rules_in(document, where, Path(folder))
    return _gate(rules, groups, where)


def _gate(rules: list[CallRule], groups: Groups, where: str) -> ApproverRules:
    try:
        return ApproverRules(rules, groups)
    except ValueError as error:
        problem, name = str(error).removeprefix(f"{where}: "), Path(where).name
        if name.endswith(".cedar"):
            problem += (
                f'. A policy alone has no groups: name a TOML file in its place, with cedar = "{name}", {_GROUPS}'
            )
        raise PolicyError(where, (problem,)) from None


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError as error:
        raise PolicyError(str(path), (f"it cannot be read: {error.strerror or error}",)) from None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _cedar_policy(path: Path) -> CallRule:
    policy: Any = import_module("toolcrib.approvers.cedar").CedarPolicy  # of an extra, which its error names
    return policy(_text_of(path), str(path))


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        raise PolicyError(str(path), ("it is not UTF-8 text",)) from None
    except OSError as error:
        raise PolicyError(str(path), (f"it cannot be read: {error.strerror or error}",)) from None


def _read_file(path: Path) -> Any:
    if path.suffix == ".cedar":
        return {"cedar": path.name}
    text = _text_of(path)
    try:
        return read_json(text) if path.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise PolicyError(str(path), (f"it is not {kind}: {error}",)) from None


def _rules_in(document: Any, where: str, folder: Path) -> tuple[list[CallRule], Groups]:
    try:
        read = _Document.model_validate(document)
    except ValidationError as error:
        raise PolicyError(where, tuple(_problem(detail) for detail in error.errors(include_url=False))) from None
    delegations = [_delegation(table, f"delegate {number}", where) for number, table in enumerate(read.delegate, 1)]
    try:
        groups = Groups(read.groups, people=read.people, from_login=read.from_login, delegations=delegations)
    except ValueError as error:
        raise PolicyError(where, (str(error),)) from None
    rules: list[CallRule] = [_rule(table, f"rule {number}", where) for number, table in enumerate(read.rules, 1)]
    if read.cedar is not None:
        rules.append(_cedar_policy(folder / read.cedar))
    if not rules and "rules" not in read.model_fields_set:
        raise PolicyError(where, ("it has no rule: give `rules`, or `cedar` with the path of a policy",))
    return rules, groups


def _rule(given: Mapping[str, Any], number: str, where: str) -> ApproverRule:
    _refuse_unknown(given, [field.name for field in fields(ApproverRule)], number, where)
    try:
        found: dict[str, Any] = {}
        for name in ("expires", "remind"):
            if isinstance(text := given.get(name), str):
                found[name] = _read(name, parse_span, text)
        if isinstance(groups := given.get("escalate"), Mapping):
            listed = cast("Mapping[str, Any]", groups)
            found["escalate"] = {_read("escalate", parse_span, after): group for after, group in listed.items()}
        return _RULE.validate_python({**given, **found}, strict=False)
    except ValidationError as error:
        problems = (f"{number}: {_problem(detail)}" for detail in error.errors(include_url=False))
        raise PolicyError(where, tuple(dict.fromkeys(problems))) from None
    except ValueError as error:
        raise PolicyError(where, (f"{number}: {error}",)) from None


def _refuse_unknown(given: Mapping[str, Any], known: Sequence[str], number: str, where: str) -> None:
    if unknown := [name for name in given if name not in known]:
        raise PolicyError(where, (f"{number}: `{unknown[0]}` is unknown. {closest(unknown[0], known)}",))


def _delegation(given: Mapping[str, Any], number: str, where: str) -> Delegation:
    _refuse_unknown(given, ["from", "to", "until", "since"], number, where)
    try:
        if lacking := [name for name in ("from", "to", "until") if name not in given]:
            raise ValueError(f"`{lacking[0]}` is missing; it has from, to and until")
        texts = {name: given[name] for name in ("from", "to")}
        if wrong := [text for text in texts.values() if not isinstance(text, str)]:
            raise ValueError(f"{wrong[0]!r} is not the id of a person")
        until = _read("until", _moment, given["until"])
        since = _read("since", _moment, given["since"]) if "since" in given else None
        return Delegation(texts["from"], texts["to"], until, since)
    except ValueError as error:
        raise PolicyError(where, (f"{number}: {error}",)) from None


def _moment(value: Any) -> datetime:
    """Return a time of a file: a date, which begins then, or a time; without a time zone it is local."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = value.isoformat()
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else value
        return found.astimezone(UTC)
    except (ValueError, OverflowError, AttributeError):
        hint = 'give a date, as 2030-01-31, or a time, as "2030-01-31T12:00:00+01:00"'
        raise ValueError(f"{value!r:.80} is not a time; {hint}") from None


def _read(name: str, read: Callable[[Any], T], given: Any) -> T:
    """Return a field as a function reads it; its ValueError names the field."""
    try:
        return read(given)
    except ValueError as error:
        raise ValueError(f"`{name}`: {error}") from None


def _problem(detail: Any) -> str:
    if detail["type"] == "value_error":
        return str(detail["ctx"]["error"])
    path = ".".join(str(part) for part in cast("tuple[Any, ...]", detail["loc"]))
    if path in ("rules", "delegate") and detail["type"] == "list_type":
        return (
            f"`{path}` must be tables, written [[{path}]] (in JSON a list of objects), and not {detail['input']!r:.80}"
        )
    if detail["type"] == "extra_forbidden":
        return f"`{path}` is unknown. {closest(path, _Document.model_fields)}"
    return f"`{path}`: {value_problem([detail])}"
