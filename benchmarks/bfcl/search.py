"""`make search`: find the tools that the benchmark's questions are about, beside `bm25s` alone over the same texts.

Run it from the repository root as `python -m benchmarks.bfcl.search`. Recall is that of half of the questions, by their
ids; what the search does is chosen by the other half. Times are of the processor, for ten thousand tools.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import md5
from importlib import resources
from statistics import quantiles
from time import process_time
from typing import Any

import bm25s

from toolcrib import Toolset
from toolcrib.tools.from_schema import schema_tool
from toolcrib.toolsets.search import SearchTools

__all__ = ["Question", "alone", "load", "recall", "toolcrib_search"]

FILES = ("simple_python", "multiple", "parallel", "parallel_multiple", "live_simple", "live_multiple")
MANY, FOUND = 10_000, 5
Find = Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Question:
    """What a user asks, and the names of the tools that answer it."""

    text: str
    tools: frozenset[str]
    held_out: bool


def load() -> tuple[dict[str, dict[str, Any]], list[Question]]:
    """Return the tools by name, each as description and schema, and the questions."""
    tools: dict[str, dict[str, Any]] = {}
    questions: list[Question] = []
    for file in FILES:
        answers = {row["id"]: row["ground_truth"] for row in _rows(f"possible_answer/BFCL_v4_{file}.json")}
        for row in _rows(f"BFCL_v4_{file}.json"):
            for source in row["function"]:
                tools.setdefault(_name(source["name"]), source)
            text = " ".join(message["content"] for message in row["question"][-1] if message["role"] == "user")
            wanted = frozenset(_name(name) for call in answers.get(row["id"], ()) for name in call)
            if wanted:
                questions.append(Question(text, wanted, bool(md5(row["id"].encode()).digest()[0] % 2)))
    return tools, questions


def recall(find: Find, questions: Sequence[Question]) -> float:
    """Return the part of the wanted tools that is among the first five found, on average."""
    parts = [len(one.tools & set(find(one.text)[:FOUND])) / len(one.tools) for one in questions]
    return sum(parts) / len(parts)


def alone(tools: dict[str, dict[str, Any]]) -> Find:
    """Return a search by `bm25s` alone: names come apart at their underscores, the rest is as it makes it."""
    names = list(tools)
    texts = [f"{name.replace('_', ' ')} {' '.join(_texts(source))}" for name, source in tools.items()]
    index: Any = bm25s.BM25()
    index.index(_tokens(texts), show_progress=False)
    return lambda query: [names[n] for n in index.retrieve(_tokens([query]), k=FOUND, show_progress=False)[0][0]]


def toolcrib_search(tools: dict[str, dict[str, Any]]) -> Find:
    """Return the search of `search_tools`."""
    made = [
        schema_tool(name, {"type": "object", **_plain(source["parameters"])}, description=source["description"])
        for name, source in tools.items()
    ]
    search = SearchTools(Toolset(made))
    return lambda query: [entry.name for entry, _ in zip(search.ranked(query), range(FOUND), strict=False)]


def _name(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)


def _rows(path: str) -> Iterator[dict[str, Any]]:
    text = (resources.files("bfcl_eval") / "data" / path).read_text(encoding="utf-8")
    return (json.loads(line) for line in text.splitlines())


def _plain(schema: Any) -> Any:
    """Return a schema without the benchmark's own words for types, which say nothing to a search."""
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _plain(part) for key, part in schema.items() if key != "type" or isinstance(part, dict)}


def _texts(part: Any) -> Iterator[str]:
    """Yield the names of parameters, descriptions and allowed values of a definition."""
    if isinstance(part, list):
        for each in part:
            yield from _texts(each)
    if isinstance(part, dict):
        for key, value in part.items():
            if key == "properties":
                yield from value
            yield str(value) if key in ("description", "enum") else " ".join(_texts(value))


def _tokens(texts: list[str]) -> Any:
    return bm25s.tokenize(texts, stopwords="en", show_progress=False)


def _timed(make: Callable[[dict[str, dict[str, Any]]], Find], questions: Sequence[Question]) -> str:
    tools, _ = load()
    many = {f"{name}_{n}": tools[name] for n in range(MANY // len(tools) + 1) for name in tools}
    find = make(dict(list(many.items())[:MANY]))
    find("warm")
    took: list[float] = []
    for one in questions[:500]:
        began = process_time()
        find(one.text)
        took.append(process_time() - began)
    return f"p95 {quantiles(took, n=20)[-1] * 1000:6.2f} ms for one search in {MANY:,} tools"


def main() -> None:
    """Print recall and times of both."""
    tools, questions = load()
    unseen = [one for one in questions if one.held_out]
    print(f"{len(tools)} tools, {len(questions)} questions, {len(unseen)} of them held out")
    for name, make in (("bm25s alone", alone), ("toolcrib", toolcrib_search)):
        print(f"{name:12} recall@{FOUND} {recall(make(tools), unseen):.3f}   {_timed(make, unseen)}")


if __name__ == "__main__":
    main()
