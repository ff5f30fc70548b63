"""The pipeline of a toolset: one for each, because a pipeline learns its tools once."""

from __future__ import annotations

from functools import lru_cache

from toolcrib.pipeline import Pipeline
from toolcrib.toolsets import Toolset, ToolsetLike

__all__ = ["pipeline_of"]


def pipeline_of(tools: Pipeline | ToolsetLike) -> Pipeline:
    """Return a pipeline of the tools; the same one for the same toolset."""
    if isinstance(tools, Pipeline):
        return tools
    return _kept(tools) if isinstance(tools, Toolset | type) else Pipeline(tools)


@lru_cache(maxsize=64)
def _kept(tools: Toolset | type[Toolset]) -> Pipeline:
    return Pipeline(tools)
