"""A model of LangChain that plays a script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel


class Scripted(FakeMessagesListChatModel):
    """A model that says one message after the other, whatever it is asked."""

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        """Return the model itself: it knows what it will call."""
        return self
