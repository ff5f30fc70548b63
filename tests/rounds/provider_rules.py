"""What each provider refuses in a transcript, read from its documentation and from the errors that it answers with.

Written a second time on purpose, and without anything of `toolcrib`: a mistake in `Transcript.check` must not hide in
the test of it. Sources: the API references that `toolcrib.formats` names; for Mistral also mistral-common's validator.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

Item = dict[str, Any]


def is_about_pairing(problem: str) -> bool:
    """Return whether a refusal is about which result answers which call, and not about a form or an order of turns."""
    return is_about_items(problem) and "order: " not in problem


def is_about_items(problem: str) -> bool:
    """Return whether a refusal is about which items there are and in which order, and not about the form of one."""
    return "form: " not in problem


def refused(format: str, transcript: Sequence[Item], sent: Collection[str] = ()) -> list[str]:
    """Return what the provider would refuse.

    Args:
        format: The provider.
        transcript: Its items.
        sent: Ids that the provider sent itself: only others have to be in the shape that it documents.
    """
    made = [id for id in _ids(transcript) if id not in sent]
    shape = _SHAPES[format]
    wrong = [f"form: the id {id!r} is not in the provider's shape" for id in made if not re.fullmatch(shape, id)]
    return [*_strictly(transcript), *_of_other_kinds(transcript), *_RULES[format](transcript), *wrong]


def _strictly(transcript: Sequence[Item]) -> Iterator[str]:
    """Yield what a server that reads with a strict parser refuses: NaN, and half of a character."""
    for at, item in enumerate(transcript):
        try:
            json.dumps(item, allow_nan=False, ensure_ascii=False).encode()
        except ValueError as error:
            yield f"{at}: form: no JSON: {error}"


_FIELDS = {"text": str, "signature": str, "status": str, "thought": bool, "thoughtSignature": str}


def _of_other_kinds(transcript: Sequence[Item]) -> Iterator[str]:
    """Yield the fields of items, blocks and parts that have not the kind of JSON which every provider has there."""
    for at, item in enumerate(transcript):
        lists = [held for key in ("content", "parts") if isinstance(held := item.get(key), list)]
        for one in [item, *(part for held in lists for part in held)]:
            for key in one.keys() & _FIELDS.keys():
                if not isinstance(one[key], _FIELDS[key]):
                    yield f"{at}: form: `{key}` is {one[key]!r}"


def _object(at: int, text: object) -> Iterator[str]:
    """Yield what is wrong with arguments as text, which a strict server parses again."""
    try:
        value = json.loads(text, parse_constant=_refuse) if isinstance(text, str) else None
    except ValueError:
        value = None
    if not isinstance(value, dict):
        yield f"{at}: form: the arguments {text!r} are not the text of an object"


def _refuse(word: str) -> Any:
    raise ValueError(word)


# --- OpenAI Chat Completions, Mistral, Cohere


def _chat(transcript: Sequence[Item]) -> Iterator[str]:
    waiting: dict[str, str] = {}
    for at, message in enumerate(transcript):
        role = message["role"]
        if role == "tool":
            if waiting.pop(message["tool_call_id"], None) is None:
                yield f"{at}: a tool message answers no call of the message before"
            if not isinstance(message["content"], str | list):
                yield f"{at}: form: a tool message has no content"
            continue
        if waiting:
            yield f"{at}: {list(waiting)} must be followed by tool messages"
            waiting = {}
        if role == "assistant":
            yield from _speaks(at, message)
            waiting = {call["id"]: call[call["type"]]["name"] for call in message.get("tool_calls", ())}
        elif role not in ("user", "system", "developer") or not message["content"]:
            yield f"{at}: form: no message"
    if waiting:
        yield f"the end: {list(waiting)} must be followed by tool messages"


def _speaks(at: int, message: Item) -> Iterator[str]:
    calls = message.get("tool_calls")
    if calls is not None and not calls:
        yield f"{at}: form: `tool_calls` is empty"
    if not calls and not (message.get("content") or message.get("refusal")):
        yield f"{at}: form: neither content nor calls"
    for call in calls or ():
        if call["type"] == "custom":
            continue
        if call["type"] != "function":
            yield f"{at}: form: {call} is no call"
        yield from _object(at, call["function"]["arguments"])
        yield from _named(at, call["function"]["name"], r"[a-zA-Z0-9_-]{1,64}")
    ids = [call["id"] for call in calls or ()]
    if len(set(ids)) < len(ids) or not all(ids):
        yield f"{at}: the ids {ids} are not one for each call"


def _mistral(transcript: Sequence[Item]) -> Iterator[str]:
    yield from _chat(transcript)
    names: dict[str, str] = {}
    for at, message in enumerate(transcript):
        names |= {call["id"]: call["function"]["name"] for call in message.get("tool_calls", ())}
        if message["role"] == "tool" and names.get(message["tool_call_id"]) != message["name"]:
            yield f"{at}: form: the tool's name is not the call's"
        before = transcript[at - 1]["role"] if at else "nothing"
        if message["role"] not in _MAY_FOLLOW[before]:
            yield f"{at}: order: unexpected role {message['role']} after {before}"


def _cohere(transcript: Sequence[Item]) -> Iterator[str]:
    yield from _chat(transcript)
    for at, message in enumerate(transcript):
        parts = message["content"] if isinstance(message.get("content"), list) else ()
        if any(not part.get(part["type"]) for part in parts):
            yield f"{at}: form: a part with nothing in it"
        if not isinstance(message.get("tool_plan", ""), str):
            yield f"{at}: form: the plan is no text"


_MAY_FOLLOW = {
    "nothing": ("system", "user", "tool"),  # a result is refused for another reason
    "system": ("system", "user", "assistant", "tool"),
    "user": ("system", "user", "assistant", "tool"),
    "assistant": ("user", "assistant", "tool"),
    "tool": ("assistant", "tool"),
}


# --- OpenAI Responses


def _responses(transcript: Sequence[Item]) -> Iterator[str]:
    waiting: set[str] = set()
    seen: set[str] = set()
    for at, item in enumerate(transcript):
        if item.get("status", "completed") not in ("completed", "incomplete", "in_progress"):
            yield f"{at}: form: the status is {item['status']!r}"
        match item.get("type", "message"):
            case "function_call":
                id = item["call_id"]
                if not id or id in seen:
                    yield f"{at}: the call id {id!r} is not its own"
                yield from _object(at, item["arguments"])
                yield from _named(at, item["name"], r"[a-zA-Z0-9_-]+")
                waiting.add(id)
                seen.add(id)
            case "shell_call":
                if item["call_id"] in seen:
                    yield f"{at}: the call id {item['call_id']!r} is not its own"
                waiting.add(item["call_id"])
                seen.add(item["call_id"])
            case "function_call_output" | "shell_call_output":
                if item["call_id"] not in waiting:
                    yield f"{at}: no tool call found for the output of {item['call_id']!r}"
                if not isinstance(item["output"], str | list):
                    yield f"{at}: form: the output is neither text nor parts"
                waiting.discard(item["call_id"])
            case "reasoning":
                if not isinstance(item.get("id", ""), str):
                    yield f"{at}: form: the id is {item['id']!r}"
                if not _is_put_out(transcript[at + 1 : at + 2]):
                    yield f"{at}: order: reasoning was provided without its required following item"
            case "message":
                if not item["content"]:
                    yield f"{at}: form: a message without content"
                parts = item["content"] if isinstance(item["content"], list) else ()
                if any(part["type"] == "output_text" and "text" not in part for part in parts):
                    yield f"{at}: form: a part without its text"
            case other:
                yield f"{at}: form: no item is called {other}"
    if waiting:
        yield f"the end: no tool output found for {sorted(waiting)}"


def _is_put_out(following: Sequence[Item]) -> bool:
    kinds = ("function_call", "message", "reasoning", "shell_call")
    return any(item.get("type") in kinds and item.get("role") in (None, "assistant") for item in following)


# --- Anthropic Messages


def _anthropic(transcript: Sequence[Item]) -> Iterator[str]:
    waiting: list[str] = []
    own = _OwnCalls()
    for at, message in enumerate(transcript):
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        kinds = [block["type"] for block in blocks]
        answers = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        uses = [block["id"] for block in blocks if block["type"] == "tool_use"]
        goes_on = bool(waiting and uses and not answers)  # "consecutive turns are combined", says the API reference
        if not goes_on and sorted(answers) != sorted(waiting):
            yield f"{at}: the results {answers} are not one for each of the calls {waiting} just before"
        if "tool_result" in kinds[len(answers) :]:
            yield f"{at}: the results are not the first blocks"
        if answers and message["role"] != "user":
            yield f"{at}: results of the {message['role']}"
        yield from _blocks(at, message["role"], blocks)
        yield from own.read(at, message["role"], map(_own_block, blocks))
        waiting = [*waiting, *uses] if goes_on else uses
        if len(set(waiting)) < len(waiting):
            yield f"{at}: the ids {waiting} are not unique"
    if waiting:
        yield f"the end: no results for {waiting}"


def _blocks(at: int, role: str, blocks: Sequence[Item]) -> Iterator[str]:
    if not blocks:
        yield f"{at}: form: no content"
    elif blocks[-1]["type"] in ("thinking", "redacted_thinking"):
        yield f"{at}: form: the final block cannot be {blocks[-1]['type']}"
    says = any(block["type"] == "text" and block["text"].strip() for block in blocks)
    for block in blocks:
        match block["type"]:
            case "text" if not (block["text"] and says):
                yield f"{at}: form: text content blocks must contain non-whitespace text"
            case "tool_result" if isinstance(block.get("content"), list):
                yield from (_blocks(at, role, block["content"]) if block["content"] else ())
            case "thinking" if not (block.get("signature") and isinstance(block["thinking"], str)):
                yield f"{at}: form: a thought without its text or signature"
            case "tool_use":
                if role != "assistant" or not block["id"] or not isinstance(block["input"], dict):
                    yield f"{at}: form: {block} is no call"
                yield from _named(at, block["name"], r"[a-zA-Z0-9_-]{1,128}")
            case _:
                pass


def _own_block(block: Item) -> tuple[str, str]:
    kind = block["type"]
    if kind == "tool_use" and "tool_id" in block.get("caller", ()):
        return "called", block["caller"]["tool_id"]
    if kind in ("server_tool_use", "mcp_tool_use"):
        return "use", block["id"]
    if kind == "tool_result":
        return "answer", ""
    return ("result", block["tool_use_id"]) if kind.endswith("_tool_result") else ("", "")


class _OwnCalls:
    """The calls of tools that run at the provider: each has its result in the same turn of the model's.

    A turn ends with what the user says, and not with the results of the client's tools. Where it has not ended, a call
    may wait; while the client answers calls of its program, the client's messages hold nothing but results.
    """

    def __init__(self) -> None:
        self.uses: list[str] = []
        self.programs: set[str] = set()

    def read(self, at: int, role: str, blocks: Iterable[tuple[str, str]]) -> Iterator[str]:
        found = list(blocks)
        if role != "assistant":
            if self.programs.intersection(self.uses) and len(set(found)) > 1:
                yield f"{at}: the response for a program's calls must contain only tool_result blocks"
            if self.uses and ("answer", "") not in found:
                yield f"{at}: the tool uses {self.uses} were found without a corresponding result"
                self.uses = []
            return
        for kind, id in found:
            if kind == "use":
                self.uses.append(id)
            elif kind == "called":
                self.programs.add(id)
                if id not in self.uses:
                    yield f"{at}: the caller {id} has no corresponding tool use"
            elif kind == "result" and id in self.uses:
                self.uses.remove(id)
            elif kind == "result":
                yield f"{at}: the result of {id} has no corresponding tool use"


# --- Gemini


def _gemini(transcript: Sequence[Item]) -> Iterator[str]:
    calls: list[Item] = []
    before = None
    for at, content in enumerate(transcript):
        parts, role = content["parts"], content["role"]
        answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
        data = [part.keys() - {"thought", "thoughtSignature"} for part in parts]  # a part is more than a mark
        if not parts or not all(data) or role not in ("user", "model"):
            yield f"{at}: form: no content"
        asked = [part["functionCall"] for part in parts if "functionCall" in part]
        goes_on = bool(calls and asked and not answers)  # recorded: calls in two turns, then all responses
        if not goes_on and len(answers) != len(calls):
            yield f"{at}: {len(answers)} function response parts for {len(calls)} function call parts"
        if any("functionResponse" not in part for part in parts[: len(answers)]):
            yield f"{at}: the function responses do not come first"
        if not goes_on and sorted(map(_known_by, answers)) != sorted(map(_known_by, calls)):
            yield f"{at}: the responses are not one for each of the calls just before"
        if not all(isinstance(answer["response"], dict) for answer in answers):
            yield f"{at}: form: the response is no object"
        if role == "model" and (before is None or (asked and before != "user" and not goes_on)):
            yield f"{at}: order: a function call turn comes right after a user turn or a function response turn"
        if asked and role != "model":
            yield f"{at}: form: calls of the {role}'s"
        for call in asked:
            if "willContinue" in call or "partialArgs" in call:
                yield f"{at}: form: a call that is not whole"
            if not isinstance(call.get("args", {}), dict):
                yield f"{at}: form: the arguments are no object"
            yield from _named(at, call["name"], r"[a-zA-Z0-9_.:-]{1,128}")
        calls = [*calls, *asked] if goes_on else asked
        before = role
    if calls:
        yield f"the end: no function response parts for {len(calls)} function call parts"


def _known_by(part: Item) -> tuple[str, str]:
    """Return what ties a response to its call: the id, which may be left out, and the name."""
    return part.get("id", ""), part["name"]


# --- Bedrock Converse


def _converse(transcript: Sequence[Item]) -> Iterator[str]:
    waiting: list[str] = []
    before = "assistant"
    own = _OwnCalls()
    for at, message in enumerate(transcript):
        role, blocks = message["role"], message["content"]
        if role == before:
            yield f"{at}: order: the conversation must alternate between user and assistant, beginning with user"
        given = blocks if role == "user" else ()
        answers = [block["toolResult"]["toolUseId"] for block in given if "toolResult" in block]
        if sorted(answers) != sorted(waiting):
            yield f"{at}: the results {answers} are not one for each of the calls {waiting} just before"
        if any("toolResult" not in block for block in blocks[: len(answers)]):
            yield f"{at}: the results are not the first blocks"
        inside = [part for block in blocks for part in block.get("toolResult", {}).get("content", ())]
        is_blank = any(not part.get("text", "…").strip() for part in [*blocks, *inside])
        if any(len(block) != 1 for block in blocks):
            yield f"{at}: form: a block that is not of one kind"
        if not blocks or "reasoningContent" in blocks[-1] or is_blank:
            yield f"{at}: form: no content, a blank one, or one that ends in a thought"
        yield from own.read(at, role, map(_own_converse_block, blocks))
        uses = [b["toolUse"] for b in blocks if "toolUse" in b and b["toolUse"].get("type") != "server_tool_use"]
        for use in uses:
            if role != "assistant" or not isinstance(use["input"], dict):
                yield f"{at}: form: {use} is no call"
            yield from _named(at, use["name"], r"[a-zA-Z0-9_-]{1,64}")
        waiting = [use["toolUseId"] for use in uses]
        if len(set(waiting)) < len(waiting) or not all(waiting):
            yield f"{at}: the ids {waiting} are not unique"
        before = role
    if waiting:
        yield f"the end: no results for {waiting}"


def _own_converse_block(block: Item) -> tuple[str, str]:
    if block.get("toolUse", {}).get("type") == "server_tool_use":
        return "use", block["toolUse"]["toolUseId"]
    if "toolResult" not in block:
        return "", ""
    id = block["toolResult"]["toolUseId"] if "type" in block["toolResult"] else ""
    return "result" if id else "answer", id


# --- Ollama's own chat


def _ollama(transcript: Sequence[Item]) -> Iterator[str]:
    calls: list[Item] = []
    answers: list[Item] = []
    for at, message in enumerate([*transcript, {"role": "end"}]):
        if message["role"] == "tool":
            answers.append({"id": message.get("tool_call_id", ""), "name": message["tool_name"]})
            if not isinstance(message["content"], str):
                yield f"{at}: form: a result that is no text"
            continue
        if sorted(map(_known_by, calls)) != sorted(map(_known_by, answers)):
            yield f"{at}: the results {answers} are not one for each of the calls {calls} just before"
        sent = message.get("tool_calls", ())
        calls = [{"id": call.get("id", ""), "name": call["function"]["name"]} for call in sent]
        answers = []
        ids = [call["id"] for call in calls if call["id"]]
        if len(set(ids)) < len(ids):
            yield f"{at}: the ids {ids} are not one for each call"
        if any(not isinstance(call["function"]["arguments"], dict) for call in sent):
            yield f"{at}: form: arguments that are no object"
        if message["role"] not in ("user", "assistant", "system", "end"):
            yield f"{at}: form: no message"
        for call in calls:
            yield from _named(at, call["name"], r"[a-zA-Z0-9_-]{1,64}")


# --- Google's Interactions


def _interactions(transcript: Sequence[Item]) -> Iterator[str]:
    waiting: set[str] = set()
    seen: set[str] = set()
    for at, step in enumerate(transcript):
        match step.get("type"):
            case "function_call":
                id = step["id"]
                if not id or id in seen:
                    yield f"{at}: the id {id!r} is not the call's own"
                if not isinstance(step["arguments"], dict):
                    yield f"{at}: form: the arguments are no object"
                yield from _named(at, step["name"], r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
                waiting.add(id)
                seen.add(id)
            case "function_result":
                if step["call_id"] not in waiting:
                    yield f"{at}: a result answers no call: {step['call_id']!r}"
                if not isinstance(step["result"], str | list):
                    yield f"{at}: form: a result that is neither a text nor parts"
                waiting.discard(step["call_id"])
            case "user_input" | "model_output":
                if not step["content"] or any("text" in part and not part["text"] for part in step["content"]):
                    yield f"{at}: form: no content"
            case "thought":
                pass
            case other:
                yield f"{at}: form: no step is called {other}"
    if waiting:
        yield f"the end: no results for {sorted(waiting)}"


# --- what they share


def _named(at: int, name: str, shape: str) -> Iterator[str]:
    if not re.fullmatch(shape, name):
        yield f"{at}: form: {name!r} is no name of a function"


def _ids(value: object) -> Iterator[str]:
    """Yield the ids of the calls in a transcript of any provider."""
    if isinstance(value, list | tuple):
        for part in value:
            yield from _ids(part)
    elif isinstance(value, dict):
        if "call_id" in value and "arguments" in value:
            yield value["call_id"]
        elif value.get("type") == "function_call" or value.get("type") in ("function", "tool_use"):
            yield value["id"]
        elif "functionCall" in value:
            yield value["functionCall"].get("id") or "none"
        elif "toolUse" in value:
            yield value["toolUse"]["toolUseId"]
        elif "function" in value:
            yield value.get("id", "none")
        else:
            yield from _ids([value[key] for key in ("tool_calls", "content", "parts") if key in value])


_RULES: dict[str, Callable[[Sequence[Item]], Iterator[str]]] = {
    "openai": _chat,
    "openai_responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "mistral": _mistral,
    "bedrock": _converse,
    "ollama": _ollama,
    "cohere": _cohere,
    "gemini_interactions": _interactions,
}
_SHAPES = {
    "openai": r"[a-zA-Z0-9_-]{1,40}",
    "openai_responses": r"[a-zA-Z0-9_-]{1,64}",
    "anthropic": r"toolu_[a-zA-Z0-9_-]+",
    "gemini": r".+",
    "mistral": r"[a-zA-Z0-9]{9}",
    "bedrock": r"[a-zA-Z0-9_.:-]{1,64}",
    "ollama": r".+",
    "cohere": r".+",
    "gemini_interactions": r".+",
}
