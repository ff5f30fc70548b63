"""A model of Google ADK that plays a script."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import Field

_IDS = itertools.count()


class ScriptedLlm(BaseLlm):
    """A model that says one content after the other, and that it is done after the last.

    Attributes:
        usage: What each reply says that it took; of the others, nothing is known.
    """

    model: str = "scripted"
    steps: list[types.Content] = Field(default_factory=list[types.Content])
    usage: list[types.GenerateContentResponseUsageMetadata] = Field(
        default_factory=list[types.GenerateContentResponseUsageMetadata]
    )

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Say what comes next."""
        content = self.steps.pop(0) if self.steps else types.Content(role="model", parts=[types.Part(text="done")])
        yield LlmResponse(content=content, usage_metadata=self.usage.pop(0) if self.usage else None)


def calling(*calls: tuple[str, dict[str, Any]]) -> types.Content:
    """Return a content that makes these calls."""
    made = [types.FunctionCall(name=name, args=arguments, id=f"call_{next(_IDS)}") for name, arguments in calls]
    return types.Content(role="model", parts=[types.Part(function_call=call) for call in made])


def saying(text: str) -> types.Content:
    """Return what a user says."""
    return types.Content(role="user", parts=[types.Part(text=text)])
