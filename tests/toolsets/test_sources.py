"""A gate that is named for a tool nobody has is an error, also where members are known only when a run opens."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from toolcrib.calls import Reject, Rejected, Suspended, ToolCall
from toolcrib.errors import ToolConstraintError
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Pipeline, Run
from toolcrib.schema import RunContext
from toolcrib.tools import ez_tool
from toolcrib.toolsets import LiveTools, Toolset


class Server:
    """A source with one tool, `remote`."""

    @asynccontextmanager
    async def open_source(self, ctx: RunContext[Any]) -> AsyncGenerator[Toolset]:
        yield Toolset([ez_tool(name="remote", thread=False)(lambda: "far away")])


local = ez_tool(name="local", thread=False)(lambda: "here")


def refusing(name: str) -> HookSet:
    hooks = HookSet()

    @hooks.on(name)
    async def refuse(call: object, input: object) -> Reject:
        return Reject("no")

    return hooks


def keep(ctx: object, args: dict[str, Any], metadata: object) -> dict[str, Any]:
    return args


GATES: dict[str, Callable[[str], Toolset]] = {
    "pre hook": lambda name: Toolset([local, Server()], pre_hooks={name: keep}),
    "decision": lambda name: Toolset([local, Server()]).with_hooks(refusing(name)),
    "decision inside": lambda name: Toolset([Toolset([Server()]).with_hooks(refusing(name)), local]),
    "approval": lambda name: Toolset([local, Server()]).with_approval(names=[name]),
    "name": lambda name: Toolset([local, Server()]).renamed({name: "other"}),
}


@pytest.mark.parametrize("gate", GATES)
async def test_gate_for_a_tool_that_nobody_has_is_an_error_at_opening(gate: str) -> None:
    tools = GATES[gate]("remot")

    with pytest.raises(ToolConstraintError, match=r"`remot`: a hook, .* Did you mean `remote`"):
        async with tools.open():
            pass


@pytest.mark.parametrize("gate", GATES)
async def test_gate_for_a_tool_of_a_source_is_met(gate: str) -> None:
    async with GATES[gate]("remote").open() as bound:
        assert len(bound) == 2


async def test_gate_for_a_known_member_beside_a_source_is_met() -> None:
    async with Toolset([local, Server()]).with_approval(names=["local"]).open() as bound:
        outcome = await Pipeline(bound).run(ToolCall("local"), Run())

    assert isinstance(outcome, Suspended)


async def test_gate_of_a_source_holds_under_another_name() -> None:
    tools = Toolset([local, Server()]).with_hooks(refusing("remote")).prefixed("far_")

    async with tools.open() as bound:
        outcome = await Pipeline(bound).run(ToolCall("far_remote"), Run())

    assert isinstance(outcome, Rejected)


class Changing:
    """A source whose tools may change while it is open."""

    def __init__(self, *names: str) -> None:
        self.tools = LiveTools(self.made(names))

    def made(self, names: tuple[str, ...]) -> list[Any]:
        return [ez_tool(name=name, thread=False)(lambda: "far away") for name in names]

    def have(self, *names: str) -> None:
        self.tools.renew(self.made(names))

    @asynccontextmanager
    async def open_source(self, ctx: RunContext[Any]) -> AsyncGenerator[Toolset]:
        yield self.tools


async def test_tools_of_a_source_that_changes_stay_at_its_place() -> None:
    first, late, last = Changing("a", "b"), Changing(), Changing("z")
    tools = Toolset([first, local, late, last]).prefixed("far_")

    async with tools.open() as bound:
        before = bound.names()
        first.have("b", "c")
        late.have("m")
        first.have("a", "b")
        after = [name for name in bound.names() if name in bound.offered()]

    assert before == ["far_local", "far_a", "far_b", "far_z"]
    assert after == ["far_local", "far_a", "far_b", "far_m", "far_z"]
