"""A tool that needs a scope runs only where the token of the request has it, whatever way the call came."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import Completed, Failed, Suspended, ToolCall
from toolcrib.errors import UnknownTool
from toolcrib.pipeline import Access, Channel, Pipeline, Run
from toolcrib.schema import RunContext
from toolcrib.testing import RecordingSink
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset, nested, use


@ez_tool
async def look(place: str = "") -> str:
    """Look at a place."""
    return f"saw {place}"


@ez_tool(requires_approval=True)
async def book(place: str = "") -> str:
    """Book a place."""
    return f"booked {place}"


TOOLS = Toolset([look, book]).with_scopes({"book": ["trips:write", "trips:read"], "look": "trips:read"})


@pytest.mark.parametrize(
    ("access", "runs"),
    [
        (None, True),  # no token: the host's own call
        (Access(frozenset({"trips:read"})), True),
        (Access(frozenset({"trips:read", "other"})), True),
        (Access(), False),
        (Access(frozenset({"trips"})), False),
        (Access(frozenset({"TRIPS:READ"})), False),
    ],
)
async def test_a_call_needs_the_scopes_of_its_tool(access: Access | None, runs: bool) -> None:
    made = await Pipeline(TOOLS).run(ToolCall("look", {}), Run(channel=Channel(access=access)))

    assert isinstance(made, Completed if runs else Failed)
    if isinstance(made, Failed):
        assert made.code == "insufficient_scope"
        assert made.message == "`look` needs the scope `trips:read`, which the token of this request does not have"


async def test_no_person_is_asked_about_a_call_without_its_scopes() -> None:
    store = MemoryApprovalStore()

    made = await Pipeline(TOOLS).run(ToolCall("book", {}), Run(approvals=store, channel=Channel(access=Access())))

    assert isinstance(made, Failed)
    assert "`trips:read` and `trips:write`" in made.message
    assert await store.list() == ()


async def test_an_approved_call_needs_the_scopes_again_when_it_goes_on() -> None:
    store, all_of_them = MemoryApprovalStore(), Access(frozenset({"trips:read", "trips:write"}))
    run = Run(approvals=store)
    suspended = await Pipeline(TOOLS).run(ToolCall("book", {"place": "Oslo"}), run.view(access=all_of_them))
    assert isinstance(suspended, Suspended)
    await store.answer(suspended.request.grant("ann"))

    less = await Pipeline(TOOLS).run(suspended, run.view(access=Access(frozenset({"trips:read"}))))
    done = await Pipeline(TOOLS).run(suspended, run.view(access=all_of_them))

    assert isinstance(less, Failed)
    assert less.code == "insufficient_scope"
    assert isinstance(done, Completed)


async def test_what_runs_inside_a_tool_has_the_access_of_its_call() -> None:
    inner = Toolset([look]).with_scopes({"*": "inner"})

    @ez_tool
    async def outer(ctx: RunContext[Any]) -> str:
        """Look by another pipeline."""
        return (await Pipeline(inner).run(ToolCall("look", {}), ctx.run)).text()

    made = await Pipeline([outer]).run(ToolCall("outer", {}), Run(channel=Channel(access=Access())))

    assert isinstance(made, Completed)
    assert "needs the scope `inner`" in made.value


async def test_the_refusal_is_recorded() -> None:
    sink = RecordingSink()

    await Pipeline(TOOLS, sinks=[sink]).run(
        ToolCall("look", {}), Run(channel=Channel(access=Access()), principal="ann")
    )

    record = sink.record
    assert record.principal == "ann"
    assert "insufficient_scope" in str(record.to_dict())


@pytest.mark.parametrize(
    "view",
    [
        lambda tools: tools.prefixed("x_"),
        lambda tools: tools.renamed({"look": "x_look"}),
        lambda tools: Toolset([tools.prefixed("x_")]),
        lambda tools: tools.prefixed("x_").subset(["x_look"], inherit_hooks=False),
        lambda tools: type("Apps", (Toolset,), {"inner": nested(tools)})().prefixed("x_"),
        lambda tools: tools.prefixed("x_").with_scopes({"x_*": "more"}),
    ],
)
async def test_no_view_loses_scopes(view: Any) -> None:
    made = await Pipeline(view(TOOLS)).run(
        ToolCall("x_look", {}), Run(channel=Channel(access=Access(frozenset({"more"}))))
    )

    assert isinstance(made, Failed)
    assert "`trips:read`" in made.message


def test_patterns_add_up() -> None:
    tools = Toolset([look, book]).with_scopes({"*": "mcp", "bo*": ["write"], "book": "pay"})

    assert [sorted(entry.scopes) for entry in tools] == [["mcp"], ["mcp", "pay", "write"]]


@pytest.mark.parametrize(
    ("scopes", "said"), [({"lok": "a"}, "Did you mean `look`"), ({"loo[kK]x": "a"}, "there is no tool")]
)
def test_a_name_that_no_tool_has_is_an_error(scopes: dict[str, str], said: str) -> None:
    with pytest.raises(UnknownTool, match=said):
        Toolset([look, book]).with_scopes(scopes)


@pytest.mark.parametrize("scopes", [{"look": "a b"}, {"look": ""}, {"look": []}, {"look": ['a"b']}, {"look": "a\nb"}])
def test_a_scope_that_oauth_does_not_allow_is_an_error(scopes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="the scopes of `look` are words"):
        Toolset([look]).with_scopes(scopes)


def test_claims_cannot_be_changed() -> None:
    claims: Any = Access(claims={"groups": ["a"], "in": {"deep": [1]}}).claims

    assert (claims["groups"], claims["in"]["deep"]) == (("a",), (1,))
    with pytest.raises(TypeError):
        claims["in"]["deep"] = 2
    assert "groups" not in repr(Access(claims=claims))


async def test_hooks_and_tools_read_claims_from_the_run() -> None:
    @ez_tool
    async def groups(ctx: RunContext[Any]) -> list[str]:
        """Return the groups of the caller."""
        return list(ctx.run.channel.access.claims["groups"])

    made = await Pipeline(
        Toolset([groups]).filtered(lambda ctx, _: "admin" in ctx.run.channel.access.claims["groups"])
    ).run(ToolCall("groups", {}), Run(channel=Channel(access=Access(claims={"groups": ["admin"]}))))

    assert isinstance(made, Completed)
    assert made.value == ["admin"]


def test_the_tools_of_a_class_are_named_as_models_call_them() -> None:
    class Trips(Toolset):
        see = use(look)

    assert Trips().with_scopes({"look": "a"})["look"].scopes == {"a"}
    with pytest.raises(UnknownTool):
        Trips().with_scopes({"see": "a"})
