"""Policy of the retries of work that failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolcrib._numbers import require_number, require_numbers
from toolcrib.errors import explain_options
from toolcrib.tools import Tool

_FACTOR = 1_000_000  # the most that a pause between two tries grows by


@explain_options()
@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The number and times of automatic retries of work that failed, by any worker; it holds no place meanwhile.

    Attributes:
        attempts: The tries in all, the first one among them.
        pause: Seconds before the second try.
        factor: Each further pause is so many times the one before.
        longest: The most seconds of one pause.
        unless: The exceptions of a tool that no further try would mend.
    """

    attempts: int
    pause: float = 1.0
    factor: float = 4.0
    longest: float = 60.0
    unless: tuple[type[Exception], ...] = ()

    def __post_init__(self) -> None:
        require_numbers("RetryPolicy", self, {"attempts": 1}, seconds=("pause", "longest"))
        require_number("RetryPolicy", "factor", self.factor, least=1, whole=False)
        if self.factor > _FACTOR:
            raise ValueError(f"RetryPolicy: factor must be at most {_FACTOR}, and is {self.factor!r:.80}")

    def pause_after(self, tries: int) -> float:
        """Return the seconds from the end of so many tries to the next."""
        try:
            return min(self.pause * self.factor ** (tries - 1), self.longest)
        except OverflowError:
            return self.longest


def require_retries(who: str, agent_name: str, tools: Iterable[Tool[..., Any]], retries: object) -> None:
    """Return if these are policies of idempotent tools of an agent, by name, or None.

    Raises:
        TypeError: They are something else.
        ValueError: A tool is not idempotent, or not one of the agent's.
    """
    if retries is None:
        return
    if not (isinstance(retries, Mapping) and all(isinstance(policy, RetryPolicy) for policy in retries.values())):  # pyright: ignore[reportUnknownVariableType] -- a host's value
        raise TypeError(
            f"{who}: retries must be a policy for each tool, as in retries={{'mail': RetryPolicy(3)}}, and not "
            f"{retries!r:.80}"
        )
    by_name = {tool.__name__: tool for tool in tools}
    for name in retries:  # pyright: ignore[reportUnknownVariableType] -- as above
        if name not in by_name:
            known = ", ".join(by_name) or "none"
            raise ValueError(f"retries: the agent `{agent_name}` has no tool `{name}`; it has: {known}")
        if not by_name[name].options.idempotent:
            raise ValueError(
                f"retries: `{name}` is not idempotent, so that a call of it which failed is not made again unless a "
                "person says so; mark it with idempotent=True if it may be made twice"
            )
