"""Hooks (observers, middleware, decisions, descriptions), and the gates, deliveries and features of a call.

The kinds of hooks and their registration are here; `tools` (observers) and `pipeline` decide when each runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.hooks._decision_hook import DecisionHook, DescriptionHook
    from toolcrib.hooks._delivery import Delivery, DeliveryLike, DeliveryStep, Shortener, delivery_steps
    from toolcrib.hooks._events import AgentHook, ContextPoolHook, ContextQueueHook, HookType, ToolHook, TurnHook
    from toolcrib.hooks._feature import (
        Feature,
        FeatureParts,
        FeatureState,
        InputOrigin,
        ModelInput,
        feature_parts,
    )
    from toolcrib.hooks._gate import (
        EVERY_OCCASION,
        ON_ARRIVAL,
        WITH_ARGUMENTS,
        Gate,
        GateLike,
        GateStep,
        Occasion,
        Stage,
        gate_steps,
        refused_by,
        stage_of,
    )
    from toolcrib.hooks._hook_set import HookSet, require_hooks, target_name
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
    from toolcrib.hooks._parameters import (
        OPTION_WORDS,
        near_option,
        refuse_argument_names,
        refuse_misspelt_options,
        require_parameters,
        require_policy,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "._delivery": "Delivery DeliveryLike DeliveryStep Shortener delivery_steps",
            "._events": "AgentHook ContextPoolHook ContextQueueHook HookType ToolHook TurnHook",
            "._feature": "Feature FeatureParts FeatureState InputOrigin ModelInput feature_parts",
            "._gate": (
                "EVERY_OCCASION ON_ARRIVAL WITH_ARGUMENTS Gate GateLike GateStep Occasion Stage gate_steps "
                "refused_by stage_of"
            ),
            "._decision_hook": "DecisionHook DescriptionHook",
            "._hook_set": "HookSet require_hooks target_name",
            "._inject": "ContextSource ambient ambient_context supply wanted",
            "._middleware": (
                "GlobalHooks GlobalPostHookFunc GlobalPreHookFunc PerValue PostHookFunc PreHookFunc per_value "
                "require_middleware several"
            ),
            "._observers": "Hook HookMethod HookRaised HookRegistry Observed Observers fire hook tag_set",
            "._parameters": (
                "OPTION_WORDS near_option refuse_argument_names refuse_misspelt_options require_parameters "
                "require_policy"
            ),
        },
    )

__all__ = [
    "EVERY_OCCASION",
    "ON_ARRIVAL",
    "OPTION_WORDS",
    "WITH_ARGUMENTS",
    "AgentHook",
    "ContextPoolHook",
    "ContextQueueHook",
    "ContextSource",
    "DecisionHook",
    "Delivery",
    "DeliveryLike",
    "DeliveryStep",
    "DescriptionHook",
    "Feature",
    "FeatureParts",
    "FeatureState",
    "Gate",
    "GateLike",
    "GateStep",
    "GlobalHooks",
    "GlobalPostHookFunc",
    "GlobalPreHookFunc",
    "Hook",
    "HookMethod",
    "HookRaised",
    "HookRegistry",
    "HookSet",
    "HookType",
    "InputOrigin",
    "ModelInput",
    "Observed",
    "Observers",
    "Occasion",
    "PerValue",
    "PostHookFunc",
    "PreHookFunc",
    "Shortener",
    "Stage",
    "ToolHook",
    "TurnHook",
    "ambient",
    "ambient_context",
    "delivery_steps",
    "feature_parts",
    "fire",
    "gate_steps",
    "hook",
    "near_option",
    "per_value",
    "refuse_argument_names",
    "refuse_misspelt_options",
    "refused_by",
    "require_hooks",
    "require_middleware",
    "require_parameters",
    "require_policy",
    "several",
    "stage_of",
    "supply",
    "tag_set",
    "target_name",
    "wanted",
]
