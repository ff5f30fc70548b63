"""Gemini: function declarations, contents of parts, and a `functionResponse` in the next content for each call.

A content with calls is answered by the next one, with as many responses as it has calls and before any other part. A
call may come without an id; it then gets one here that never goes out, and its response is known by name and order.
Source: https://ai.google.dev/gemini-api/docs/function-calling and https://ai.google.dev/api/caching#Content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, cast

from toolcrib.calls import Media, carried
from toolcrib.errors import FormatError
from toolcrib.formats._call_ids import made_id, seed_of, seeds_of, unused_id
from toolcrib.formats._constraints import PROSE, described
from toolcrib.formats._format import ProviderFormat
from toolcrib.formats._json_reading import is_object, json_shape, object_or_empty, objects_in, text_or_empty
from toolcrib.formats._result_pairing import Layout, ResultSpot
from toolcrib.formats._strict_schema import check_root
from toolcrib.formats._transcript_rules import CallKey
from toolcrib.formats._wire import Choice, Item, WireCall, WireReply, WireResult

__all__ = ["GEMINI"]

_KEPT = (
    "type", "format", "description", "nullable", "enum", "items", "minItems", "maxItems", "properties", "required",
    "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "minimum", "maximum", "anyOf", "default",
)  # fmt: skip
_TEXT_FORMATS = frozenset({"float", "double", "int32", "int64", "enum", "date-time"})
_IN_PROSE = ("exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems")  # what the subset has no word for
_PATH_STEP = re.compile(r"\.(?P<name>[^.\[\]]+)|\[(?P<index>\d+)\]|\['(?P<single>[^']*)'\]|\[\"(?P<double>[^\"]*)\"\]")
_MOST_STEPS = 100
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")
_UNSENT = "unnamed_"  # begins the ids that were made here
_FINE = frozenset({"", "STOP", "FINISH_REASON_UNSPECIFIED"})
_TAKEN = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})


class _Gemini(ProviderFormat):
    title = "gemini"
    sdk = "google"
    names = r"[A-Za-z_][A-Za-z0-9_.-]{0,63}"
    names_rule = "up to 64 letters, digits, `_`, `.` and `-`, beginning with a letter or `_`"
    strict = False
    returns = True
    layout = Layout("next", needs_ids=False)

    def define(
        self,
        name: str,
        description: str,
        parameters: Mapping[str, Any],
        strict: bool,
        returns: Mapping[str, Any] | None,
    ) -> Item:
        check_root(name, self.title, parameters)
        _check_names(name, parameters)
        made: Item = {"name": name, "description": description or name}
        schema = _openapi_schema({"type": "object", **parameters})
        if schema is not None:
            made["parameters"] = schema
        response = None if returns is None else _openapi_schema(returns)
        if response is not None:
            made["response"] = response
        return made

    def wrap(self, definitions: list[Item]) -> list[Item]:
        return [{"functionDeclarations": definitions}] if definitions else []

    # --- replies

    def parse(self, reply: object, taken: Collection[str] = ()) -> WireReply:
        return self._read(json_shape(reply), taken, ())

    def gather(self, chunks: Iterable[object], taken: Collection[str] = ()) -> WireReply:
        reply, problems = _gathered(json_shape(chunk) for chunk in chunks)
        return self._read(reply, taken, problems)

    def recognises(self, shape: Mapping[str, Any]) -> bool:
        return "candidates" in shape

    def text_delta(self, chunk: Mapping[str, Any]) -> str:
        candidate = next((one for one in objects_in(chunk.get("candidates")) if not one.get("index")), None)
        return "" if candidate is None else _text_of(object_or_empty(candidate.get("content")).get("parts"))

    def _read(self, reply: Mapping[str, Any], taken: Collection[str], before: Sequence[str]) -> WireReply:
        problems = list(before)
        candidate = next(objects_in(reply.get("candidates")), None)
        if candidate is None:
            reason = text_or_empty(object_or_empty(reply.get("promptFeedback")).get("blockReason"))
            problems.append(f"the prompt was blocked: {reason}" if reason else "the reply has no candidates")
            return WireReply((), "", (), None, tuple(problems))
        stop = text_or_empty(candidate.get("finishReason")) or None
        if (stop or "") not in _FINE:
            problems.append(f"the reply ended early: {text_or_empty(candidate.get('finishMessage')) or stop}")
        parts: list[Item] = []
        for sent in objects_in(object_or_empty(candidate.get("content")).get("parts")):
            part = _taken_back(sent)
            if "functionCall" in part and not text_or_empty(object_or_empty(part["functionCall"]).get("name")):
                problems.append("one of its calls named no tool and was left out")
            elif part:
                if "functionCall" in part:
                    part["functionCall"]["name"] = self.called(part["functionCall"]["name"], problems)
                parts.append(part)
        item: Item = {"role": "model", "parts": parts}
        changed = self._replace_used_ids(item, taken)
        calls = self._calls(item, taken)
        if not parts:
            problems.append("the reply is empty")
        return WireReply((item,) if parts else (), _text_of(parts), calls, stop, (*problems, *changed))

    def _replace_used_ids(self, item: Item, taken: Collection[str]) -> list[str]:
        """Give a call another id where its own is in use; return what was changed."""
        used, changed = set[str](), list[str]()
        for place, part in enumerate(item["parts"]):
            call = object_or_empty(part.get("functionCall"))
            id = text_or_empty(call.get("id"))
            if id and (id in used or id in taken):
                new = unused_id(seed_of(call, place), made_id, taken, used)
                item["parts"][place] = {**part, "functionCall": {**call, "id": new}}
                changed.append(
                    f"a call of `{call.get('name')}` came with the id `{id}`, which is in use, and is `{new}`"
                )
                id = new
            used.add(id)
        return changed

    # --- transcripts

    def calls_of(self, item: Mapping[str, Any]) -> tuple[WireCall, ...]:
        return self._calls(item, ())

    def _calls(self, item: Mapping[str, Any], taken: Collection[str]) -> tuple[WireCall, ...]:
        if item.get("role") != "model":
            return ()
        parts = list(objects_in(item.get("parts")))
        sent = [object_or_empty(part["functionCall"]) for part in parts if "functionCall" in part]
        ids = [text_or_empty(call.get("id")) for call in sent]
        if "" in ids:
            seeds, used = seeds_of(parts, len(ids)), set(ids)
            made = (unused_id(seed, _unsent_id, taken, used) for seed in seeds)
            ids = [id or new for id, new in zip(ids, made, strict=True)]
        return tuple(
            WireCall(id, text_or_empty(call.get("name")), object_or_empty(call.get("args")))
            for id, call in zip(ids, sent, strict=True)
        )

    def results_of(self, item: Mapping[str, Any]) -> tuple[WireResult, ...]:
        return tuple(map(_read_result, _responses(item)))

    def call_keys(self, item: Mapping[str, Any]) -> list[CallKey]:
        if item.get("role") != "model":
            return []
        sent = [
            object_or_empty(part["functionCall"]) for part in objects_in(item.get("parts")) if "functionCall" in part
        ]
        return [(text_or_empty(call.get("id")), text_or_empty(call.get("name"))) for call in sent]

    def call_ids(self, item: Mapping[str, Any]) -> list[str]:
        return [call.id for call in self.calls_of(item)]

    def result_keys(self, item: Mapping[str, Any]) -> list[CallKey] | None:
        given = [object_or_empty(part["functionResponse"]) for part in _responses(item)]
        if given and self.leading(item) < len(given):
            return None
        return [(text_or_empty(one.get("id")), text_or_empty(one.get("name"))) for one in given]

    def key_of(self, call: WireCall) -> CallKey:
        return ("" if call.id.startswith(_UNSENT) else call.id, call.name)

    def answerable(self, keys: Sequence[CallKey]) -> bool:
        ids = [key[0] for key in keys if key[0]]
        return len(set(ids)) == len(ids)

    def still_unanswered(self, waiting: list[CallKey], answered: list[CallKey]) -> list[CallKey] | None:
        """Return what is left; all have to be answered, and in their order, as one without an id is known by that."""
        if len(answered) != len(waiting):
            return None
        pairs = zip(waiting, answered, strict=True)
        return (
            []
            if all(one[1] == two[1] and (one[0] == two[0] or not (one[0] and two[0])) for one, two in pairs)
            else None
        )

    def answer(self, results: Sequence[WireResult]) -> list[Item]:
        return self.pack([_function_response(result) for result in results])

    def raw_results(self, item: Mapping[str, Any]) -> list[Item]:
        return [dict(part) for part in _responses(item)]

    def leading(self, item: Mapping[str, Any]) -> int:
        if item.get("role") not in ("user", "function"):
            return 0
        given = ["functionResponse" in part for part in objects_in(item.get("parts"))]
        return next((place for place, is_result in enumerate(given) if not is_result), len(given))

    def rest_of(self, item: Mapping[str, Any]) -> Item | None:
        rest = [part for part in objects_in(item.get("parts")) if "functionResponse" not in part]
        return {**item, "parts": rest} if rest else None

    def pack(self, raw: Sequence[Item], rest: Item | None = None) -> list[Item]:
        if not raw:
            return [] if rest is None else [rest]
        if rest is None:
            return [{"role": "user", "parts": [*raw]}]
        return [{**rest, "parts": [*raw, *rest["parts"]]}]

    def matches(self, call: WireCall, found: ResultSpot) -> bool:
        if found.id and not call.id.startswith(_UNSENT):
            return call.id == found.id
        return call.name == found.name

    def with_call_ids(self, item: Mapping[str, Any], ids: Sequence[str]) -> Item:
        new = iter(ids)
        parts: list[Item] = []
        for part in objects_in(item.get("parts")):
            if "functionCall" in part:
                id = next(new)
                kept = {} if id.startswith(_UNSENT) else {"id": id}
                part = {**part, "functionCall": {**object_or_empty(part["functionCall"]), **kept}}
            parts.append(dict(part))
        return {**item, "parts": parts}

    def with_result_id(self, raw: Item, id: str) -> Item:
        return {**raw, "functionResponse": {**object_or_empty(raw["functionResponse"]), "id": id}}

    # --- requests

    def tool_choice(self, kind: Choice, name: str | None = None) -> Any:
        config: Item = {"mode": "AUTO" if kind == "optional" else "ANY"}
        if kind == "specific":
            config["allowedFunctionNames"] = [name]
        return {"functionCallingConfig": config}

    def user(self, text: str) -> list[Item]:
        return [{"role": "user", "parts": [{"text": text}]}]

    def system(self, text: str) -> list[Item]:
        return []

    def assistant(self, text: str) -> list[Item]:
        return [{"role": "model", "parts": [{"text": text}]}]


def _text_of(parts: object) -> str:
    return "".join(text_or_empty(part.get("text")) for part in objects_in(parts) if not part.get("thought"))


def _unsent_id(seed: str) -> str:
    return made_id(seed).replace("call_", _UNSENT)


def _responses(item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [part for part in objects_in(item.get("parts")) if "functionResponse" in part]


def _read_result(part: Mapping[str, Any]) -> WireResult:
    given = object_or_empty(part["functionResponse"])
    response = object_or_empty(given.get("response"))
    is_error = "error" in response and "output" not in response
    said = response.get("error" if is_error else "output", response)  # without either, all of it is the output
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, default=str)
    return WireResult(WireCall(text_or_empty(given.get("id")), text_or_empty(given.get("name")), ""), text, is_error)


def _function_response(result: WireResult) -> Item:
    parts = carried(result.parts, lambda media: media.mime_type in _TAKEN and media.data is not None)
    sent = [part for part in parts if isinstance(part, Media)]
    text = "\n".join(part for part in parts if isinstance(part, str)) if sent else result.content
    made: Item = {} if result.call.id.startswith(_UNSENT) or not result.call.id else {"id": result.call.id}
    made |= {"name": result.call.name, "response": {"error" if result.is_error else "output": text}}
    if sent:
        made["parts"] = [{"inlineData": _inline(one)} for one in sent]
    return {"functionResponse": made}


def _inline(media: Media) -> Item:
    name = {"displayName": media.name} if media.name else {}
    return {"mimeType": media.mime_type, "data": media.base64, **name}


# --- schemas

# A declaration's schema is a part of OpenAPI 3.0 and not JSON Schema: references are written out, `null` becomes
# `nullable`, and a constraint that the subset cannot say goes into the description.
# Source: https://ai.google.dev/api/caching#FunctionDeclaration and #Schema.


def _check_names(tool: str, parameters: Mapping[str, Any]) -> None:
    """Raise FormatError for a parameter's name that is refused."""
    for key in parameters.get("properties", ()):
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", key):
            rule = "up to 64 letters, digits and `_`; rename it or give it an alias"
            raise FormatError(tool, "gemini", f"the name of the parameter `{key}` is none of {rule}")


