"""Toolset: members, hooks, what is offered, objects as tools."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from toolcrib.approvals import AgentContext
from toolcrib.calls import Completed, Failed, Suspended, ToolCall
from toolcrib.errors import DuplicateNameError, UnknownTool
from toolcrib.hooks import GlobalHooks
from toolcrib.pipeline import Pipeline
from toolcrib.results import MemoryResultStore
from toolcrib.schema import RunContext
from toolcrib.tools import BaseTool, Cost, Tool, ez_tool, tool, tool_input
from toolcrib.toolsets import Toolset
from toolcrib.turns import Agent


def named(name: str, **options: Any) -> Tool[..., Any]:
    @ez_tool(name=name, **options)
    async def run(text: str = "") -> str:
        return text

    return run


class Search(BaseTool):
    """Search."""

    async def call(self, ctx: RunContext, query: str) -> str:
        return query


@tool_input(name="read_file")
class ReadFile(BaseModel):
    path: str


def plain(text: str) -> str:
    """Return the text."""
    return text


def test_whatever_is_a_tool_is_a_member() -> None:
    tools = Toolset([named("a"), plain, Search, ReadFile])

    assert tools.names() == ["a", "plain", "search", "read_file"]
    assert len(tools) == 4
    assert "plain" in tools
    assert [entry.name for entry in tools] == tools.names()
    assert [made.name for made in tools.tools()] == tools.names()


def test_a_tool_brings_its_subtools() -> None:
    @tool()
    async def users() -> None: ...

    @users.subtool()
    async def create() -> None: ...

    assert Toolset([users]).names() == ["users", "users__create"]
    assert Toolset([users, create]).names() == ["users", "users__create"]


def test_two_tools_with_one_name_are_an_error_that_names_both() -> None:
    with pytest.raises(DuplicateNameError, match=r"`plain`.*named.*plain"):
        Toolset([named("plain"), plain])


def test_what_is_no_tool_is_refused() -> None:
    with pytest.raises(TypeError, match="is not a tool"):
        Toolset([3])


def test_an_unknown_tool_is_a_key_error_that_helps() -> None:
    with pytest.raises(UnknownTool, match="`plain`"):
        Toolset([plain])["plian"]


@pytest.mark.parametrize("slot", ["pre_hooks", "post_hooks"])
def test_a_hook_for_no_member_is_refused(slot: str) -> None:
    with pytest.raises(ValueError, match="`plian`"):
        Toolset([plain], **{slot: {"plian": lambda *args: None}})


@pytest.mark.parametrize("options", [{"timeout": 0}, {"timeout": -1}, {"max_retries": -1}])
def test_an_option_that_does_not_fit_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        Toolset([plain], **options)


def test_what_is_off_is_not_offered() -> None:
    tools = Toolset([named("a"), named("b", default=False)])

    assert tools.offered() == {"a"}
    assert tools["b"].off


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_view_with_a_timeout_of_no_time_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match=f"must be more than 0 seconds, and is {seconds}"):
        Toolset([named("a")]).with_timeout(seconds)


def test_a_toolsets_timeout_is_for_members_without_one() -> None:
    inner = Toolset([named("a"), named("b", timeout=1)])
    middle = Toolset([inner, named("c")], timeout=3)

    entries = Toolset([middle], timeout=9).entries

    assert [entries[name].timeout for name in "abc"] == [3, 1, 3]


def test_retries_are_the_tools_own_or_the_toolsets() -> None:
    entries = Toolset([named("a"), named("b", max_retries=0)], max_retries=5).entries

    assert [entries[name].max_retries for name in "ab"] == [5, 0]


async def test_middleware_of_nested_toolsets_stands_around_that_of_the_inner_ones() -> None:
    seen: list[str] = []

    def around(name: str) -> GlobalHooks:
        def pre(ctx: Any, tool_name: str, args: Any, metadata: Any) -> Any:
            seen.append(f"{name} pre")
            return args

        def post(ctx: Any, tool_name: str, result: Any, metadata: Any) -> Any:
            seen.append(f"{name} post")
            return result

        return GlobalHooks(pre=pre, post=post)

    inner = Toolset([named("a")], global_hooks=around("inner"))

    await Pipeline(Toolset([inner], global_hooks=around("outer"))).run(ToolCall("a"))

    assert seen == ["outer pre", "inner pre", "inner post", "outer post"]


class Files:
    """Files in memory."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def write(self, path: str, text: str) -> int:
        """Write a file.

        Args:
            path: Where.
        """
        self.texts[path] = text
        return len(text)

    async def read(self, path: str) -> str:
        """Read a file."""
        return self.texts[path]


@pytest.mark.parametrize("make", [Toolset, Toolset.of, Pipeline], ids=["toolset", "of", "pipeline"])
@pytest.mark.parametrize("tools", [named("plain"), Search, print, 3, "plain", None], ids=repr)
def test_tools_that_are_no_list_are_a_type_error_with_the_mend(make: Any, tools: Any) -> None:
    with pytest.raises(
        TypeError, match=r"is not a list of tools; (write \[tool\] for one|give tools, functions or toolsets)"
    ):
        make(tools)


async def test_an_object_is_a_toolset_of_its_methods() -> None:
    files = Files()
    tools = Toolset.from_object(files, prefix="fs_", thread=False)

    written = await Pipeline(tools).run(ToolCall("fs_write", {"path": "a", "text": "hi"}))
    read = await Pipeline(tools).run(ToolCall("fs_read", {"path": "a"}))
    missing = await Pipeline(tools).run(ToolCall("fs_read", {"path": "b"}))

    assert tools.names() == ["fs_write", "fs_read"]
    assert tools["fs_write"].parameters["properties"]["path"]["description"] == "Where."
    assert isinstance(written, Completed)
    assert isinstance(read, Completed)
    assert (written.value, read.value) == (2, "hi")
    assert isinstance(missing, Failed)
    assert missing.error_type == "KeyError"


