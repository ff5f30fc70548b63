"""Names of tools and arguments, and the choice of operations."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.openapi.standin import document, operation, parameter
from toolcrib.errors import ToolConstraintError
from toolcrib.openapi import Operation, toolset

NAME = re.compile(r"[A-Za-z0-9_]{1,64}")
ids = st.text(min_size=1, max_size=90)


def made(paths: dict[str, Any], **options: Any) -> list[str]:
    return toolset(document(paths), **options).names()


@given(st.lists(ids, min_size=1, max_size=6))
def test_every_name_is_one_that_a_model_can_use_and_the_only_one(listed: list[str]) -> None:
    names = made({f"/p{n}": {"get": operation(one)} for n, one in enumerate(listed)})

    assert all(NAME.fullmatch(name) for name in names)
    assert len({name.lower() for name in names}) == len(listed)


@pytest.mark.parametrize(
    ("given_id", "name"),
    [("repos/get-content", "repos_get_content"), ("read_item_items__item_id__get", "read_item_items_item_id_get")],
)
def test_an_id_becomes_a_name_of_words(given_id: str, name: str) -> None:
    assert made({"/x": {"get": operation(given_id)}}) == [name]


def test_an_operation_without_an_id_is_named_by_its_method_and_path() -> None:
    assert made({"/users/{id}/posts": {"get": {"responses": {}}}}) == ["get_users_id_posts"]


def test_a_name_depends_on_neither_the_order_nor_the_choice() -> None:
    paths = {"/a": {"get": operation("x y")}, "/b": {"get": operation("x-y")}, "/c": {"get": operation("z")}}
    backwards = dict(reversed(paths.items()))

    assert made(paths) == made(backwards)[::-1]
    assert made(paths, include=["/a"]) == made(paths)[:1]
    assert made(paths)[2] == "z"


def test_arguments_with_one_name_are_told_apart_by_their_place() -> None:
    spec = [
        parameter("id", "path", {"type": "string"}),
        parameter("id", "query", {"type": "string"}),
        parameter("page[size]", "query", {"type": "integer"}),
        parameter("body", "query", {"type": "string"}),
        parameter("X-Trace", "header", {"type": "string"}),
        parameter("Authorization", "header", {"type": "string"}),
    ]

    tools = toolset(document({"/x/{id}": {"get": operation("x", spec)}}))

    assert [*tools["x"].parameters["properties"]] == ["id", "id_query", "page_size", "body_query", "X_Trace"]


PATHS = {
    "/repos": {"get": operation("list_repos", tags=["repos"]), "post": operation("make_repo", tags=["repos"])},
    "/repos/{id}": {"delete": operation("drop_repo", tags=["repos", "danger"])},
    "/users": {"get": operation("list_users", deprecated=True)},
}


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"include": ["tag:repos"]}, ["list_repos", "make_repo", "drop_repo"]),
        ({"include": ["tag:repos"], "exclude": ["DELETE /repos/*"]}, ["list_repos", "make_repo"]),
        ({"include": ["list_*"]}, ["list_repos", "list_users"]),
        ({"include": lambda each: each.effect == "none"}, ["list_repos", "list_users"]),
        ({"deprecated": False}, ["list_repos", "make_repo", "drop_repo"]),
        ({"include": ["/users"], "prefix": "gh_"}, ["gh_list_users"]),
    ],
)
def test_operations_are_chosen_by_tag_path_method_and_name(options: dict[str, Any], names: list[str]) -> None:
    assert made(PATHS, **options) == names


@pytest.mark.parametrize("option", ["include", "exclude", "approval"])
def test_a_word_that_names_no_operation_is_an_error(option: str) -> None:
    with pytest.raises(ToolConstraintError, match=f"`list_repo`: `{option}` names it"):
        made(PATHS, **{option: ["list_repo"]})


def test_an_operation_is_described_to_a_choice() -> None:
    seen: list[Operation] = []

    made(PATHS, exclude=lambda each: bool(seen.append(each)))

    assert seen[2] == Operation(
        "drop_repo", "DELETE", "/repos/{id}", "drop_repo", ("repos", "danger"), "", False, "execute"
    )
