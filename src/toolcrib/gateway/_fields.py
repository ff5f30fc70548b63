"""Fields of a file of servers: models whose texts have variables in them, and the errors of what does not fit them."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NoReturn, TypeVar, cast, get_args, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, ValidationInfo
from pydantic_core import ErrorDetails, PydanticCustomError
from typing_extensions import is_typeddict

from toolcrib._numbers import parse_span
from toolcrib.errors import TargetError, asks_for_approval, closest, value_problem
from toolcrib.tools import require_prefix

_M = TypeVar("_M", bound=BaseModel)
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_BRANCH = re.compile(r"bool|str|int|float|constrained-\w+|_[A-Z]\w+|.*\[.*")  # of a union, in the place of an error
_SWITCHES: Final = ("false", "no", "off", "on", "true", "yes")
_REFUSED = "refused"  # the type of an error whose text is whole

_TAKING: Final = (
    "allow",
    "allowed",
    "allowed_tool_names",
    "allowed_tools",
    "allowlist",
    "enabled_tools",
    "include",
    "include_tools",
    "only",
    "tool_filter",
    "tool_names",
)
EXCLUDING: Final = (
    *("block", "blocked_tools", "deny", "denied", "denied_tools", "denylist", "disabled_tools", "exclude"),
    *("exclude_tools", "excluded_tools", "hidden_tools", "without"),
)
"""Words of other clients and frameworks for the tools to leave out."""
_WORDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("approvals", "permission", "permissions", "policies", "policy", "requires_approval"), "approval"),
    **dict.fromkeys(("ask", "confirm_tools", "guard", "guards"), "approval"),
    **dict.fromkeys((*_TAKING, *EXCLUDING), "tools"),
    "limit": "limits",
    "pin": "pins",
}
"""Options of the section of a server, by other words; `requires_approval` stands for all that `asks_for_approval`."""
_WORD_STARTS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|-")


@dataclass(frozen=True, slots=True)
class FilePlace:
    """The place of the entry of a server or an API, for errors."""

    path: Path
    server: str = ""
    kind: str = "server"

    @property
    def workspace(self) -> Path:
        """The folder in which servers are started: the file's; of a file in `.vscode` or `.cursor`, the project's."""
        folder = folder_of(self.path)
        return folder.parent if folder.name in (".vscode", ".cursor") else folder

    def wrong(self, field: str, problem: str) -> TargetError:
        of = f"the {self.kind} `{self.server}`: " if self.server else ""
        return TargetError(str(self.path), f"{of}{f'`{field}`: ' if field else ''}{problem}")


def folder_of(path: Path) -> Path:
    """Return the folder of a file, as `..` leads there, in any folder of this process; a link is not followed."""
    return Path(os.path.abspath(path)).parent


def refuse(problem: str) -> NoReturn:
    """Refuse the value of a field, in a validator of it."""
    raise PydanticCustomError(_REFUSED, "{problem}", {"problem": problem})


# --- fields


@dataclass(frozen=True, slots=True)
class FileTexts:
    """The variables that texts of a file may name: those of the environment, and VS Code's words for its folders."""

    path: Path
    variables: Mapping[str, str] = field(repr=False)

    def expand(self, text: str) -> str:
        """Return a text with the value of each `${...}` in it."""
        return _VARIABLE.sub(lambda found: self._value(found[1]), text)

    def variable(self, name: str, mend: str = "set it") -> str:
        """Return an environment variable, which has to be set."""
        value = self.variables.get(name)
        return refuse(f"the environment variable {name} is not set; {mend}") if value is None else value

    def _value(self, inside: str) -> str:
        folder = FilePlace(self.path).workspace
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
            refuse(f"${{{inside}}} is a question that the client asks; write ${{{name}}}, and set that variable")
        name, has_default, default = inside.removeprefix("env:").partition(":-")
        if has_default:
            return self.variables.get(name) or default
        return self.variable(name, f"set it, or write ${{{name}:-DEFAULT}}")


def _expand(text: str, info: ValidationInfo) -> str:
    return text if info.context is None else info.context.expand(text)


def _find(text: str, info: ValidationInfo) -> str:
    if text.lower() in _SWITCHES:
        refuse(f"a file is named here, and {text!r} is not the name of one; write true or false without quotes")
    found = _expand(text, info)
    return found if info.context is None or "://" in found else str(folder_of(info.context.path) / found)


def _check_prefix(prefix: str) -> str:
    try:
        return require_prefix("it", prefix)
    except ValueError as error:
        refuse(str(error))


def _read(name: str, info: ValidationInfo) -> str:
    return name if info.context is None else info.context.variable(name)


Text = Annotated[str, AfterValidator(_expand)]
"""A text, with the variables in it replaced."""
FilePath = Annotated[str, AfterValidator(_find)]
"""A path by the file, or a URL as it is."""
Prefix = Annotated[str, AfterValidator(_check_prefix)]
"""The prefix of the name of each tool."""
Secret = Annotated[str, AfterValidator(_read)]
"""The value of the environment variable that the file names; not in the repr of its model."""


