"""Operations are found by what a person asks for, among others whose texts are longer and say the same words."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest

from tests.openapi.standin import document, operation
from toolcrib.openapi import toolset
from toolcrib.toolsets.search import SearchTools

NOUNS = ("customer", "customer portal", "invoice", "config map", "stateful set", "policy", "branch")
_KINDS = "The customer, the invoice, the policy, or the branch that one creates, updates, deletes and lists: "


def pascal(words: str) -> str:
    return "".join(word.capitalize() for word in words.split())


def paths() -> dict[str, Any]:
    """Return operations of each noun: the portal's texts have the words of all, and long bodies hide what creates."""
    made: dict[str, Any] = {}
    for noun in NOUNS:
        name, about = pascal(noun), _KINDS * 8 if noun == "customer portal" else "An unlike thing. " * 90
        fields = {"part": {"description": about}}
        body = {"content": {"application/json": {"schema": {"type": "object", "properties": fields}}}}
        made[f"/{name}"] = {
            "get": operation(f"Get{name}s", summary=f"List all objects of kind {noun}"),
            "post": operation(f"Post{name}s", summary=f"Creates a new {noun} object", requestBody=body),
        }
        made[f"/{name}/{{id}}"] = {
            "get": operation(f"readCoreV1Namespaced{name}", summary=f"read the specified {name}"),
            "put": operation(f"replaceCoreV1Namespaced{name}", summary=f"replace the specified {name}"),
            "delete": operation(f"Delete{name}sId", summary=f"Permanently deletes a {noun}"),
            "options": operation(f"connectCoreV1{name}Portforward", summary=f"connect to portforward of {name}"),
        }
    return made


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("create a customer", "PostCustomers"),
        ("add a customer", "PostCustomers"),
        ("list customers", "GetCustomers"),
        ("find all invoices", "GetInvoices"),
        ("remove an invoice", "DeleteInvoicesId"),
        ("change a configmap", "replaceCoreV1NamespacedConfigMap"),
        ("update the config map", "replaceCoreV1NamespacedConfigMap"),
        ("update a statefulset", "replaceCoreV1NamespacedStatefulSet"),
        ("read a policy in a namespace", "readCoreV1NamespacedPolicy"),
        ("drop branches", "DeleteBranchsId"),
        ("read policies", "readCoreV1NamespacedPolicy"),
    ],
)
def test_an_operation_is_found_by_its_action_and_its_object(query: str, name: str) -> None:
    search = SearchTools(toolset(document(paths())))

    assert name in [entry.name for entry in islice(search.ranked(query), 2)]
