"""Problems of arguments that do not fit, in plain words: which argument, what would be right, what came."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any, NamedTuple, TypeAlias, cast, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import InitErrorDetails, from_json
from pydantic_core.core_schema import ErrorType

from toolcrib._numbers import count_text
from toolcrib.errors import FieldProblem, nearest
from toolcrib.jsonschema import SchemaWalk, brief, path_of, type_words
from toolcrib.schema._core_schema import type_holds_secret
from toolcrib.schema._json_form import Notes, json_form
from toolcrib.schema._markers import REDACTED
from toolcrib.schema._model import InputModel

Path: TypeAlias = tuple[int | str, ...]

HALF_A_CHARACTER = "has half a character in it. Write that text again"

_ABSENT = frozenset({"missing", "extra_forbidden", "missing_argument", "unexpected_keyword_argument"})
_NAMED = 30  # problems of one call: a list of ten thousand wrong items says enough with some of them
_LOOKED_AT = 300  # errors of pydantic's, of which a union gives several for one problem
_TOO_MANY = 10_000
_NAME = 200  # characters of a key; callers may make up any
_QUOTED = 4  # characters of a text that is looked for in the message about another value
_PYDANTICS = frozenset(get_args(ErrorType)) - {"assertion_error", "union_tag_invalid", "value_error"}
_WORD = re.compile(r"[^\W_]{3,}")
_SUBJECT = r"^\w+ should "
_EXPECTED = {
    "a string": "string_type string_sub_type string_unicode bytes_type",
    "an integer": "int_type int_parsing",
    "a whole number": "int_from_float",
    "a number": "float_type float_parsing",
    "a finite number": "finite_number",
    "true or false": "bool_type bool_parsing",
    "an array": "list_type tuple_type set_type frozen_set_type iterable_type",
    "an object": "dict_type model_type model_attributes_type dataclass_type mapping_type",
    "null": "none_required",
    "a date like 2025-01-31": ("date_type date_parsing date_from_datetime_parsing date_from_datetime_inexact"),
    "a time like 14:30:00": "time_type time_parsing",
    "a date and time like 2025-01-31T14:30:00": (
        "datetime_type datetime_parsing datetime_object_invalid datetime_from_date_parsing"
    ),
    "an ISO 8601 duration like PT1H30M": "time_delta_type time_delta_parsing",
    "a UUID": "uuid_type uuid_parsing",
    "a decimal number": "decimal_type decimal_parsing",
    "a file path": "path_type",
    "a URL": "url_type url_parsing url_syntax_violation",
}
_NUMBER, _TEXT = (int, float), (str,)
_KINDS: Mapping[str, tuple[tuple[type, ...], tuple[type, ...]]] = {
    # the kinds of JSON that a type is shown as, and the types of what pydantic would convert others to
    "int_type": (_NUMBER, _NUMBER),
    "float_type": (_NUMBER, _NUMBER),
    "bool_type": ((bool,), (bool,)),
    "date_type": (_TEXT, (date,)),
    "datetime_type": (_TEXT, (datetime,)),
    "time_type": (_TEXT, (time,)),
    "time_delta_type": (_TEXT, (timedelta,)),
}
_INFINITE = ("NaN", "Infinity", "-Infinity")  # the JSON form of numbers that are not finite
_EXPECTED_BY_TYPE = {kind: words for words, kinds in _EXPECTED.items() for kind in kinds.split()}


class ExpectedInput(NamedTuple):
    """The input that a tool asks for, as far as explaining a misfit needs it.

    Attributes:
        schema: The JSON schema of the arguments; empty without one.
        secret: Arguments whose values are never quoted; `*` for those that are not declared.
        hidden: Arguments that only the host sets.
    """

    schema: Mapping[str, Any]
    secret: frozenset[str]
    hidden: frozenset[str]


class _Misfit(NamedTuple):
    """One of pydantic's errors: where in the input, and through which branches of unions (with the depth of each)."""

    number: int
    path: Path
    branches: tuple[tuple[int, str], ...]
    detail: Mapping[str, Any]


