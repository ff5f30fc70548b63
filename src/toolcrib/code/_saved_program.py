"""Saved programs: programs with inputs, which are kept under a name and called again."""

from __future__ import annotations

import builtins
import json
import keyword
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Final, NotRequired, cast

from pydantic import TypeAdapter, WithJsonSchema
from pydantic.errors import PydanticUserError
from typing_extensions import TypedDict

from toolcrib._numbers import count_text
from toolcrib.calls import StoredFields, now, versioned
from toolcrib.errors import SavedProgramError
from toolcrib.schema import digest
from toolcrib.tools import Tool

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_MOST_INPUTS: Final = 50
_BUILTINS: Final = frozenset(dir(builtins))


@dataclass(frozen=True, slots=True)
class SavedProgram:
    """A program that is kept, with the inputs that each call gives it.

    Attributes:
        name: Its name, by which it is called.
        code: The program. Its first line is a comment that names the inputs; in a call the inputs' values are assigned
            in that line, so that the lines of errors are those of this text.
        description: Its purpose, for a model.
        inputs: The JSON schema of its inputs, an object's.
        tools: The functions that it calls and no others, each with the digest of its tool's definition when the program
            was kept.
        author: Who wrote it.
        at: When it was kept.

    Raises:
        SavedProgramError: The name, the name of an input, or the first line is not that of a saved program.
    """

    name: str
    code: str = field(repr=False)
    description: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tools: Mapping[str, str] = field(default_factory=dict[str, str])
    author: str = ""
    at: datetime = field(default_factory=now)

    def __post_init__(self) -> None:
        if _NAME.fullmatch(self.name) is None or keyword.iskeyword(self.name):
            raise SavedProgramError(self.name, "its name is not made of at most 64 letters, digits and underscores")
        _require_input_names(self.name, self.input_names)
        if not self.code.startswith(_header(self.input_names) + "\n"):
            raise SavedProgramError(self.name, "its first line is not the comment that names its inputs")

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of its inputs, in the order of the alphabet."""
        return tuple(sorted(self.inputs.get("properties", ())))

    @property
    def defaults(self) -> dict[str, Any]:
        """The values of the inputs that a call may leave out."""
        properties = cast("Mapping[str, Any]", self.inputs.get("properties", {}))
        return {
            name: schema["default"]
            for name, schema in properties.items()
            if isinstance(schema, Mapping) and "default" in schema
        }

    def text(self, inputs: Mapping[str, Any]) -> str:
        """Return the program with the values of its inputs, which can hold no code: each is written as a literal.

        Args:
            inputs: JSON values, valid by the schema; of one that is missing, the default.

        Raises:
            SavedProgramError: A value is not JSON, or an input without a default is missing.
        """
        values = {**self.defaults, **inputs}
        missing = [name for name in self.input_names if name not in values]
        if missing:
            raise SavedProgramError(self.name, f"the input `{missing[0]}` is missing")
        line = "; ".join(f"{name} = {self._literal(name, values[name])}" for name in self.input_names)
        return "\n".join([line, self.code.partition("\n")[2]])

    def _literal(self, name: str, value: Any) -> str:
        try:
            return repr(json.loads(json.dumps(value, allow_nan=False)))
        except (TypeError, ValueError, RecursionError) as error:
            raise SavedProgramError(self.name, f"the input `{name}` is not a JSON value: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """Return the program as JSON shapes."""
        data = {
            "name": self.name,
            "code": self.code,
            "description": self.description,
            "inputs": dict(self.inputs),
            "tools": dict(self.tools),
            "author": self.author,
            "at": self.at.isoformat(),
        }
        return versioned(SavedProgram, data)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SavedProgram:
        """Return the program that `to_dict` described.

        Raises:
            NewerForm: A newer version of Toolcrib wrote it.
            SavedProgramError: A name or its first line is not that of a saved program.
            ValueError: It is not the form of a saved program.
        """
        found = StoredFields(SavedProgram, data)
        name, code, description, author = (_text(found, field) for field in ("name", "code", "description", "author"))
        inputs, tools = _object(found, "inputs"), _object(found, "tools")
        return cls(name, code, description, inputs, tools, author, datetime.fromisoformat(_text(found, "at")))


def input_schema(program: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of inputs.

    Args:
        program: The program's name, for errors.
        inputs: Each input's type, or its JSON schema; one whose schema has a default may be left out.

    Raises:
        SavedProgramError: A name cannot be that of an input, or a type has no JSON schema.
    """
    _require_input_names(program, inputs)
    if not inputs:
        return {"type": "object", "properties": {}, "additionalProperties": False}
    types = {name: _annotation(kind) for name, kind in inputs.items()}
    try:
        schema = TypeAdapter(TypedDict("Inputs", types)).json_schema()  # type: ignore[operator]  # pyright: ignore
    except (PydanticUserError, KeyError, TypeError) as error:  # KeyError: a reference that leads nowhere
        for name, kind in inputs.items():
            if not isinstance(kind, Mapping):
                try:
                    TypeAdapter(kind).json_schema()
                except (PydanticUserError, KeyError, TypeError):
                    mend = "give a type, as in list[str], or a JSON schema, as in {'type': 'string'}"
                    problem = f"its input `{name}` is {kind!r:.80}, which has no JSON schema; {mend}"
                    raise SavedProgramError(program, problem) from None
        raise SavedProgramError(program, f"an input's type has no JSON schema: {error}") from None
    parts = [schema, *schema["properties"].values()]
    for part in parts:
        part.pop("title", None)
    return {**schema, "additionalProperties": False}