def _openapi_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a schema in the subset; None for an object without properties, which is refused and has to be left out."""
    if schema.get("type") == "object" and not schema.get("properties"):
        return None
    return _schema(schema, schema, ())


def _schema(schema: Any, root: Mapping[str, Any], inside: tuple[str, ...]) -> dict[str, Any]:
    """Return `schema` in the subset; `inside` holds the references that are being written out."""
    if not isinstance(schema, Mapping):  # `true`: anything
        return {}
    source = dict(cast("Mapping[str, Any]", schema))
    ref = source.pop("$ref", None)
    if isinstance(ref, str):
        if ref in inside:  # a recursive type has no end; the innermost level is any object
            return {"type": "object", "description": f"{ref.rpartition('/')[2]}, as above"}
        return _schema({**_target(ref, root), **source}, root, (*inside, ref))
    for part in source.pop("allOf", ()):
        source = {**_target(part.get("$ref", ""), root), **{k: v for k, v in part.items() if k != "$ref"}, **source}
    constraints = _constraints(source)
    _choose_type(source)
    made = {key: value for key, value in source.items() if key in _KEPT and value is not None}
    if "properties" in made:
        made["properties"] = {key: _schema(part, root, inside) for key, part in made["properties"].items()}
    items = source.get("items", source.get("prefixItems"))
    if items is not None:
        made["items"] = _items(items, root, inside)
    if "anyOf" in made:
        made = _merge([_schema(part, root, inside) for part in made.pop("anyOf")], made)
    return described(made, constraints)


def _merge(choices: list[dict[str, Any]], outer: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with its choices; a single one is no choice and becomes part of it."""
    return {**outer, "anyOf": choices} if len(choices) > 1 else {**choices[0], **outer}


