from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import BaseModel

from toolcrib.errors import DuplicateNameError, ToolConstraintError, UnknownTool
from toolcrib.hooks import HookSet
from toolcrib.schema import RunContext
from toolcrib.tools import BaseTool, ez_tool, tool_input
from toolcrib.toolsets import Selector, ToolAvailability, ToolRequirement, Toolset, nested, off, use


@tool_input("web_search", output=list[str])
class WebSearch(BaseModel):
    """Search the web."""

    query: str


class ReadNote(BaseTool):
    """Read a note."""

    async def call(self, ctx: object, title: str) -> str:
        return title


@ez_tool
def delete_file(path: str) -> str:
    """Delete a file."""
    return path


@ez_tool
def get_user(user_id: int) -> int:
    """Look a user up."""
    return user_id


class DataTools(Toolset):
    get_user = use(get_user)


class AppTools(Toolset):
    web_search = use(WebSearch)
    read_note = ReadNote  # bare assignment
    delete_file = off(delete_file)
    data = nested(DataTools)


class Server:
    """A source of tools."""

    @asynccontextmanager
    async def open_source(self, ctx: RunContext[Any]) -> AsyncGenerator[Toolset]:
        yield Toolset([get_user])


def test_class_stands_for_its_toolset() -> None:
    assert AppTools.names() == AppTools().names() == ["web_search", "read_note", "delete_file", "get_user"]


def test_member_read_from_the_class_is_a_selector() -> None:
    selector = AppTools.web_search

    assert isinstance(selector, Selector)
    assert selector.name == "web_search"
    assert selector.definition().description == "Search the web."


def test_nested_member_gives_the_inner_selectors() -> None:
    assert AppTools.data.get_user == DataTools.get_user


def test_misspelt_nested_selector_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="get_usr"):
        AppTools.data.get_usr  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue] -- that it is wrong is the point


def test_member_named_like_an_attribute_of_toolset_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Bad\.names would hide Toolset\.names"):
        type("Bad", (Toolset,), {"names": use(get_user)})


async def test_source_of_tools_is_a_member_bare_or_declared() -> None:
    class Served(Toolset):
        server = Server()
        read_note = off(ReadNote)

    class Outer(Toolset):
        inner = nested(Served)

    async with Outer().open() as opened:
        names = opened.names()

    assert names == ["read_note", "get_user"]
    assert Outer.inner.read_note.name == "read_note"
    assert HookSet(Outer).inner.on("read_note")
    with pytest.raises(AttributeError, match="select them by name"):
        Served.server  # noqa: B018


def test_nested_takes_a_toolset() -> None:
    with pytest.raises(TypeError, match=r"Bad\.tools_of: nested\(\) takes a toolset; .*use\(\)"):

        class Bad(Toolset):
            tools_of = nested(Server())  # pyright: ignore -- that it is wrong is the point


def test_subclass_inherits_members() -> None:
    class More(AppTools):
        extra = use(ez_tool(name="extra")(lambda: 1))

    assert More.names() == [*AppTools.names(), "extra"]


def test_two_tools_with_one_name_are_named_with_both_origins() -> None:
    @ez_tool(name="get_user")
    def other() -> int:
        return 1

    with pytest.raises(DuplicateNameError, match=r"test_declare\.get_user and .*other"):
        Toolset.combined([get_user], [other])


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (ToolAvailability.default(), {"web_search", "read_note", "get_user"}),
        (ToolAvailability.all(), {"web_search", "read_note", "delete_file", "get_user"}),
        (ToolAvailability.only(AppTools.delete_file, WebSearch), {"delete_file", "web_search"}),
        (ToolAvailability.default_plus(AppTools.delete_file), {"web_search", "read_note", "delete_file", "get_user"}),
        (ToolAvailability.only(AppTools.data), {"get_user"}),
    ],
)
def test_availability_chooses_the_offered_names(choice: ToolAvailability, names: set[str]) -> None:
    assert AppTools.offered(choice) == names
    assert [d.name for d in AppTools.definitions(choice)] == [n for n in AppTools.names() if n in names]


def test_nested_off_hides_the_whole_group_by_default() -> None:
    class Hidden(Toolset):
        data = nested(DataTools, off=True)
        read_note = use(ReadNote)

    assert Hidden.offered() == {"read_note"}
    assert Hidden.offered(ToolAvailability.default_plus(Hidden.data)) == {"read_note", "get_user"}


def test_availability_of_a_stranger_is_an_error_that_helps() -> None:
    with pytest.raises(ToolConstraintError, match="Did you mean `get_user`"):
        AppTools.offered(ToolAvailability.only("get_usr"))


def test_required_tool_outside_the_offered_set_is_an_error() -> None:
    requirement = ToolRequirement.specific(AppTools.delete_file)

    with pytest.raises(ToolConstraintError, match="`delete_file`: it is required, and not among"):
        requirement.check(AppTools.offered())


def test_at_least_one_needs_something_to_call() -> None:
    with pytest.raises(ToolConstraintError, match="no tool is offered"):
        ToolRequirement.at_least_one().check(())


def test_requirement_that_can_be_met_passes() -> None:
    ToolRequirement.specific(AppTools.web_search).check(AppTools.offered())
    ToolRequirement.optional().check(())


def test_last_description_override_of_a_tool_wins() -> None:
    definitions = AppTools.definitions(describe={"web_search": "first", AppTools.web_search: "second"})

    assert definitions[0].description == "second"


def test_description_may_be_given_for_a_group() -> None:
    definitions = AppTools.definitions(describe={AppTools.data: "All about users."})

    assert definitions[-1].description == "All about users."


def test_definition_is_of_one_tool() -> None:
    assert AppTools.definition(AppTools.delete_file) == AppTools.definition("delete_file")
    with pytest.raises(TypeError, match="stand for a tool"):
        AppTools.definition(AppTools.data)


def test_description_of_an_unknown_tool_is_an_error() -> None:
    with pytest.raises(UnknownTool, match="web_serch"):
        AppTools.definitions(describe={"web_serch": "x"})


def test_names_are_found_or_not() -> None:
    assert AppTools.from_name("get_user").tool is get_user
    assert AppTools.try_from_name("nobody") is None
    assert [s.name for s in AppTools.all()] == AppTools.names()
    with pytest.raises(UnknownTool):
        AppTools.from_name("nobody")
