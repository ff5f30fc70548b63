"""Approver rules: which people have to approve which calls, and the groups of people that rules name.

`ApproverRules` is a gate of a toolset or a run. It writes its requirements into each approval request, and every answer
is checked against them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.approvers._file import describe_rules, load_rules, read_rules
    from toolcrib.approvers._gate import ApproverRules
    from toolcrib.approvers._model import ModelVerdict, model_approver
    from toolcrib.approvers._rule import ApproverRule, Groups
    from toolcrib.calls import Delegation, Identity, RequiredApprovers
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "._file": "describe_rules load_rules read_rules",
            "._gate": "ApproverRules",
            "._model": "ModelVerdict model_approver",
            "._rule": "ApproverRule Groups",
            "toolcrib.calls": "Delegation Identity RequiredApprovers",
        },
    )

__all__ = [
    "ApproverRule",
    "ApproverRules",
    "Delegation",
    "Groups",
    "Identity",
    "ModelVerdict",
    "RequiredApprovers",
    "describe_rules",
    "load_rules",
    "model_approver",
    "read_rules",
]
