"""The conversations and API classes of the `bfcl-eval` package, which is test input and no dependency."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module, resources
from typing import Any

from benchmarks.bfcl._calls import Call, parse_call
from benchmarks.bfcl._corrections import CORRECTIONS

__all__ = ["FILES", "Conversation", "DataMissing", "api_class", "build_apis", "load_conversations"]

FILES = ("multi_turn_base", "multi_turn_long_context", "multi_turn_miss_func", "multi_turn_miss_param")

_MODULES = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "TwitterAPI": "posting_api",
    "VehicleControlAPI": "vehicle_control",
}
_STATELESS = {"MathAPI"}


class DataMissing(Exception):
    """The benchmark's data and classes are not installed; the message says how to install them."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause

    def __str__(self) -> str:
        return (
            f"{self.cause}. The conversations come in development packages, which `make check` installs; by hand: "
            "pip install --no-deps bfcl-eval==2026.3.23 mpmath"
        )


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation: which APIs it is about, how they begin, and the right calls of each turn."""

    id: str
    apis: tuple[str, ...]
    config: Mapping[str, Mapping[str, Any]]
    turns: tuple[tuple[Call, ...], ...]
    long_context: bool = False

    @property
    def calls(self) -> int:
        """How many calls its turns have together."""
        return sum(len(turn) for turn in self.turns)


def load_conversations(file: str = "multi_turn_base") -> list[Conversation]:
    """Return the conversations of one of `FILES`, in the file's order.

    Raises:
        DataMissing: `bfcl-eval` is not installed.
    """
    answers = {row["id"]: row["ground_truth"] for row in _rows(f"possible_answer/BFCL_v4_{file}.json")}
    return [
        Conversation(
            id=row["id"],
            apis=tuple(row["involved_classes"]),
            config=row["initial_config"],
            turns=tuple(tuple(parse_call(text) for text in turn) for turn in answers[row["id"]]),
            long_context=file == "multi_turn_long_context",
        )
        for row in _rows(f"BFCL_v4_{file}.json")
    ]


def build_apis(conversation: Conversation, *, as_published: bool = False) -> dict[str, Any]:
    """Return fresh API objects by class name, each loaded with its beginning.

    Args:
        conversation: Whose objects to make.
        as_published: Leave out the corrections of `CORRECTIONS`.

    Raises:
        DataMissing: `bfcl-eval` or mpmath is not installed.
    """
    apis: dict[str, Any] = {}
    for name in conversation.apis:
        published = api_class(name)
        for correction in () if as_published else CORRECTIONS:
            if correction.concerns(name, conversation.long_context):
                published = correction.apply(published)
        api = published()
        if name not in _STATELESS:
            config = copy.deepcopy(conversation.config.get(name, {}))
            api._load_scenario(config, long_context=conversation.long_context)
        apis[name] = api
    return apis


def _rows(path: str) -> Iterator[dict[str, Any]]:
    try:
        text = (resources.files("bfcl_eval") / "data" / path).read_text(encoding="utf-8")
    except (ModuleNotFoundError, FileNotFoundError) as error:
        raise DataMissing(str(error)) from error
    return (json.loads(line) for line in text.splitlines() if line)


def api_class(name: str) -> Any:
    """Return one of the API classes as it is published; raises DataMissing."""
    path = f"bfcl_eval.eval_checker.multi_turn_eval.func_source_code.{_MODULES[name]}"
    try:
        return getattr(import_module(path), name)
    except ModuleNotFoundError as error:
        raise DataMissing(str(error)) from error
