"""Anthropic, Messages: a client tool.

Source: https://docs.anthropic.com/en/api/messages, `tools`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.formats._format import ProviderFormat, check_strict

__all__ = ["ANTHROPIC"]


def _define(name: str, description: str, parameters: Mapping[str, Any], strict: bool) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name}
    if description:
        made["description"] = description
    made["input_schema"] = dict(parameters)
    if strict:
        check_strict(name, "anthropic", parameters, all_required=False)
        made["strict"] = True
    return made


ANTHROPIC = ProviderFormat("anthropic", r"[a-zA-Z0-9_-]{1,64}", "up to 64 letters, digits, `_` and `-`", _define)
