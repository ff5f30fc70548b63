"""OpenAI, Chat Completions: a function tool.

Source: https://platform.openai.com/docs/api-reference/chat/create, `tools`, and the guide to function calling.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.formats._format import ProviderFormat, check_strict

__all__ = ["OPENAI"]


def _define(name: str, description: str, parameters: Mapping[str, Any], strict: bool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": name}
    if description:
        function["description"] = description
    function["parameters"] = dict(parameters)
    if strict:
        check_strict(name, "openai", parameters, all_required=True)
        function["strict"] = True
    return {"type": "function", "function": function}


OPENAI = ProviderFormat("openai", r"[a-zA-Z0-9_-]{1,64}", "up to 64 letters, digits, `_` and `-`", _define)
