"""Arguments of a model on their way through Pydantic AI to the pipeline, which validates them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast


def object_in(raw: str | bytes | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the arguments that a call carries, by name; empty for text that is not a JSON object."""
    if isinstance(raw, Mapping):
        return dict(raw)
    try:
        value: Any = json.loads(raw or "{}")
    except ValueError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


class RawText(dict[str, Any]):
    """Arguments as a dict, as Pydantic AI wants them, that remembers the JSON text it was read from."""

    def __init__(self, text: str | bytes) -> None:
        super().__init__(object_in(text))
        self._text, self._read = text, dict(self)

    def given(self) -> str | bytes | dict[str, Any]:
        """Return the text; or the dict, when a hook of Pydantic AI edited it on the way."""
        return self._text if dict(self) == self._read else dict(self)


class PassThrough:
    """Stands where Pydantic AI wants a validator, and lets everything through to the pipeline."""

    def validate_json(self, input: str | bytes | bytearray, **options: Any) -> RawText:
        """Return the text as arguments."""
        return RawText(input if isinstance(input, str) else bytes(input))

    def validate_python(self, input: Any, **options: Any) -> dict[str, Any]:
        """Return the values as arguments; anything else becomes a text that the pipeline refuses."""
        if isinstance(input, RawText):
            return input
        if isinstance(input, Mapping):
            return dict(cast("Mapping[str, Any]", input))
        return RawText(json.dumps(input, default=repr))


PASS_THROUGH = PassThrough()