def problems_of(error: ValidationError, values: Any, tool_input: ExpectedInput) -> tuple[FieldProblem, ...]:
    """Return a problem for each argument that does not fit; `values` is the input as received, parsed."""
    count = error.error_count()
    if count > _TOO_MANY:  # to have them listed takes seconds
        return (FieldProblem("", f"{count} values in them do not fit; send fewer at a time to see which"),)
    details = cast("list[dict[str, Any]]", error.errors(include_url=False))
    misfits = [_locate(number, detail, values) for number, detail in enumerate(details[:_LOOKED_AT])]
    for _ in range(8):  # unions inside unions; deeper ones show every branch
        if not any(misfit.branches for misfit in misfits):
            break
        misfits = _choose_branches(misfits)
    by_path: dict[Path, list[_Misfit]] = {}
    for misfit in misfits:
        by_path.setdefault(misfit.path, []).append(misfit)
    quoted = _secret_leaves(values, tool_input)
    named = [
        _problem(path, values, _explain(path, by_path[path], tool_input, quoted), tool_input)
        for path in [*by_path][:_NAMED]
    ]
    unnamed = len(by_path) - len(named) + max(0, len(details) - _LOOKED_AT)
    return (*named, *([FieldProblem("", f"and {unnamed} more")] if unnamed else []))


def output_problems(error: ValidationError, adapter: TypeAdapter[Any], output: Any) -> tuple[FieldProblem, ...]:
    """Return the problems of an output in pydantic's words, without any quotation where a part is secret.

    Args:
        error: Pydantic's error.
        adapter: The type that it has to be of.
        output: The output, or its JSON text.
    """
    details = cast("list[dict[str, Any]]", error.errors(include_url=False))
    if not type_holds_secret(adapter.core_schema):
        return tuple(FieldProblem(path_of(detail["loc"]), detail["msg"]) for detail in details)
    declared = property_names(adapter.json_schema())
    leaves = [leaf for leaf in _leaves(output) if leaf not in declared]
    return tuple(
        FieldProblem(
            path_of([part if isinstance(part, int) or part in declared else REDACTED for part in detail["loc"]]),
            "not accepted" if _quotes(detail, leaves) else detail["msg"],
        )
        for detail in details
    )


def property_names(schema: Any) -> frozenset[str]:
    """Return the names of all properties in a JSON schema, at any depth."""
    if isinstance(schema, list):
        return frozenset[str]().union(*map(property_names, cast("list[Any]", schema)))
    if not isinstance(schema, dict):
        return frozenset()
    named = cast("dict[str, Any]", schema)
    properties = named.get("properties")
    table = cast("dict[str, Any]", properties) if isinstance(properties, dict) else {}
    return frozenset(table).union(property_names([*named.values()]))


def let_through(
    inputs: InputModel, model: BaseModel, values: Any, tool_input: ExpectedInput
) -> tuple[FieldProblem, ...]:
    """Return a problem for each argument that a valid input should not have: unknown ones, and those of the host.

    Args:
        values: The input as received; read only where the model ignores what it does not know.
    """
    names = set(model.__pydantic_extra__ or {}) & tool_input.hidden
    if inputs.lenient and isinstance(values, Mapping):
        names |= set(cast("Mapping[str, Any]", values)) - inputs.names
    named = sorted(names)[:_NAMED]
    problems = [FieldProblem(path_of((name,)), unknown_argument((name,), tool_input)) for name in named]
    unnamed = len(names) - len(named)
    return (*problems, *([FieldProblem("", f"and {unnamed} more")] if unnamed else []))


def parsed(raw: str | bytes) -> Any:
    """Parse JSON text; None for invalid text."""
    try:
        return from_json(raw)
    except (ValueError, TypeError):  # TypeError: half a character, which no bytes are of
        return None


def wrong_kinds(error: ValidationError, values: Any, read: BaseModel) -> ValidationError | None:
    """Return the errors about values of another kind of JSON than their type is shown as, or None.

    A truth value is not a number, and neither of them is text. Pydantic would convert
    them: what is taken would then be neither what a model is shown, nor what a check by a JSON schema takes.

    Args:
        error: Pydantic's error for the input in its strict mode.
        values: The input as received, parsed.
        read: The input as it is read otherwise.
    """
    found: list[InitErrorDetails] = []
    for number, detail in enumerate(error.errors(include_url=False, include_context=False)):
        value = detail["input"]
        kinds, types = _KINDS.get(detail["type"], ((), ()))
        if not kinds or type(value) in kinds or value in _INFINITE:
            continue
        misfit = _locate(number, detail, values)
        is_as_sent = _value_at(values, misfit.path) == value  # and not what a validator made of it
        if is_as_sent and (not misfit.branches or isinstance(_value_at(read, misfit.path), types)):
            found.append(InitErrorDetails(type=detail["type"], loc=detail["loc"], input=value))
    return ValidationError.from_exception_data(error.title, found) if found else None


def _value_at(value: Any, path: Path) -> Any:
    for part in path:
        value = _step(value, part)[1]
    return value