def _target(ref: str, root: Mapping[str, Any]) -> dict[str, Any]:
    return dict(root.get("$defs", {}).get(ref.rpartition("/")[2], {}))


def _items(items: Any, root: Mapping[str, Any], inside: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(items, list):
        return _schema(items, root, inside)
    choices = [_schema(item, root, inside) for item in cast("list[Any]", items)]
    different = [choice for index, choice in enumerate(choices) if choice not in choices[:index]]
    return different[0] if len(different) == 1 else {"anyOf": different}


def _choose_type(source: dict[str, Any]) -> None:
    """Turn what JSON Schema says of types into one type, `anyOf` and `nullable`."""
    choices = list(source.pop("oneOf", ())) + list(source.pop("anyOf", ()))
    kinds: Any = source.get("type")
    if isinstance(kinds, list):
        several = [kind for kind in cast("list[str]", kinds) if kind != "null"]
        if "null" in kinds:
            source["nullable"] = True
        del source["type"]
        if len(several) == 1:
            source["type"] = several[0]
        else:
            choices += [{"type": kind} for kind in several]
    if {"type": "null"} in choices:
        choices.remove({"type": "null"})
        source["nullable"] = True
    if choices:
        source["anyOf"] = choices


def _constraints(source: dict[str, Any]) -> str:
    """Take out of `source` the constraints that the subset cannot keep, and return them in prose."""
    if "const" in source:
        source["enum"] = [source.pop("const")]
    words: list[str] = []
    values = source.get("enum")
    if isinstance(values, list):
        texts = [value for value in cast("list[Any]", values) if value is not None]
        if None in values:
            source["nullable"] = True
        if all(isinstance(value, str) for value in texts):
            source.update(enum=texts)
            source.setdefault("type", "string")
        else:
            words.append(f"one of: {', '.join(map(json.dumps, texts))}")
            del source["enum"]
    if source.get("format", "date-time") not in _TEXT_FORMATS:
        words.append(PROSE["format"].format(source.pop("format")))
    found = [key for key in _IN_PROSE if source.get(key, False) is not False]
    return ", ".join([*words, *(PROSE[key].format(source[key]) for key in found)])


# --- streams


def _gathered(chunks: Iterable[Mapping[str, Any]]) -> tuple[Item, list[str]]:
    """Return the whole reply, and what was wrong with the stream."""
    whole: Item = {}
    candidate: Item = {}
    parts: list[Item] = []
    begun: list[_PartialCall] = []
    for chunk in chunks:
        if chunk.get("promptFeedback"):
            whole["promptFeedback"] = chunk["promptFeedback"]
        for piece in objects_in(chunk.get("candidates")):
            if piece.get("index"):
                continue
            candidate |= {key: value for key, value in piece.items() if key != "content" and value is not None}
            for part in objects_in(object_or_empty(piece.get("content")).get("parts")):
                _append_part(parts, _taken_back(part), begun)
    cut = [call for call in begun if call.open or call.broken]  # arguments that are not all there must not be acted on
    parts = [part for part in parts if not any(part is call.part for call in cut)]
    if candidate or parts:
        whole["candidates"] = [{**candidate, "content": {"role": "model", "parts": parts}}]
    ended = bool(candidate.get("finishReason") or whole.get("promptFeedback"))
    problems = [] if ended else ["the stream was cut: it never said why it ended"]
    problems += [f"the arguments of a call of `{call.name}` were cut, and it was left out" for call in cut]
    return whole, problems


def _taken_back(part: Mapping[str, Any]) -> Item:
    """Return a part as it is taken back, without what is null; an empty text alone is nothing."""
    kept = {key: value for key, value in part.items() if value is not None}
    if isinstance(kept.get("functionCall"), Mapping):
        said = {key: value for key, value in kept["functionCall"].items() if value is not None}
        if not is_object(said.get("args", {})):
            del said["args"]  # only an object is taken back
        kept["functionCall"] = said
    return {} if kept == {"text": ""} else kept


def _append_part(parts: list[Item], part: Item, begun: list[_PartialCall]) -> None:
    """Append a part, unless it goes on with the one before.

    Text goes on where text of the same kind stopped, unless one of them is signed; a call whose arguments come in
    pieces goes on with parts that name no tool.
    """
    if "functionCall" in part:
        going_on = (
            bool(begun) and begun[-1].open and not text_or_empty(object_or_empty(part["functionCall"]).get("name"))
        )
        if going_on:
            begun[-1].add(part)
            return
        if _PartialCall.begins(part):
            begun.append(_PartialCall(part))
            parts.append(begun[-1].part)
            return
    last = parts[-1] if parts else {}
    joins = set(part) <= {"text", "thought"} and set(last) <= {"text", "thought"} and "text" in last and "text" in part
    if joins and bool(part.get("thought")) == bool(last.get("thought")):
        last["text"] = text_or_empty(last["text"]) + text_or_empty(part["text"])
    elif part:
        parts.append(dict(part))


class _PartialCall:
    """A call whose arguments are streamed one by one, each with the path to its place.

    Attributes:
        part: The part as it is taken back, with what is there of the arguments.
        open: Whether more of it has to come.
        broken: Whether a path leads nowhere, so that the arguments are not the model's.
    """

    def __init__(self, part: Mapping[str, Any]) -> None:
        self.part: Item = {**part, "functionCall": {}}
        self.open, self.broken = True, False
        self._arguments: Item = {}
        self._growing: object = None  # the path of a text that goes on
        self.add(part)

    @staticmethod
    def begins(part: Mapping[str, Any]) -> bool:
        """Return whether the arguments of a part's call come later, or in pieces."""
        call = object_or_empty(part.get("functionCall"))
        return bool(call.get("willContinue") or call.get("partialArgs"))

    @property
    def name(self) -> str:
        """The tool's name."""
        return text_or_empty(self.part["functionCall"].get("name"))

    def add(self, part: Mapping[str, Any]) -> None:
        """Take up the next part of it."""
        call = object_or_empty(part.get("functionCall"))
        self.part |= {key: value for key, value in part.items() if key != "functionCall"}
        self._arguments |= object_or_empty(call.get("args"))
        for piece in objects_in(call.get("partialArgs")):
            self._put(piece)
        kept = {key: value for key, value in call.items() if key not in ("args", "partialArgs", "willContinue")}
        self.part["functionCall"] |= {**kept, "args": self._arguments}
        self.open = bool(call.get("willContinue"))

    def _put(self, piece: Mapping[str, Any]) -> None:
        path = _steps(text_or_empty(piece.get("jsonPath")))
        kind = next((key for key in _VALUES if key in piece), None)
        if path is None or kind is None or not _put(self._arguments, path, _value(piece, kind), self._growing == path):
            self.broken = True
            return
        self._growing = path if piece.get("willContinue") else None


def _steps(path: str) -> list[str | int] | None:
    """Return the steps of a path, `$.a.b[0]`; None for one that says nothing, or more than this."""
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        found = _PATH_STEP.match(path, at)
        if found is None:
            return None
        index = found["index"]
        names = (found[key] for key in ("name", "single", "double"))
        steps.append(next((name for name in names if name is not None), "") if index is None else int(index))
        at = found.end()
    return steps if path.startswith("$") and 0 < len(steps) < _MOST_STEPS and isinstance(steps[0], str) else None


def _value(piece: Mapping[str, Any], kind: str) -> Any:
    value = piece[kind]
    if kind == "nullValue":
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _fits(place: Any, step: str | int) -> bool:
    """Return whether there is such a place: an object's, or one of a list up to the end of it."""
    if isinstance(step, str):
        return isinstance(place, dict)
    return isinstance(place, list) and step <= len(cast("list[Any]", place))


def _put(place: Any, path: list[str | int], value: Any, goes_on: bool) -> bool:
    """Put a value where the path says, or after the text that is there; return whether there is such a place."""
    step, rest = path[0], path[1:]
    if not _fits(place, step):
        return False
    known = step < len(place) if isinstance(step, int) else step in place
    held = place[step] if known else None
    if rest:
        made = held if known else list[Any]() if isinstance(rest[0], int) else Item()
        if not _put(made, rest, value, goes_on):
            return False
    else:
        made = held + value if goes_on and isinstance(held, str) and isinstance(value, str) else value
    if known or not isinstance(step, int):
        place[step] = made
    else:
        place.append(made)
    return True


GEMINI = _Gemini()
