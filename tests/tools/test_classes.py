"""Tools made of classes, declared inputs and objects."""

from typing import ClassVar

import pytest
from pydantic import BaseModel

from toolcrib.errors import NotCallable
from toolcrib.schema import RunContext
from toolcrib.tools import BaseTool, ToolRegistry, as_tool, object_tools, tool_input


class WebSearch(BaseTool):
    """Search the web."""

    tags: ClassVar = ["io"]
    timeout = 5

    async def call(self, ctx: RunContext, query: str) -> str:
        """Never shown.

        Args:
            query: What to look for.
        """
        return query


class Quiet(BaseTool):
    name = "hush"
    description = "Be quiet."

    async def call(self, ctx: RunContext) -> None: ...


class WordlessTool(BaseTool):
    async def call(self, ctx: RunContext) -> None:
        """Say nothing."""


def test_a_base_tool_is_described_by_its_class() -> None:
    made = as_tool(WebSearch)

    assert (made.name, made.description, made.tags, made.options.timeout) == (
        "web_search",
        "Search the web.",
        frozenset({"io"}),
        5,
    )
    assert made.parameters["properties"]["query"]["description"] == "What to look for."
    assert list(made.parameters["properties"]) == ["query"]
    assert "web_search" not in ToolRegistry


def test_a_base_tool_may_name_and_describe_itself() -> None:
    made = as_tool(Quiet())

    assert (made.name, made.description) == ("hush", "Be quiet.")


def test_a_base_tool_without_words_is_described_by_its_method() -> None:
    made = as_tool(WordlessTool)

    assert (made.name, made.description) == ("wordless", "Say nothing.")


def test_one_object_is_one_tool() -> None:
    quiet = Quiet()

    assert as_tool(quiet) is as_tool(quiet)
    assert as_tool(Quiet()) is not as_tool(Quiet())


def test_a_base_tool_needs_its_method() -> None:
    class Empty(BaseTool): ...

    with pytest.raises(TypeError, match="Empty has no method `call`"):
        as_tool(Empty)


def test_a_base_tool_that_needs_arguments_is_given_as_an_object() -> None:
    class Search(BaseTool):
        def __init__(self, key: str) -> None:
            self.key = key

        async def call(self, ctx: RunContext) -> None: ...

    with pytest.raises(TypeError, match=r"Search\(\.\.\.\)"):
        as_tool(Search)
    assert as_tool(Search("k")).name == "search"


async def test_a_declared_input_has_no_function() -> None:
    @tool_input(name="delete_file", output=bool, requires_approval=True)
    class DeleteFile(BaseModel):
        """Delete a file."""

        path: str

    made = as_tool(DeleteFile)

    assert (made.name, made.description, made.fn, made.hooks) == ("delete_file", "Delete a file.", None, [])
    assert made.input_model is DeleteFile
    assert made.options.requires_approval is True
    with pytest.raises(NotCallable, match="delete_file"):
        made("x")


def test_a_declared_input_takes_only_options() -> None:
    with pytest.raises(TypeError, match="requires_aproval"):

        @tool_input(requires_aproval=True)
        class DeleteFile(BaseModel):
            path: str


def test_a_declared_input_is_named_after_its_class() -> None:
    @tool_input()
    class HTTPGet(BaseModel):
        url: str

    class Later(HTTPGet): ...

    assert as_tool(HTTPGet).name == "http_get"
    with pytest.raises(TypeError, match="tool_input"):
        as_tool(Later)


@pytest.mark.parametrize("item", [3, "find", {"name": "find"}, BaseModel, object])
def test_what_is_no_tool_is_said_to_be_none(item: object) -> None:
    with pytest.raises(TypeError, match=r"is not a tool|nothing here could execute it"):
        as_tool(item)


class Files:
    """Files of one folder."""

    folder = "a"

    @property
    def size(self) -> int:
        raise AssertionError("a property is not read")

    def read(self, path: str) -> str:
        """Read a file."""
        return self.folder + path

    async def write(self, path: str) -> None: ...

    @staticmethod
    def join(one: str, other: str) -> str:
        return one + other

    @classmethod
    def kind(cls) -> str:
        return cls.__name__

    def _hidden(self) -> None: ...


class MyFiles(Files):
    def read(self, path: str) -> str:
        """Read my file."""
        return "my " + path

    write = None  # type: ignore[assignment]


def test_an_objects_public_methods_become_tools() -> None:
    made = {t.name: t for t in object_tools(Files(), prefix="f_")}

    assert list(made) == ["f_read", "f_write", "f_join", "f_kind"]
    assert made["f_read"]("x") == "ax"
    assert (made["f_join"]("a", "b"), made["f_kind"]()) == ("ab", "Files")


def test_a_subclass_overrides_and_removes_methods() -> None:
    made = {t.name: t for t in object_tools(MyFiles())}

    assert list(made) == ["read", "join", "kind"]
    assert made["read"].description == "Read my file."


def test_options_are_for_all_methods() -> None:
    assert all(t.options.requires_approval is True for t in object_tools(Files(), requires_approval=True))
