"""Types of the functions of a hook set, which need the decisions: only a program that names them loads these."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from toolcrib.calls import CallMetadata, Decision

DecisionHook: TypeAlias = Callable[[CallMetadata, Any], Awaitable[Decision]]
"""An async function of a call as received, and its input, that returns a decision."""
DescriptionHook: TypeAlias = Callable[[Any], Awaitable[str | None]]
"""An async function from a tool's definition to the description that the model is shown; None for its own."""
