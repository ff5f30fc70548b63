"""Place of an entry in a file of servers: its errors, and its texts, in which variables are replaced."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from pydantic import BaseModel, ValidationError

from toolcrib.adapters.mcp_client._options import ToolLabels
from toolcrib.errors import TargetError, closest

__all__ = ["FilePlace", "FileTexts", "valid_part"]

_M = TypeVar("_M", bound=BaseModel)
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_BRANCHES = frozenset({"bool", "str", "int", "float", "literal['unless_read_only']"})


@dataclass(frozen=True, slots=True)
class FilePlace:
    """The place of the entry of a server or an API, for errors."""

    path: Path
    server: str = ""
    kind: str = "server"

    def wrong(self, field: str, problem: str) -> TargetError:
        of = f"the {self.kind} `{self.server}`: " if self.server else ""
        return TargetError(str(self.path), f"{of}`{field}`: {problem}")


def valid_part(place: FilePlace, model: type[_M], given: Any, prefix: str = "") -> _M:
    """Return a part of the file as a model of it has it."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        problems = _problems(error, model, prefix)
        (field, problem), *rest = problems.items()
        more = f" (and {len(rest)} more: {'; '.join(f'`{other}`' for other, _ in rest)})" if rest else ""
        raise place.wrong(field, problem + more) from None


def _problems(error: ValidationError, model: type[BaseModel], prefix: str) -> dict[str, str]:
    """Return what is wrong with each field; of one that may be of several types, all that it may be."""
    found: dict[str, str] = {}
    given: dict[str, str] = {}
    for one in error.errors(include_url=False):
        parts = [str(part) for part in one["loc"] if not (isinstance(part, str) and ("[" in part or part in _BRANCHES))]
        name = (prefix + ".".join(parts)).rstrip(".") or "(all of it)"
        if one["type"] == "extra_forbidden":
            found[name] = f"there is no such option. {closest(parts[-1], _fields_at(model, parts[:-1]))}"
            continue
        text = f"{one['msg'][:1].lower()}{one['msg'][1:]}"
        found[name] = f"{found[name]} or {text.removeprefix('input should be ')}" if name in found else text
        given[name] = f"; got {one['input']!r:.60}" if one["type"] != "missing" else ""
    return {
        name: problem + given.get(name, "")
        for name, problem in found.items()
        if not any(other.startswith(f"{name}.") for other in found)
    }


def _fields_at(model: Any, path: Sequence[str]) -> Collection[str]:
    """Return the names of the fields at a place in a model."""
    for part in path:
        fields: Mapping[str, Any] = getattr(model, "model_fields", {})
        model = _model_in(fields[part].annotation) if part in fields else ToolLabels
    return getattr(model, "model_fields", None) or get_type_hints(model)


def _model_in(annotation: Any) -> Any:
    """Return the model in an annotation that allows None as well."""
    parts = [one for one in get_args(annotation) if isinstance(one, type) and issubclass(one, BaseModel)]
    return parts[0] if parts else annotation


class FileTexts:
    """Texts of one server with the variables in them replaced, as the clients do."""

    def __init__(self, place: FilePlace, variables: Mapping[str, str]) -> None:
        self._place, self._variables = place, variables

    def expanded(self, field: str, text: str) -> str:
        """Return a text with the value of each `${...}` in it."""
        return _VARIABLE.sub(lambda found: self._value(field, found[1]), text)

    def variable(self, field: str, name: str, written: str) -> str:
        """Return an environment variable; raises TargetError where it is not set."""
        value = self._variables.get(name)
        if value is None:
            mend = f"set it, or write ${{{name}:-DEFAULT}}" if written != name or field[:8] != "toolcrib" else "set it"
            raise self._place.wrong(field, f"the environment variable {name} is not set; {mend}")
        return value

    def _value(self, field: str, inside: str) -> str:
        folder = self._place.path.resolve().parent
        if folder.name in (".vscode", ".cursor"):
            folder = folder.parent
        known = {
            "userHome": str(Path.home()),
            "workspaceFolder": str(folder),
            "workspaceFolderBasename": folder.name,
            "pathSeparator": os.sep,
            "/": os.sep,
        }
        if inside in known:
            return known[inside]
        if inside.startswith("input:"):
            name = inside.removeprefix("input:").upper().replace("-", "_")
            mend = f"write ${{{name}}}, and set that variable"
            raise self._place.wrong(field, f"${{{inside}}} is a question that the client asks; {mend}")
        name, has_default, default = inside.removeprefix("env:").partition(":-")
        if has_default:
            return self._variables.get(name) or default
        return self.variable(field, name, inside)
