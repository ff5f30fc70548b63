"""Message history of Pydantic AI as a transcript: rounds are committed to it, and it can be checked and mended."""

from __future__ import annotations

import json
from collections.abc import Iterable, MutableSequence
from typing import Any, overload

from pydantic_ai.messages import ModelMessage, ModelResponse

from toolcrib.adapters.pydantic_ai._messages import MESSAGES, message_of, shape_of_message
from toolcrib.errors import explain_options
from toolcrib.formats import Item, TranscriptProblem
from toolcrib.pipeline import Pipeline, Run
from toolcrib.rounds import ToolRound, decode
from toolcrib.toolsets import ToolAvailability, ToolsetLike


class MessageHistory:
    """Messages of Pydantic AI, as `agent.run(message_history=history.messages)` takes them and rounds are committed to.

    Args:
        messages: The messages. A list is edited where it is.
    """

    def __init__(self, messages: Iterable[ModelMessage] = ()) -> None:
        self.messages: list[ModelMessage] = messages if isinstance(messages, list) else list(messages)

    @property
    def transcript(self) -> MutableSequence[Any]:
        """The messages as JSON shapes; what is added to it becomes a message."""
        return _Shapes(self.messages)

    def check(self) -> list[TranscriptProblem]:
        """Return the faults that a provider refuses, in order; empty when the history is valid."""
        return MESSAGES.check(self.transcript)

    def repair(self) -> list[str]:
        """Repair the messages where they are, and return what was done, a sentence each; others stay as they were."""
        before = list(self.transcript)
        mended, done = MESSAGES.repair(before)
        if done:
            known = {_key(shape): message for shape, message in zip(before, self.messages, strict=True)}
            self.messages[:] = [known.get(_key(shape)) or message_of(shape) for shape in mended]
        return done


@explain_options()
def decode_response(
    tools: Pipeline | ToolsetLike,
    response: ModelResponse,
    available: ToolAvailability | None = None,
    *,
    run: Run | None = None,
    history: MessageHistory | None = None,
    strict: bool = False,
) -> ToolRound:
    """Return the calls in a response of a model that Pydantic AI asked; commit the round to a `MessageHistory`.

    Args:
        tools: As for `toolcrib.decode`, and so are `available`, `scope` and `strict`.
        response: The result of `pydantic_ai.direct.model_request`.
        history: The messages before it. A call whose id is in it gets another.
    """
    before = () if history is None else history.transcript
    return decode(tools, response, available, format=MESSAGES, run=run, transcript=before, strict=strict)


def _key(shape: Item) -> str:
    return json.dumps(shape, sort_keys=True)


class _Shapes(MutableSequence[Any]):
    """Messages, seen as their JSON."""

    def __init__(self, messages: list[ModelMessage]) -> None:
        self._messages = messages

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        found = self._messages[index]
        return [shape_of_message(message) for message in found] if isinstance(found, list) else shape_of_message(found)

    def __len__(self) -> int:
        return len(self._messages)

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            self._messages[index] = [message_of(message) for message in value]
        else:
            self._messages[index] = message_of(value)

    def __delitem__(self, index: int | slice) -> None:
        del self._messages[index]

    def insert(self, index: int, value: Any) -> None:
        self._messages.insert(index, message_of(value))

    def extend(self, values: Iterable[Any]) -> None:
        self._messages.extend([message_of(value) for value in values])  # all of them, or none
