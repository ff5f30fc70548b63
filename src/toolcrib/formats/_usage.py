"""Usage: the tokens that a request took, read from a reply or from the chunks of a streamed one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from toolcrib.formats._json_reading import object_or_empty, text_or_empty

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one request, as its provider counted them.

    Attributes:
        input: The tokens that the model read, with those that came from a cache or were written into one.
        output: The tokens that the model wrote, with its thoughts.
        cached: How many of the input came from a cache.
        cache_written: How many of the input were written into one.
        reasoning: How much of the output were thoughts.
        model: The name of the model that answered; empty where it is not said.
        counts: The provider's own counts that they were made of, by their path.
        is_unclear: Whether a count of the input or the output is left out, which was not a whole number from 0 on.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_written: int = 0
    reasoning: int = 0
    model: str = ""
    counts: Mapping[Path, int] = field(default_factory=dict[Path, int], repr=False, compare=False)
    is_unclear: bool = False


@dataclass(frozen=True, slots=True)
class UsageKeys:
    """The places of token counts in a provider's replies and chunks.

    Attributes:
        places: The paths to the object that says it; the first one that is there counts.
        input: The counts that make up the input.
        output: The counts that make up the output.
        cached: The counts of the input that came from a cache.
        cache_written: The counts of the input that was written into one.
        reasoning: The counts of the output that were thoughts.
    """

    places: tuple[Path, ...]
    input: tuple[Path, ...]
    output: tuple[Path, ...]
    cached: tuple[Path, ...] = ()
    cache_written: tuple[Path, ...] = ()
    reasoning: tuple[Path, ...] = ()

    def may_be_in(self, reply: object) -> bool:
        """Return whether a reply or a chunk may say something: most chunks of an SDK's say nothing."""
        if isinstance(reply, Mapping):
            return True
        first = {path[0] for path in (*self.places, *self.input) if path}
        return any(getattr(reply, name, None) is not None for name in first)

    def read(self, shape: Mapping[str, Any], before: Tokens | None = None) -> Tokens | None:
        """Return the usage of a reply or a chunk; None for one without.

        Args:
            shape: The reply or chunk.
            before: The usage in earlier chunks. A count that is said again takes the place of the one before, as each
                chunk says what was used so far: Gemini corrects a count downwards, too.
        """
        for place in self.places:
            usage = object_or_empty(_at(shape, place))
            if any(_at(usage, path) is not None for path in (*self.input, *self.output)):
                known = Tokens() if before is None else before
                model = _model(object_or_empty(_at(shape, place[:-1]))) or _model(shape)
                counts = (_at(usage, path) for path in (*self.input, *self.output))
                is_unclear = known.is_unclear or any(n is not None and _whole_number(n) is None for n in counts)
                return self._tokens({**known.counts, **self._counts(usage)}, known.model or model, is_unclear)
        return None

    def _counts(self, usage: Mapping[str, Any]) -> dict[Path, int]:
        paths = {*self.input, *self.output, *self.cached, *self.cache_written, *self.reasoning}
        found = {path: _whole_number(_at(usage, path)) for path in paths}
        return {path: count for path, count in found.items() if count}

    def _tokens(self, counts: Mapping[Path, int], model: str, is_unclear: bool) -> Tokens:
        def total(paths: tuple[Path, ...]) -> int:
            return sum(counts.get(path, 0) for path in paths)

        return Tokens(
            total(self.input),
            total(self.output),
            total(self.cached),
            total(self.cache_written),
            total(self.reasoning),
            model,
            counts,
            is_unclear,
        )


def _whole_number(count: Any) -> int | None:
    """Return a count; None where it is not a whole number from 0 on. It may be a numeral, or a float, as Cohere's."""
    if isinstance(count, str) and count.isascii() and count.isdecimal() and len(count) < 16:
        return int(count)
    if type(count) is float and count.is_integer():
        return _whole_number(int(count))
    return count if type(count) is int and count >= 0 else None


def _model(shape: Mapping[str, Any]) -> str:
    return text_or_empty(shape.get("model") or shape.get("modelVersion") or shape.get("model_version"))


def _at(shape: Mapping[str, Any], path: Path) -> Any:
    found: Any = shape
    for key in path:
        found = object_or_empty(found).get(key)
    return found
