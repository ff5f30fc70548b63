"""Retry: how often a session asks its model again after an error of the server's, and after which pauses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from toolcrib._numbers import require_numbers
from toolcrib.clock import SYSTEM_CLOCK, Clock, wanted_pause
from toolcrib.errors import explain_options

_BUSY = frozenset({408, 425, 429})  # and all of 500 and more
_CONNECTION = frozenset({"APIConnectionError", "TransportError", "EndpointConnectionError"})  # of SDKs, by their names


@explain_options()
@dataclass(frozen=True, slots=True)
class Retry:
    """The number of times that a model is asked again after an error of its server's, and the pauses between.

    Such an error is an exception with the status 408, 425, 429 or 500 and more, a connection that failed, or a reply
    that ended in an error. A step whose listeners were given a part of the reply is not repeated. The clients of OpenAI
    and Anthropic repeat a request by themselves, too, unless they are made with `max_retries=0`.

    Attributes:
        times: How often it is asked again at most.
        first: The seconds of the first pause; each further one is twice as long.
        longest: The seconds of the longest pause. A server that asks for a longer one is given up.
        clock: The clock of the pauses.

    Raises:
        ValueError: A number is negative.
    """

    times: int = 3
    first: float = 1.0
    longest: float = 60.0
    clock: Clock = SYSTEM_CLOCK

    def __post_init__(self) -> None:
        require_numbers("Retry", self, {"times": 0}, seconds_from_zero=("first", "longest"))

    def pause_after(self, failure: Exception | None, number: int) -> float | None:
        """Return the seconds before the model is asked again; None where it is not.

        Args:
            failure: The exception; None for a reply that ended in an error.
            number: How often it was asked again before.
        """
        if number >= self.times or not (failure is None or _is_servers(failure)):
            return None
        of_response = getattr(getattr(failure, "response", None), "headers", None)
        # that of the error itself is Cohere's
        headers = _object(getattr(failure, "headers", None) if of_response is None else of_response)
        wanted = wanted_pause(str(headers.get("retry-after"))) or 0.0
        return None if wanted > self.longest else max(wanted, min(self.first * 2**number, self.longest))


def _is_servers(error: Exception) -> bool:
    """Return whether an exception is an error of the server's, or of the way to it."""
    if isinstance(error, ConnectionError | TimeoutError):
        return True
    if any(kind.__name__ in _CONNECTION for kind in type(error).__mro__):
        return True
    # the response that an SDK's exception is about
    response: object = getattr(error, "response", None)
    inner = _object(_object(response).get("ResponseMetadata"))  # of boto3
    of_error = (getattr(error, "status_code", None), getattr(error, "code", None))
    found = (*of_error, getattr(response, "status_code", None), inner.get("HTTPStatusCode"))
    status = next((status for status in found if type(status) is int), 0)
    return status in _BUSY or status >= 500


def _object(value: object) -> Mapping[str, Any]:
    """Return a mapping, or an empty one in the place of anything else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
