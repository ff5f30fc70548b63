"""Mistral, Chat Completions: a function tool.

Source: https://docs.mistral.ai/api, chat completions, `tools`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.formats._format import ProviderFormat, check_strict

__all__ = ["MISTRAL"]


def _define(name: str, description: str, parameters: Mapping[str, Any], strict: bool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": name, "description": description, "parameters": dict(parameters)}
    if strict:
        check_strict(name, "mistral", parameters, all_required=False)
        function["strict"] = True
    return {"type": "function", "function": function}


MISTRAL = ProviderFormat("mistral", r"[a-zA-Z0-9_-]{1,64}", "up to 64 letters, digits, `_` and `-`", _define)
