"""File of the rules of approvers and of the groups of people, in TOML or JSON."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from toolcrib._json_writer import read_json
from toolcrib._numbers import parse_span
from toolcrib.approvers._gate import ApproverRules
from toolcrib.approvers._groups import Groups
from toolcrib.approvers._rule import ApproverRule
from toolcrib.errors import PolicyError, closest

__all__ = ["load_rules", "read_rules"]

_RULE: Final = TypeAdapter(ApproverRule)


class _Document(BaseModel):
    """The whole of a file; see `read_rules`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    rules: list[dict[str, Any]]
    groups: dict[str, list[str]] = Field(default_factory=dict[str, "list[str]"])
    people: dict[str, list[str]] = Field(default_factory=dict[str, "list[str]"])
    from_login: list[str] = Field(default_factory=list[str])


class _FileRules(ApproverRules):
    """The rules of a file, which is read anew when it has changed. One that cannot be used then fails each call."""

    def __init__(self, path: Path) -> None:
        self._path, self._read = path, _stamp(path)
        rules, groups = _parsed(path)
        super().__init__(rules, groups)

    def refresh(self) -> None:
        if (found := _stamp(self._path)) != self._read:
            super().__init__(*_parsed(self._path))
            self._read = found


def load_rules(path: str | os.PathLike[str]) -> ApproverRules:
    """Return the rules of a TOML or JSON file as a gate, which reads it anew when it has changed.

    Raises:
        PolicyError: The file cannot be read, or a part of it is wrong; the error names the rule and the field.
    """
    return _FileRules(Path(path))


def read_rules(document: Mapping[str, Any], where: str = "approvers") -> ApproverRules:
    """Return rules that are given as the file has them.

    Args:
        document: `rules`, each with the fields of `ApproverRule`; `groups`, the ids of the people in each; `people`,
            the further ids of each; `from_login`, the groups that logins say.
        where: What errors call it.

    Raises:
        PolicyError: A part of it is wrong; the error names the rule and the field.
    """
    rules, groups = _rules_in(document, where)
    return _gate(rules, groups, where)


def _gate(rules: list[ApproverRule], groups: Groups, where: str) -> ApproverRules:
    try:
        return ApproverRules(rules, groups)
    except ValueError as error:
        raise PolicyError(where, (str(error),)) from None


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError as error:
        raise PolicyError(str(path), (f"it cannot be read: {error.strerror or error}",)) from None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _parsed(path: Path) -> tuple[list[ApproverRule], Groups]:
    try:
        text = path.read_text("utf-8")
        document: Any = read_json(text) if path.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise PolicyError(str(path), (f"it is not {kind}: {error}",)) from None
    except OSError as error:
        raise PolicyError(str(path), (f"it cannot be read: {error.strerror or error}",)) from None
    rules, groups = _rules_in(document, str(path))
    _gate(rules, groups, str(path))
    return rules, groups


def _rules_in(document: Any, where: str) -> tuple[list[ApproverRule], Groups]:
    try:
        read = _Document.model_validate(document)
        groups = Groups(read.groups, people=read.people, from_login=read.from_login)
    except ValidationError as error:
        raise PolicyError(where, tuple(_problem(one) for one in error.errors(include_url=False))) from None
    except ValueError as error:
        raise PolicyError(where, (str(error),)) from None
    return [_rule(one, f"rule {number}", where) for number, one in enumerate(read.rules, 1)], groups


def _rule(given: Mapping[str, Any], number: str, where: str) -> ApproverRule:
    known = [each.name for each in fields(ApproverRule)]
    if unknown := [name for name in given if name not in known]:
        raise PolicyError(where, (f"{number}: `{unknown[0]}` is unknown. {closest(unknown[0], known)}",))
    try:
        return _RULE.validate_python({**given, **_expiry(given)}, strict=False)
    except ValidationError as error:
        problems = (f"{number}: {_problem(one)}" for one in error.errors(include_url=False))
        raise PolicyError(where, tuple(dict.fromkeys(problems))) from None
    except ValueError as error:
        raise PolicyError(where, (f"{number}: `expires`: {error}",)) from None


def _expiry(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the time within which calls are approved, of a rule that has it as a text."""
    expires = given.get("expires")
    return {"expires": parse_span(expires)} if isinstance(expires, str) else {}


def _problem(detail: Any) -> str:
    if detail["type"] == "value_error":
        return str(detail["ctx"]["error"])
    path = ".".join(str(part) for part in cast("tuple[Any, ...]", detail["loc"]))
    return f"`{path}`: {detail['msg'][0].lower()}{detail['msg'][1:]}; got {detail['input']!r:.80}"
