"""Middleware: what it has to take is asked when it is put on a toolset."""

from typing import Any

import pytest

from toolcrib.hooks import GlobalHooks, per_value
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset


@ez_tool
async def search(query: str) -> None: ...


def short(ctx: Any, value: Any) -> Any:
    return value


@pytest.mark.parametrize("slot", [short, [short], per_value(short)])
def test_middleware_that_takes_other_parameters_is_refused(slot: Any) -> None:
    with pytest.raises(TypeError, match=r"middleware `short` is called with \(ctx, result, metadata\), and takes"):
        Toolset([search], post_hooks={"search": slot})
    with pytest.raises(TypeError, match=r"`short` is called with \(ctx, tool_name, result, metadata\)"):
        GlobalHooks(post=slot)


def test_middleware_before_a_tool_that_takes_other_parameters_is_refused() -> None:
    with pytest.raises(TypeError, match=r"`short` is called with \(ctx, args, metadata\)"):
        Toolset([search], pre_hooks={"search": short})
    with pytest.raises(TypeError, match=r"`short` is called with \(ctx, tool_name, args, metadata\)"):
        GlobalHooks(pre=short)


def test_middleware_whose_parameters_cannot_be_read_is_taken() -> None:
    tools = Toolset([search], post_hooks={"search": max})

    assert len(tools["search"].post) == 1