def repeated_keys(raw: str | bytes, tool_input: ExpectedInput) -> tuple[FieldProblem, ...]:
    """Return a problem for each key that stands twice in an object of JSON text: which value was meant is not known."""
    declared = SchemaWalk(tool_input.schema).properties(tool_input.schema)
    found = dict[str, None]()

    def note(pairs: list[tuple[str, Any]]) -> None:
        if len(pairs) > len(dict(pairs)):
            counted = Counter(key for key, _ in pairs)
            found.update((key, None) for key, count in counted.items() if count > 1)

    try:
        json.JSONDecoder(object_pairs_hook=note, parse_int=str).decode(
            raw if isinstance(raw, str) else raw.decode("utf-8", "replace")
        )
    except (ValueError, RecursionError):  # what reads arguments says what is wrong with them
        return ()
    keys = [REDACTED if tool_input.secret and key not in declared else key for key in found]  # it may be of any object
    return tuple(
        FieldProblem(path_of((key,)), "sent more than once; send it once") for key in [*dict.fromkeys(keys)][:_NAMED]
    )


# --- where it does not fit -------------------------------------------------------------------------------------------


def _locate(number: int, detail: Mapping[str, Any], holder: Any) -> _Misfit:
    """Separate the keys in an error's location from the names of union branches, by walking the input along it."""
    location: Sequence[int | str] = detail["loc"]
    path: list[int | str] = []
    branches: list[tuple[int, str]] = []
    for index, part in enumerate(location):
        found, value = _step(holder, part)
        if found:
            holder = value
            path.append(part)
        elif index == len(location) - 1 and detail["type"] in _ABSENT:
            path.append(part)
        elif part != "[key]":
            branches.append((len(path), str(part)))
    return _Misfit(number, tuple(path), tuple(branches), detail)


def _step(value: Any, part: int | str) -> tuple[bool, Any]:
    if isinstance(value, Mapping):
        mapping = cast("Mapping[Any, Any]", value)
        return (True, mapping[part]) if part in mapping else (False, None)
    if isinstance(part, int):
        if isinstance(value, list | tuple):
            items = cast("Sequence[Any]", value)
            return (True, items[part]) if 0 <= part < len(items) else (False, None)
        return not isinstance(value, str | int | float | None), None  # an item of a set or an iterator
    if isinstance(value, BaseModel):
        return part in type(value).model_fields, getattr(value, part, None)
    return False, None


def _choose_branches(misfits: list[_Misfit]) -> list[_Misfit]:
    """Of each union's branches keep the one that got furthest; where none got in, keep all for an `or`."""
    unions: dict[Path, dict[str, list[_Misfit]]] = {}
    chosen: list[_Misfit] = []
    for misfit in misfits:
        if not misfit.branches:
            chosen.append(misfit)
            continue
        (depth, branch), rest = misfit.branches[0], misfit.branches[1:]
        union = unions.setdefault(misfit.path[:depth], {})
        union.setdefault(branch, []).append(misfit._replace(branches=rest))
    for path, union in unions.items():
        entered = [group for group in union.values() if any(len(misfit.path) > len(path) for misfit in group)]
        for group in [min(entered, key=len)] if entered else union.values():
            chosen.extend(group)
    return sorted(chosen, key=lambda misfit: misfit.number)


# --- what to say about it --------------------------------------------------------------------------------------------


def _problem(path: Path, values: Any, text: str, tool_input: ExpectedInput) -> FieldProblem:
    """Return a problem; in a secret argument a key that the schema does not declare is hidden in its path."""
    if not _is_secret(path, tool_input):
        return FieldProblem(path_of(path), text)
    walk, shown, place = SchemaWalk(tool_input.schema), [*path[:1]], [*path[:1]]
    for part in path[1:]:
        is_item = isinstance(part, int) and not isinstance(_value_at(values, path[: len(shown)]), Mapping)
        key = part if is_item else str(part)
        shown.append(key if is_item or key in walk.properties(walk.at(place)) else REDACTED)
        place.append(key)
    return FieldProblem(path_of(shown), text)