def definition_digest(tool: Tool[..., Any]) -> str:
    """Return the digest of what a program relies on of a tool: its description, arguments, results and effect."""
    source = None if tool.source is None else tool.source.get_definition()
    stated = {
        "description": tool.description,
        "parameters": tool.parameters,
        "returns": tool.return_schema,
        "effect": tool.options.effect,
        "third party": source,
    }
    return digest(tool.name, stated)


def with_header(code: str, inputs: Mapping[str, Any]) -> str:
    """Return a program with the comment that names its inputs, given their schema, before its first line."""
    return f"{_header(sorted(inputs['properties']))}\n{code}"


def _header(names: Iterable[str]) -> str:
    return f"# inputs: {', '.join(names) or 'none'}"


def _annotation(kind: Any) -> Any:
    """Return the type of an input's schema or type."""
    if not isinstance(kind, Mapping):
        return kind
    schema = dict(cast("Mapping[str, Any]", kind))
    annotation = Annotated[Any, WithJsonSchema(schema)]
    return NotRequired[annotation] if "default" in schema else annotation


def _require_input_names(program: str, names: Iterable[str]) -> None:
    names = tuple(names)
    if len(names) > _MOST_INPUTS:
        raise SavedProgramError(program, f"it has {count_text(len(names), 'input')}, and may have {_MOST_INPUTS}")
    for name in names:
        is_text = isinstance(cast("object", name), str)
        is_plain = (
            is_text
            and name.isidentifier()
            and not keyword.iskeyword(name)
            and unicodedata.normalize("NFKC", name) == name
        )
        if not is_plain or name.startswith("_") or name in _BUILTINS:
            raise SavedProgramError(program, f"{name!r:.80} cannot be the name of an input; write a name like `city`")


def _text(found: StoredFields, name: str) -> str:
    value = found[name]
    if not isinstance(value, str):
        raise ValueError(f"this is not a SavedProgram: the field `{name}` is not text")
    return value


def _object(found: StoredFields, name: str) -> dict[str, Any]:
    value = found[name]
    if not isinstance(value, dict):
        raise ValueError(f"this is not a SavedProgram: the field `{name}` is not an object")
    return cast("dict[str, Any]", value)