def _check_approval(given: Any) -> Any:
    if isinstance(given, list) and not {"unless_read_only", "writes"}.isdisjoint(cast("list[str]", given)):
        refuse('a list has the names of tools; write "unless_read_only" without the list')
    return cast("Any", given)


Approval = Annotated[bool | list[str] | Literal["unless_read_only"], AfterValidator(_check_approval)]
"""The tools that need approval: all, none, those named, or all but those that only read."""


class Part(BaseModel):
    """A part of a file whose every field is known."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


# --- errors


def read_part(place: FilePlace, model: type[_M], given: Any, prefix: str = "", texts: FileTexts | None = None) -> _M:
    """Return a part of the file as a model of it has it.

    Args:
        place: Of the part.
        model: The model.
        given: The part as the file has it.
        prefix: The beginning of the names of its fields, in errors.
        texts: The variables of its texts; when None, they stay as they are written.

    Raises:
        TargetError: It does not fit: the error names the server, the field and the mend.
    """
    try:
        return model.model_validate(given, context=texts)
    except ValidationError as error:
        problems = _problems(error, model, prefix)
        (name, problem), *rest = problems.items()
        more = f" (and {len(rest)} more: {'; '.join(f'`{other}`' for other, _ in rest)})" if rest else ""
        raise place.wrong(name, problem + more) from None


def _problems(error: ValidationError, model: type[BaseModel], prefix: str) -> dict[str, str]:
    """Return the problem of each field; for one that may have several types, each type."""
    found: dict[str, list[ErrorDetails]] = {}
    for problem in error.errors(include_url=False):
        *outer, last = problem["loc"] or ("",)
        is_unknown = problem["type"] == "extra_forbidden"  # a name of the file's own
        parts = [str(part) for part in outer if not (isinstance(part, str) and _BRANCH.fullmatch(part))]
        parts += [str(last)] if is_unknown or not (isinstance(last, str) and _BRANCH.fullmatch(last)) else []
        found.setdefault((prefix + ".".join(parts)).rstrip("."), []).append(problem)
    unknown = {name for name, errors in found.items() if errors[0]["type"] == "extra_forbidden"}
    return {
        name: _problem(model, name.removeprefix(prefix).split("."), errors)
        for name, errors in sorted(found.items(), key=lambda item: item[0] not in unknown)  # what may be a slip first
        if not any(other.startswith(f"{name}.") for other in found)
    }


def _problem(model: type[BaseModel], path: Sequence[str], errors: Sequence[ErrorDetails]) -> str:
    refusal = next((error["msg"] for error in errors if error["type"] == _REFUSED), None)
    if refusal is not None:
        return refusal
    first = errors[0]
    if first["type"] == "extra_forbidden":
        known = _fields_at(model, path[:-1])
        meant = option_meant(path[-1], known)
        return f"there is no such option. {f'Did you mean `{meant}`?' if meant else closest(path[-1], known)}"
    if first["type"] == "model_type":
        return f"it must be an object of options, and is {first['input']!r:.60}. {closest('', _fields_at(model, path))}"
    problem = value_problem(errors)
    if first["type"] in ("int_type", "float_type") and isinstance(first["input"], str):
        with suppress(ValueError):
            problem += f"; write {parse_span(first['input']).total_seconds():g}, in seconds"
    return problem


def word_of(name: str) -> str:
    """Return the name of an option as ours are written: `disabledTools` is `disabled_tools`."""
    return _WORD_STARTS.sub("_", name).lower()


def option_meant(name: str, known: Collection[str]) -> str | None:
    """Return which of the known options a name, also one of other clients and frameworks, stands for."""
    word = word_of(name)
    meant = word if word in known else _WORDS.get("requires_approval" if asks_for_approval(word) else word)
    return meant if meant in known else None


def _fields_at(model: Any, path: Sequence[str]) -> Collection[str]:
    """Return the names of the fields at a place in a model."""
    is_key = False  # of a list or a dict
    for part in path:
        fields: Mapping[str, Any] = getattr(model, "model_fields", {})
        if is_key or part not in fields:
            is_key = False
            continue
        is_key = any(kind in str(fields[part].annotation) for kind in ("list[", "dict["))
        model = _model_in(fields[part].annotation)
    return getattr(model, "model_fields", None) or get_type_hints(model)


def _model_in(annotation: Any) -> Any:
    """Return the model, or the typed dict, in an annotation that may be a list, a dict or a union."""
    if isinstance(annotation, type) and (issubclass(annotation, BaseModel) or is_typeddict(cast("Any", annotation))):
        return cast("Any", annotation)
    return next((found for arg in get_args(annotation) if (found := _model_in(arg)) is not None), None)