def _explain(path: Path, misfits: list[_Misfit], tool_input: ExpectedInput, quoted: Sequence[str]) -> str:
    """Explain the problem at a path; `quoted` are the secret texts of all arguments, which no message may contain."""
    detail, secret = misfits[0].detail, _is_secret(path, tool_input)
    match detail["type"]:
        case "missing" | "missing_argument":
            walk = SchemaWalk(tool_input.schema)
            return _missing(walk.at(path)) + ("" if secret else _unknown_beside(path, detail["input"], walk))
        case "extra_forbidden" | "unexpected_keyword_argument":
            return unknown_argument(path, tool_input)
        case "json_invalid":
            raw = detail["input"]
            text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
            return fault_of_json(text, detail["ctx"]["error"], quoted=not tool_input.secret)
        case "string_unicode" if isinstance(detail["input"], str):
            return HALF_A_CHARACTER
        case "union_tag_not_found":
            return f"must have the key {detail['ctx']['discriminator']}, which tells the kinds of object apart"
        case "union_tag_invalid":
            key, tags = detail["ctx"]["discriminator"], detail["ctx"]["expected_tags"]
            got = "" if secret else f"; got {brief(detail['ctx']['tag'])}"
            return f"the key {key} must be one of {tags}{got}"
        case _:
            pass
    if not path and detail["type"] in ("model_type", "model_attributes_type", "dict_type"):
        if holds_json(detail["input"], "{"):
            return "must be a JSON object with the arguments by name; got a text that holds one. Send the object itself"
        got = "" if secret else f"; got {brief(detail['input'])}"
        return f"must be a JSON object with the arguments by name{got}"
    expected = list(dict.fromkeys(text for misfit in misfits if (text := _expected(misfit.detail)) is not None))
    text = f"must be {' or '.join(expected)}" if expected else _own_words(detail, secret, quoted)
    for kind, begin in (("an array", "["), ("an object", "{")):
        if kind in text and holds_json(detail["input"], begin):
            noun = kind.removeprefix("an ")
            return f"{text}; got a text that holds one. Send the {noun} itself, without quotes around it"
    if secret or not path:
        return text
    if detail["input"] is None and "default" in SchemaWalk(tool_input.schema).at(path):
        return f"{text}; got null, leave it out to have the default"
    return f"{text}; got {brief(detail['input'])}"


def _missing(schema: Mapping[str, Any]) -> str:
    words = type_words(schema)
    description = schema.get("description")
    return "missing, it is required" + (f": {words}" if words else "") + (f", {description}" if description else "")


def _unknown_beside(path: Path, holder: Any, walk: SchemaWalk) -> str:
    """Return the unknown keys beside a missing key, for an object inside the arguments."""
    if len(path) < 2 or not isinstance(holder, Mapping):
        return ""
    known = walk.properties(walk.at(path[:-1]))
    unknown = [
        path_of((key,)) for key in cast("Mapping[Any, Any]", holder) if isinstance(key, str) and key not in known
    ]
    return f"; it has the unknown key {' and '.join(unknown[:3])}" if known and unknown else ""


def unknown_argument(path: Path, tool_input: ExpectedInput) -> str:
    """Explain why a caller may not give an argument."""
    name = str(path[-1])
    if len(path) == 1 and name in tool_input.hidden:
        return "set by the host and not by the caller; leave it out"
    noun = "argument" if len(path) == 1 else "key"
    walk = SchemaWalk(tool_input.schema)
    names = list(walk.properties(walk.at(path[:-1])))
    if not names:
        return f"unknown {noun}; no {noun}s are allowed"
    near = nearest(name[:_NAME], names)
    hint = f"did you mean {near[0]}? The" if near else "the"
    return f"unknown {noun}; {hint} {noun}s are {', '.join(names)}"


def _expected(detail: Mapping[str, Any]) -> str | None:
    """Return the expected value, as the end of "must be"; None where pydantic names more than a type."""
    if detail["type"] in ("literal_error", "enum"):
        return detail["ctx"]["expected"]
    return _EXPECTED_BY_TYPE.get(detail["type"])


