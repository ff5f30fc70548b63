"""The four kinds of hook: observers, middleware, decisions, descriptions.

Each kind's form and registration is here; when one runs is decided by `tools` (observers) and `pipeline`.
Nothing here knows a tool or a toolset.
"""

from toolcrib.hooks._events import AgentHook, ContextPoolHook, ContextQueueHook, HookType, ToolHook, TurnHook
from toolcrib.hooks._hook_set import DecisionHook, DescriptionHook, HookSet, Named, target_name
from toolcrib.hooks._inject import ContextSource, ambient, ambient_context, supply, wanted
from toolcrib.hooks._middleware import (
    GlobalHooks,
    GlobalPostHookFunc,
    GlobalPreHookFunc,
    PerValue,
    PostHookFunc,
    PreHookFunc,
    per_value,
    require_middleware,
    several,
)
from toolcrib.hooks._observers import (
    Hook,
    HookMethod,
    HookRaised,
    HookRegistry,
    Observed,
    Observers,
    fire,
    hook,
    tag_set,
)
from toolcrib.hooks._parameters import near_option, refuse_misspelt_options, require_number, require_parameters

__all__ = [
    "AgentHook",
    "ContextPoolHook",
    "ContextQueueHook",
    "ContextSource",
    "DecisionHook",
    "DescriptionHook",
    "GlobalHooks",
    "GlobalPostHookFunc",
    "GlobalPreHookFunc",
    "Hook",
    "HookMethod",
    "HookRaised",
    "HookRegistry",
    "HookSet",
    "HookType",
    "Named",
    "Observed",
    "Observers",
    "PerValue",
    "PostHookFunc",
    "PreHookFunc",
    "ToolHook",
    "TurnHook",
    "ambient",
    "ambient_context",
    "fire",
    "hook",
    "near_option",
    "per_value",
    "refuse_misspelt_options",
    "require_middleware",
    "require_number",
    "require_parameters",
    "several",
    "supply",
    "tag_set",
    "target_name",
    "wanted",
]