class OtherFiles(Files): ...


@pytest.mark.parametrize(
    ("item", "identity", "kind"),
    [
        (Files(), ["a"], Completed),
        (Files(), ["b"], Suspended),
        (Files(), ["a", "b"], Suspended),
        (Files(), [], Suspended),
        (OtherFiles(), ["a"], Suspended),
    ],
    ids=["same", "other object", "more said", "nothing said", "other class"],
)
async def test_an_approval_is_for_the_object_whose_method_it_is(item: object, identity: list[str], kind: type) -> None:
    first = Toolset.from_object(Files(), requires_approval=True).with_identity("a")
    asked = await Pipeline(first).run(ToolCall("write", {"path": "a", "text": "hi"}))
    assert isinstance(asked, Suspended)

    second = Toolset.from_object(item, requires_approval=True)
    for text in identity:
        second = second.with_identity(text)
    outcome = await Pipeline(second).run(asked, grant=asked.request.grant("ann"))

    assert type(outcome) is kind


@pytest.mark.parametrize(
    ("item", "mend"),
    [
        (Files, r"give an object of it: Files\(\.\.\.\)"),
        (pytest, "a list of its functions"),
        (5, "an int has no public method that can be a tool"),
        ([Files()], "a list has no public method"),
        (Agent("shop", "Sells.", [ez_tool(lambda: 1, name="one")]), "an Agent has no public method"),
    ],
)
def test_what_has_no_methods_of_an_object_is_refused(item: object, mend: str) -> None:
    with pytest.raises(TypeError, match=mend):
        Toolset.from_object(item)


class Desk(AgentContext):
    def close(self) -> None: ...


def test_methods_of_our_own_classes_are_the_hosts_and_no_tools() -> None:
    assert Toolset.from_object(Desk()).names() == ["close"]


def test_an_approval_policy_is_checked_when_it_is_given() -> None:
    def policy(arguments: dict[str, Any]) -> bool:
        return True

    given: Any = policy

    takes = r"the approval policy `policy` is called with \(arguments, ctx\), and takes \(arguments:"
    with pytest.raises(TypeError, match=takes):
        ez_tool(lambda: 1, name="one", requires_approval=given)
    with pytest.raises(TypeError, match=takes):
        Toolset([ez_tool(lambda: 1, name="one")]).with_approval(given)


@pytest.mark.parametrize(
    ("option", "takes"),
    [
        (
            {"requires_approval": lambda order, cents: cents > 1},
            r"approval policy .*\(arguments, ctx\).*order",
        ),
        (
            {"requires_approval": lambda cents, ctx: cents > 1},
            r"takes \(cents, ctx\): `cents` is an arg",
        ),
        (
            {"cost": lambda cents: cents},
            r"cost function .*: `cents` is .* `lambda arguments:",
        ),
        ({"lock": lambda order: order}, r"lock function .*: `order` is an argument of `refund`"),
        (
            {"source": lambda order, cents: "trusted"},
            r"source function .*\(arguments, result\), and takes",
        ),
    ],
)
def test_a_function_that_takes_the_arguments_one_by_one_is_refused_when_it_is_given(
    option: dict[str, Any], takes: str
) -> None:
    def refund(order: int, cents: int) -> None: ...

    options = {name: Cost(fn, "EUR") if name == "cost" else fn for name, fn in option.items()}

    with pytest.raises(TypeError, match=takes):
        ez_tool(refund, **options)
    if "requires_approval" in option:
        with pytest.raises(TypeError, match=takes):
            Toolset([ez_tool(refund)]).with_approval(option["requires_approval"])


@pytest.mark.parametrize("fn", [lambda a, c: a["a"] > 1, lambda args, ctx: args["a"] > 1, lambda *given: True])
def test_a_function_of_all_arguments_may_be_named_like_a_short_one(fn: Any) -> None:
    def add(a: int, args: int = 1) -> None: ...

    assert Toolset([ez_tool(add, requires_approval=fn)]).with_approval(fn).names() == ["add"]


@pytest.mark.parametrize(
    ("make", "takes"),
    [
        (lambda fn: Cost(fn, "EUR"), r"cost function `<lambda>` is called with \(arguments\)"),
        (
            lambda fn: ez_tool(lambda: 1, name="one", source=fn),
            r"source function `<lambda>` is called with \(arg",
        ),
    ],
)
def test_functions_among_the_options_of_a_tool_are_checked_when_they_are_given(make: Any, takes: str) -> None:
    with pytest.raises(TypeError, match=takes):
        make(lambda: 1)


def test_a_lock_function_and_an_availability_check_are_checked_when_they_are_given() -> None:
    class Broken(BaseTool):
        name = "broken"
        description = "Breaks."

        def is_available(self) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride] -- what is tested
            return True

        async def call(self, ctx: Any) -> None: ...

    lock: Any = lambda: 1  # noqa: E731 -- a function without parameters

    with pytest.raises(TypeError, match=r"the lock function `<lambda>` is called with \(arguments\), and takes \(\)"):
        ez_tool(lambda: 1, name="one", lock=lock)
    takes = r"the availability check `is_available` is called with \(ctx\), and takes \(\)"
    with pytest.raises(TypeError, match=takes):
        Toolset([Broken()])


@pytest.mark.parametrize("results", ["results.db", Path("results.db"), MemoryResultStore])
def test_results_that_are_no_store_are_refused_with_the_mend(results: Any) -> None:
    with pytest.raises(TypeError, match=r"has to be a result store: MemoryResultStore\(\), or SqliteResultStore\('"):
        Toolset([], results=results)