def _own_words(detail: Mapping[str, Any], secret: bool, quoted: Sequence[str]) -> str:
    """Return the message of pydantic, or of a validator of the tool's author, unless it quotes a secret."""
    message: str = detail["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if any(leaf in message for leaf in quoted):
        return "not accepted"
    if secret and any(_has_part_of(leaf, message) for leaf in _leaves(detail["input"])):
        return "not accepted"
    return re.sub(_SUBJECT, "must ", message)


def _quotes(detail: Mapping[str, Any], leaves: Sequence[str]) -> bool:
    """Return whether the message about an output quotes something of it."""
    message: str = detail["msg"]
    if any(leaf in message for leaf in leaves if len(leaf) >= _QUOTED):
        return True
    is_own = detail["type"] not in _PYDANTICS  # of a validator, or one that quotes what came
    return is_own and any(_has_part_of(leaf, message) for leaf in _leaves(detail["input"]))


def _secret_leaves(values: Any, tool_input: ExpectedInput) -> list[str]:
    """Return the texts in secret arguments: the validator of another argument may know them, too."""
    if not isinstance(values, Mapping):
        return []
    named = cast("Mapping[str, Any]", values).items()
    found = [leaf for name, value in named if _is_secret((name,), tool_input) for leaf in _leaves(value)]
    declared = property_names(tool_input.schema) if found else ()
    return [leaf for leaf in found if len(leaf) >= _QUOTED and leaf not in declared]


def _has_part_of(secret: str, message: str) -> bool:
    """Return whether a message may quote a secret: all of it, or a word of it, as a validator cuts and escapes it."""
    if secret in message:
        return True
    secret, message = secret.casefold(), message.casefold()
    return any(
        word in text for source, text in ((secret, message), (message, secret)) for word in _WORD.findall(source)
    )


def _is_secret(path: Path, tool_input: ExpectedInput) -> bool:
    if not path:
        return bool(tool_input.secret)
    declared = SchemaWalk(tool_input.schema).properties(tool_input.schema)
    return path[0] in tool_input.secret or ("*" in tool_input.secret and path[0] not in declared)


def _leaves(value: Any) -> list[str]:
    """Return the texts in a value, those that secret types hide too."""
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return [leaf for item in items for leaf in _leaves(item)]
    if isinstance(value, list | tuple | set | frozenset):
        return [leaf for part in cast("Sequence[Any]", value) for leaf in _leaves(part)]
    form: Any = value if isinstance(value, str) else json_form(value, {"redact": False, "notes": Notes([], [])})
    if isinstance(form, dict | list):
        return _leaves(form)
    return [] if form is None or form == "" else [str(form)]


# --- JSON that cannot be read

_ONE_OBJECT = "Send the arguments as one JSON object"
_SHOWN = 30  # characters before the place where it is cut
_PLACE = re.compile(r" at line (\d+) column (\d+)$")
_CALL = re.compile(r"\s*[A-Za-z_][\w.]*\(")
_WORDS = re.compile(r"\s*[^\W\d_][^{}\[\]]*[{\[]")
_PYTHON = re.compile(r"\b(?:None|True|False)\b|'")


def fault_of_json(raw: str, error: str, quoted: bool) -> str:
    """Explain why a text is not valid JSON, and what to send.

    Args:
        raw: The text.
        error: The parser's error: `EOF while parsing a string at line 1 column 23`.
        quoted: Whether some of the text may be in the message; not where an argument is secret.
    """
    if raw.lstrip().startswith("```"):
        return "not valid JSON: it is in a Markdown fence. Send the JSON object alone, from { to }"
    if error.startswith("EOF"):
        inside = error.removeprefix("EOF while parsing ").partition(" at line")[0]
        after = f": `{raw[-_SHOWN:]}`" if quoted else ""
        cut = f"it is cut in the middle of {inside}, after {count_text(len(raw), 'character')}{after}"
        return f"not valid JSON: {cut}. Send all of it again, as one JSON object"
    if _CALL.match(raw):
        return "not valid JSON: it is a call in Python. Send its arguments alone, by name, as one JSON object"
    at = _place(raw, error)
    if at is not None and error.startswith("trailing characters"):
        more = f" with `{raw[at : at + _SHOWN]}`" if quoted else ""
        return f"not valid JSON: it goes on after its end{more}. Send one JSON object alone, from {{ to }}"
    if _WORDS.match(raw):
        return "not valid JSON: it begins with other words. Send the JSON object alone, from { to }"
    found = None if at is None else _PYTHON.search(raw, max(0, at - 2), at + 6)
    if found is not None:
        return (
            f"not valid JSON: it has {found[0]} as Python does{error[error.rindex(' at line') :]}. JSON has double "
            f"quotes, null, true and false. {_ONE_OBJECT}"
        )
    return f"not valid JSON: {error}. {_ONE_OBJECT}"


def holds_json(value: object, begin: str) -> bool:
    """Return whether a value is a text of what should have been sent itself; `begin` is how that begins."""
    return isinstance(value, str) and value.lstrip()[:1] == begin


def _place(raw: str, error: str) -> int | None:
    """Return the index that an error names; None where it names none."""
    found = _PLACE.search(error)
    if found is None:
        return None
    before = raw.encode("utf-8", "replace").split(b"\n")[: int(found[1])]
    return len(b"\n".join([*before[:-1], before[-1][: int(found[2]) - 1]]).decode("utf-8", "replace"))
