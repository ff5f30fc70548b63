"""Gemini: function declarations, contents of parts, and a `functionResponse` in the next content for each call.

A content with calls is answered by the next one, with as many responses as it has calls and before any other part. A
call may come without an id; it then gets one here that never goes out, and its response is known by name and order.
Source: https://ai.google.dev/gemini-api/docs/function-calling and https://ai.google.dev/api/caching#Content.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from toolcrib.formats._format import ProviderFormat
from toolcrib.formats._gemini_schema import check_names, gemini_schema
from toolcrib.formats._gemini_stream import gather_contents, settled_part
from toolcrib.formats._ids import made_id, seed_of, seeds_of, unused_id
from toolcrib.formats._pairing import Layout, ResultSpot
from toolcrib.formats._strict import check_root
from toolcrib.formats._waiting import CallKey
from toolcrib.formats._wire import (
    Choice,
    Item,
    Media,
    WireCall,
    WireReply,
    WireResult,
    entries,
    plain,
    table,
    wire_call,
    word,
)

__all__ = ["GEMINI"]

_UNSENT = "unnamed_"  # begins the ids that were made here
_FINE = frozenset({"", "STOP", "FINISH_REASON_UNSPECIFIED"})
_TAKEN = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})


class _Gemini(ProviderFormat):
    title = "gemini"
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
        check_names(name, parameters)
        made: Item = {"name": name, "description": description or name}
        schema = gemini_schema({"type": "object", **parameters})
        if schema is not None:
            made["parameters"] = schema
        response = None if returns is None else gemini_schema(returns)
        if response is not None:
            made["response"] = response
        return made

    def wrap(self, definitions: list[Item]) -> list[Item]:
        return [{"functionDeclarations": definitions}] if definitions else []

    # --- replies

    def parse(self, reply: object, taken: Collection[str] = ()) -> WireReply:
        return self._read(plain(reply), taken, ())

    def gather(self, chunks: Iterable[object], taken: Collection[str] = ()) -> WireReply:
        reply, problems = gather_contents(plain(chunk) for chunk in chunks)
        return self._read(reply, taken, problems)

    def _read(self, reply: Mapping[str, Any], taken: Collection[str], before: Sequence[str]) -> WireReply:
        problems = list(before)
        candidate = next(entries(reply.get("candidates")), None)
        if candidate is None:
            reason = word(table(reply.get("promptFeedback")).get("blockReason"))
            problems.append(f"the prompt was blocked: {reason}" if reason else "the reply has no candidates")
            return WireReply((), "", (), None, tuple(problems))
        stop = word(candidate.get("finishReason")) or None
        if (stop or "") not in _FINE:
            problems.append(f"the reply ended early: {word(candidate.get('finishMessage')) or stop}")
        parts: list[Item] = []
        for sent in entries(table(candidate.get("content")).get("parts")):
            part = settled_part(sent)
            if "functionCall" in part and not word(table(part["functionCall"]).get("name")):
                problems.append("one of its calls named no tool and was left out")
            elif part:
                if "functionCall" in part:
                    part["functionCall"]["name"] = self.called(part["functionCall"]["name"], problems)
                parts.append(part)
        item: Item = {"role": "model", "parts": parts}
        changed = self._settle(item, taken)
        calls = self._calls(item, taken)
        if not parts:
            problems.append("the reply is empty")
        text = "".join(word(part.get("text")) for part in parts if not part.get("thought"))
        return WireReply((item,) if parts else (), text, calls, stop, (*problems, *changed))

    def _settle(self, item: Item, taken: Collection[str]) -> list[str]:
        """Give a call another id where its own is in use; return what was changed."""
        used, changed = set[str](), list[str]()
        for place, part in enumerate(item["parts"]):
            call = table(part.get("functionCall"))
            id = word(call.get("id"))
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
        parts = list(entries(item.get("parts")))
        sent = [table(part["functionCall"]) for part in parts if "functionCall" in part]
        ids = [word(call.get("id")) for call in sent]
        if "" in ids:
            seeds, used = seeds_of(parts, len(ids)), set(ids)
            made = (unused_id(seed, _unsent_id, taken, used) for seed in seeds)
            ids = [id or new for id, new in zip(ids, made, strict=True)]
        return tuple(
            wire_call(id, word(call.get("name")), table(call.get("args"))) for id, call in zip(ids, sent, strict=True)
        )

    def results_of(self, item: Mapping[str, Any]) -> tuple[WireResult, ...]:
        return tuple(map(_read_result, _responses(item)))

    def call_keys(self, item: Mapping[str, Any]) -> list[CallKey]:
        if item.get("role") != "model":
            return []
        sent = [table(part["functionCall"]) for part in entries(item.get("parts")) if "functionCall" in part]
        return [(word(call.get("id")), word(call.get("name"))) for call in sent]

    def call_ids(self, item: Mapping[str, Any]) -> list[str]:
        return [call.id for call in self.calls_of(item)]

    def result_keys(self, item: Mapping[str, Any]) -> list[CallKey] | None:
        given = [table(part["functionResponse"]) for part in _responses(item)]
        if given and self.leading(item) < len(given):
            return None
        return [(word(one.get("id")), word(one.get("name"))) for one in given]

    def key_of(self, call: WireCall) -> CallKey:
        return ("" if call.id.startswith(_UNSENT) else call.id, call.name)

    def usable(self, keys: Sequence[CallKey]) -> bool:
        ids = [key[0] for key in keys if key[0]]
        return len(set(ids)) == len(ids)

    def left(self, waiting: list[CallKey], answered: list[CallKey]) -> list[CallKey] | None:
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
        given = ["functionResponse" in part for part in entries(item.get("parts"))]
        return next((place for place, is_result in enumerate(given) if not is_result), len(given))

    def rest_of(self, item: Mapping[str, Any]) -> Item | None:
        rest = [part for part in entries(item.get("parts")) if "functionResponse" not in part]
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
        for part in entries(item.get("parts")):
            if "functionCall" in part:
                id = next(new)
                kept = {} if id.startswith(_UNSENT) else {"id": id}
                part = {**part, "functionCall": {**table(part["functionCall"]), **kept}}
            parts.append(dict(part))
        return {**item, "parts": parts}

    def with_result_id(self, raw: Item, id: str) -> Item:
        return {**raw, "functionResponse": {**table(raw["functionResponse"]), "id": id}}

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


def _unsent_id(seed: str) -> str:
    return made_id(seed).replace("call_", _UNSENT)


def _responses(item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [part for part in entries(item.get("parts")) if "functionResponse" in part]


def _read_result(part: Mapping[str, Any]) -> WireResult:
    given = table(part["functionResponse"])
    response = table(given.get("response"))
    is_error = "error" in response and "output" not in response
    said = response.get("error" if is_error else "output", response)  # without either, all of it is the output
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, default=str)
    return WireResult(WireCall(word(given.get("id")), word(given.get("name")), ""), text, is_error)


def _function_response(result: WireResult) -> Item:
    sent = [one for one in result.media if one.type in _TAKEN and one.url is None] if result.media else []
    text = result.text(tuple(one for one in result.media if one not in sent)) if result.media else result.content
    made: Item = {} if result.call.id.startswith(_UNSENT) or not result.call.id else {"id": result.call.id}
    made |= {"name": result.call.name, "response": {"error" if result.is_error else "output": text}}
    if sent:
        made["parts"] = [{"inlineData": _inline(one)} for one in sent]
    return {"functionResponse": made}


def _inline(media: Media) -> Item:
    name = {"displayName": media.name} if media.name else {}
    return {"mimeType": media.type, "data": media.base64, **name}


GEMINI = _Gemini()
