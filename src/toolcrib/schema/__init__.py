"""Specs of tools, made from signatures and docstrings: schemas, validation, canonical arguments, stubs; and markers.

Nothing here runs a tool or depends on a provider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.schema._canonical import CanonicalArguments, digest
    from toolcrib.schema._client import (
        CallClient,
        ClientFeature,
        ClientLink,
        ClientRoot,
        Elicited,
        ElicitRequest,
        LogLevel,
        LogLine,
        Progress,
        Sampled,
        SampleRequest,
    )
    from toolcrib.schema._context import RunContext
    from toolcrib.schema._form import Form
    from toolcrib.schema._markers import (
        REDACTED,
        Content,
        Decides,
        IdempotencyKey,
        Injectable,
        Injected,
        InjectedKind,
        InjectedParameter,
        Redacted,
        hidden_paths,
    )
    from toolcrib.schema._problems import output_problems
    from toolcrib.schema._secret_objects import secret_objects
    from toolcrib.schema._spec import ToolSpec
    from toolcrib.schema._stub_types import STUB_IMPORTS, StubTypes, comment_of, docstring_text
    from toolcrib.schema._typed_dicts import modern
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "._canonical": "CanonicalArguments digest",
            "._client": (
                "CallClient ClientFeature ClientLink ClientRoot Elicited ElicitRequest LogLevel LogLine Progress "
                "Sampled SampleRequest"
            ),
            "._context": "RunContext",
            "._form": "Form",
            "._markers": (
                "REDACTED Content Decides IdempotencyKey Injectable Injected InjectedKind InjectedParameter "
                "Redacted hidden_paths"
            ),
            "._problems": "output_problems",
            "._secret_objects": "secret_objects",
            "._spec": "ToolSpec",
            "._stub_types": "STUB_IMPORTS StubTypes comment_of docstring_text",
            "._typed_dicts": "modern",
        },
    )

__all__ = [
    "REDACTED",
    "STUB_IMPORTS",
    "CallClient",
    "CanonicalArguments",
    "ClientFeature",
    "ClientLink",
    "ClientRoot",
    "Content",
    "Decides",
    "ElicitRequest",
    "Elicited",
    "Form",
    "IdempotencyKey",
    "Injectable",
    "Injected",
    "InjectedKind",
    "InjectedParameter",
    "LogLevel",
    "LogLine",
    "Progress",
    "Redacted",
    "RunContext",
    "SampleRequest",
    "Sampled",
    "StubTypes",
    "ToolSpec",
    "comment_of",
    "digest",
    "docstring_text",
    "hidden_paths",
    "modern",
    "output_problems",
    "secret_objects",
]
