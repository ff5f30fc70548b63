"""Provenance: where each argument of a call comes from, by the texts and results that its run has read.

A run keeps the user's words and the results of its tools, each with its source. Before a tool with an effect runs,
every argument is looked up: in the user's words, in results of trusted sources, in results that a stranger may have
written. A policy is a feature of a run: `Run(features=[Provenance()])`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.provenance._feature import memory_of, parts_of
    from toolcrib.provenance._memory import Memory
    from toolcrib.provenance._policy import Provenance, Rule, ToolLabels, Verdict
    from toolcrib.provenance._question import Origin, Question
    from toolcrib.provenance._texts import flat
    from toolcrib.schema import Content, Decides
    from toolcrib.tools import Effect, Labels, Source, Trust, labelled, require_effect, require_source
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "._feature": "memory_of parts_of",
            "._memory": "Memory",
            "._policy": "Provenance Rule ToolLabels Verdict",
            "._question": "Origin Question",
            "._texts": "flat",
            "toolcrib.schema": "Content Decides",
            "toolcrib.tools": "Effect Labels Source Trust labelled require_effect require_source",
        },
    )

__all__ = [
    "Content",
    "Decides",
    "Effect",
    "Labels",
    "Memory",
    "Origin",
    "Provenance",
    "Question",
    "Rule",
    "Source",
    "ToolLabels",
    "Trust",
    "Verdict",
    "flat",
    "labelled",
    "memory_of",
    "parts_of",
    "require_effect",
    "require_source",
]
