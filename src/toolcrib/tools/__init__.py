"""Tools: the class `Tool`, the ways to make one, and the body that runs its function.

A direct call runs the body; a model's call goes through `pipeline`, which runs it too. Nothing here knows a toolset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.tools._base import BaseTool, Instruction
    from toolcrib.tools._body import Body, is_thunk
    from toolcrib.tools._call_client import LinkedClient
    from toolcrib.tools._deadline import Deadline, current_deadline, stopped_clocks
    from toolcrib.tools._decorators import as_tool, ez_tool, object_tools, stand_for, tool, tool_input
    from toolcrib.tools._foreign import adapter_of, require_own_object
    from toolcrib.tools._labels import (
        INSIDE,
        Effect,
        LabelledText,
        Labels,
        Place,
        Source,
        Trust,
        labelled,
        require_effect,
        require_source,
    )
    from toolcrib.tools._metadata import ToolMetadata
    from toolcrib.tools._offers import (
        Completions,
        FoundValues,
        Offering,
        PromptOffer,
        PromptText,
        ResourceListener,
        ResourceOffer,
        is_for_apps,
        offering_of,
        prompt,
        resource,
        resource_changed,
    )
    from toolcrib.tools._options import (
        Cost,
        LockOption,
        ToolKeywords,
        ToolOptions,
        ToolType,
        require_name,
        require_prefix,
    )
    from toolcrib.tools._outputs import checked_output, output_schema, require_arguments
    from toolcrib.tools._questions import (
        AskedKind,
        PersonAnswer,
        QuestionOutcome,
        ask_approver,
        ask_person,
        asking,
        can_ask_person,
        person_answer,
    )
    from toolcrib.tools._tool import Tool, ToolRegistry
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "._call_client": "LinkedClient",
            "._questions": (
                "AskedKind PersonAnswer QuestionOutcome ask_approver ask_person asking can_ask_person person_answer"
            ),
            "._base": "BaseTool Instruction",
            "._body": "Body is_thunk",
            "._deadline": "Deadline current_deadline stopped_clocks",
            "._decorators": "as_tool ez_tool object_tools stand_for tool tool_input",
            "._foreign": "adapter_of require_own_object",
            "._labels": "INSIDE Effect LabelledText Labels Place Source Trust labelled require_effect require_source",
            "._metadata": "ToolMetadata",
            "._offers": (
                "Completions FoundValues Offering PromptOffer PromptText ResourceListener ResourceOffer is_for_apps "
                "offering_of prompt resource resource_changed"
            ),
            "._options": "Cost LockOption ToolKeywords ToolOptions ToolType require_name require_prefix",
            "._outputs": "checked_output output_schema require_arguments",
            "._tool": "Tool ToolRegistry",
        },
    )

__all__ = [
    "INSIDE",
    "AskedKind",
    "BaseTool",
    "Body",
    "Completions",
    "Cost",
    "Deadline",
    "Effect",
    "FoundValues",
    "Instruction",
    "LabelledText",
    "Labels",
    "LinkedClient",
    "LockOption",
    "Offering",
    "PersonAnswer",
    "Place",
    "PromptOffer",
    "PromptText",
    "QuestionOutcome",
    "ResourceListener",
    "ResourceOffer",
    "Source",
    "Tool",
    "ToolKeywords",
    "ToolMetadata",
    "ToolOptions",
    "ToolRegistry",
    "ToolType",
    "Trust",
    "adapter_of",
    "as_tool",
    "ask_approver",
    "ask_person",
    "asking",
    "can_ask_person",
    "checked_output",
    "current_deadline",
    "ez_tool",
    "is_for_apps",
    "is_thunk",
    "labelled",
    "object_tools",
    "offering_of",
    "output_schema",
    "person_answer",
    "prompt",
    "require_arguments",
    "require_effect",
    "require_name",
    "require_own_object",
    "require_prefix",
    "require_source",
    "resource",
    "resource_changed",
    "stand_for",
    "stopped_clocks",
    "tool",
    "tool_input",
]
