"""Functions of a host that forget their `return`, or are async where nobody awaits them: refused where they are given.

Each of them would pass in silence otherwise: a delivery makes the result null, a gate lets the call through.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import pytest

from toolcrib.budgets import Budgets, Limit
from toolcrib.calls import ApprovalRequest, Ask, Grant, Reject
from toolcrib.code import Toolkit
from toolcrib.errors import require_result
from toolcrib.hooks import GlobalHooks, HookSet
from toolcrib.openapi import toolset
from toolcrib.pipeline import Run
from toolcrib.serving import GuardPolicy
from toolcrib.tools import Cost, ez_tool
from toolcrib.toolsets import Toolset

Give = Callable[[Callable[..., Any]], object]


@ez_tool
def pay(cents: int) -> str:
    """Pay."""
    return f"paid {cents}"


TOOLS = Toolset([pay])
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "shop", "version": "1"},
    "servers": [{"url": "https://shop.example"}],
    "paths": {"/pay": {"delete": {"operationId": "pay", "responses": {"200": {"description": "Done."}}}}},
}

RETURNING: Mapping[str, tuple[int, Give]] = {
    "delivery of a toolset": (2, lambda fn: TOOLS.with_deliveries(fn)),
    "delivery of a run": (2, lambda fn: Run(deliveries=[fn])),
    "pre hook": (3, lambda fn: Toolset([pay], pre_hooks={"pay": fn})),
    "post hook": (3, lambda fn: Toolset([pay], post_hooks={"pay": fn})),
    "global post hook": (4, lambda fn: GlobalHooks(post=[fn])),
    "approval policy of a tool": (2, lambda fn: ez_tool(requires_approval=fn)(pay.fn)),
    "approval policy of a toolset": (2, lambda fn: TOOLS.with_approval(fn)),
    "approval policy of a guard": (2, lambda fn: GuardPolicy(approve=fn)),
    "condition": (2, lambda fn: TOOLS.filtered(fn)),
    "cost": (1, lambda fn: Cost(fn, "EUR")),
    "lock": (1, lambda fn: ez_tool(lock=fn)(pay.fn)),
    "source": (2, lambda fn: ez_tool(source=fn)(pay.fn)),
    "groups": (1, lambda fn: Budgets([Limit(calls=1, by="group")], groups=fn)),
    "approval of an API": (1, lambda fn: toolset(DOCUMENT, approval=fn)),
    "include of an API": (1, lambda fn: toolset(DOCUMENT, include=fn)),
    "exclude of an API": (1, lambda fn: toolset(DOCUMENT, exclude=fn)),
}
"""The number of parameters of a function that has to return something, and how it is given."""
NONE_IS_AN_ANSWER = ("condition", "groups", "approval of an API", "include of an API", "exclude of an API")
NEVER_AWAITED = ("cost", "lock", "source", "groups", "approval of an API", "include of an API", "exclude of an API")


def forgetful(parameters: int) -> Callable[..., Any]:
    def one(a: Any) -> Any:
        len([a])

    def two(a: Any, b: Any) -> Any:
        len([a, b])

    def three(a: Any, b: Any, c: Any) -> Any:
        len([a, b, c])

    def four(a: Any, b: Any, c: Any, d: Any) -> Any:
        len([a, b, c, d])

    return (one, two, three, four)[parameters - 1]


@pytest.mark.parametrize(("parameters", "give"), RETURNING.values(), ids=RETURNING)
def test_a_function_that_returns_nothing_is_refused_where_it_is_given(parameters: int, give: Give) -> None:
    with pytest.raises(TypeError, match=r"`(one|two|three|four)` returns nothing, .* return "):
        give(forgetful(parameters))


def half(parameters: int) -> Callable[..., Any]:
    """Return a function that lacks its `return` on one of its two paths."""
    names = "abcd"[:parameters]
    found: dict[str, Any] = {}
    exec(f"def fn({', '.join(names)}):\n  if a:\n    return {names[-1]}", found)
    return found["fn"]


@pytest.mark.parametrize("way", [way for way in RETURNING if way not in NONE_IS_AN_ANSWER])
def test_a_function_that_lacks_its_return_on_one_path_is_refused_where_it_is_given(way: str) -> None:
    parameters, give = RETURNING[way]

    with pytest.raises(TypeError, match=r"returns nothing where it ends after line \d+: return .*`return None`"):
        give(half(parameters))


@pytest.mark.parametrize("way", NONE_IS_AN_ANSWER[:-1])  # an API without operations is refused
def test_a_path_without_return_is_an_answer_where_none_is_one(way: str) -> None:
    parameters, give = RETURNING[way]

    give(half(parameters))


@pytest.mark.parametrize("way", NEVER_AWAITED)
def test_an_async_function_is_refused_where_nobody_awaits_it(way: str) -> None:
    async def one(a: Any) -> bool:
        return True

    async def two(a: Any, b: Any) -> str:
        return "trusted"

    parameters, give = RETURNING[way]
    with pytest.raises(TypeError, match="is async; write it as a plain `def`, which returns "):
        give((one, two)[parameters - 1])


def test_a_decision_hook_that_lacks_its_return_is_refused() -> None:
    hooks = HookSet(TOOLS)

    with pytest.raises(
        TypeError, match="the decision hook `fn` returns nothing where it ends after line 2: return Run"
    ):
        hooks.on("pay")(written("if x: return call", "call, x"))
    with pytest.raises(TypeError, match=r"the decision hook `fn` returns nothing, .*: return RunNormally, Complete"):
        hooks.on("pay")(written("len(x)", "call, x"))


@pytest.mark.parametrize(
    "give",
    [lambda fn: TOOLS.with_gates(fn), lambda fn: Run(gates=[fn])],
    ids=["toolset", "run"],
)
@pytest.mark.parametrize("answer", [Ask, Reject])
def test_a_gate_that_makes_an_answer_and_does_not_return_it_is_refused(give: Give, answer: Any) -> None:
    def rate(call: Any) -> Any:
        if call.arguments:
            answer("too many")

    def hours(call: Any) -> Any:
        if call.arguments:
            Reject("closed")

    give(rate)  # what it makes is not known: `answer` may be anything
    with pytest.raises(TypeError, match="the gate `hours` returns nothing"):
        give(hours)


def test_a_gate_whose_second_method_is_misspelt_is_refused() -> None:
    class Rate:
        stage = "approve"

        def check(self, call: Any) -> None:
            return None

        def beginn(self, call: Any) -> Reject:
            return Reject("too many")

    with pytest.raises(TypeError, match=r"the gate Rate has `beginn`, which nothing asks\. Did you mean `begin`"):
        TOOLS.with_gates(Rate())


@pytest.mark.parametrize("give", [lambda fn: Run(approver=fn), lambda fn: Toolkit(TOOLS, approver=fn)])
def test_an_approver_that_does_not_return_its_grant_is_refused(give: Give) -> None:
    async def ask(request: ApprovalRequest) -> Grant | None:
        request.grant("ann")

    async def tell(request: ApprovalRequest) -> None:
        len(request.text())

    give(tell)  # it says that somebody waits, and has no answer
    with pytest.raises(TypeError, match="the approver `ask` returns nothing"):
        give(ask)


def no_answer(value: Any) -> Any:
    raise LookupError(value)


def either(value: Any) -> Any:
    return value or None


def none_or_value(value: Any) -> Any:
    return None if value else value


def within(value: Any) -> Any:
    with value:
        return value


def at_last(value: Any) -> Any:
    try:
        return value()
    finally:
        len([])


async def later(value: Any) -> Any:
    async with value:
        return 0


def leave(value: Any) -> NoReturn:
    sys.exit(value)


def each(value: Any) -> Any:
    yield value


class Called:
    def __call__(self, value: Any) -> Any:
        return value


@pytest.mark.parametrize(
    "fn", [no_answer, either, none_or_value, within, at_last, later, leave, each, Called(), print, lambda value: None]
)
def test_a_function_that_may_return_something_is_taken(fn: Callable[..., Any]) -> None:
    require_result("delivery", fn, "the value")


OPEN = {
    "condition": "if x: return 1",
    "assignment": "if x: return 1\n  x['a'] = 2",
    "loop": "for y in x:\n    if y: return y",
    "while": "while x.a:\n    if x.b: return x",
    "match": "match x:\n    case 1: return 1\n    case [a]: return a",
    "elif": "if x is None: return 1\n  elif x == 3: return 2",
    "nested": "if x:\n    if x.a: return 1\n  elif x.b: return 2",
    "await": "if await x(): return 1",
    "async for": "async for y in x: return y",
    "chain": "if 1 < x < 3 and x or x.a: return 1",
    "assert": "if x: return 1\n  assert x is None",
    "del": "if x: return 1\n  del x",
}
"""Bodies with a path that ends without `return`."""
CLOSED = {
    "written": "if x: return\n  return 1",
    "written None": "if x: return None\n  return 1",
    "raise": "if x: return 1\n  raise ValueError",
    "call": "if x: return 1\n  x.fail()",
    "awaited call": "if x: return 1\n  await x.fail()",
    "else raise": "if x: return 1\n  elif x.a: return 2\n  else: raise KeyError",
    "while True": "while True:\n    if x(): return None\n    if x.a: return 1",
    "endless": "if x: return 1\n  while True: x()",
    "with": "with x:\n    if x.a: return None\n  return 1",
    "async with": "async with x:\n    if x.a: return\n  return await x",
    "finally": "try:\n    if x.a: return None\n  finally: x()\n  return 1",
    "except": "try: return x()\n  except ValueError: return None",
    "match": "match x:\n    case 1: return None\n    case [a, *_]: return\n    case _: return 2",
    "loop": "for y in x:\n    for z in y:\n      if z: return None\n  return 1",
    "async for": "async for y in x:\n    if y: return\n  return 1",
    "never": "if x: return 1\n  assert False",
    "one line": "if x: x.a = 1; return None\n  return 1",
    "inner": "def inner():\n    if x: return 1\n  return inner()",
    "conditional": "return None if x else 1",
    "or": "return x or None",
}
"""Bodies that say on each path what they return, or may never reach its end."""


def written(body: str, parameters: str = "x") -> Callable[..., Any]:
    found: dict[str, Any] = {}
    exec(f"async def fn({parameters}):\n  {body}", found)
    return found["fn"]


@pytest.mark.parametrize("body", OPEN.values(), ids=OPEN)
def test_a_path_that_ends_without_return_is_found(body: str) -> None:
    with pytest.raises(TypeError, match="the delivery `fn` returns nothing where it ends after line"):
        require_result("delivery", written(body), "the value", takes_none=False)


@pytest.mark.parametrize("body", CLOSED.values(), ids=CLOSED)
def test_paths_that_say_what_they_return_are_taken(body: str) -> None:
    require_result("delivery", written(body), "the value", takes_none=False)


def test_a_function_that_leaves_by_a_call_is_told_how_it_says_so() -> None:
    def stop(value: Any) -> Any:
        sys.exit(value)

    with pytest.raises(TypeError, match="or write `-> NoReturn` where it always raises"):
        require_result("delivery", stop, "the value")
    stop.__annotations__["return"] = "typing.NoReturn"
    require_result("delivery", stop, "the value")


def test_an_object_whose_call_never_returns_is_taken() -> None:
    class Stop:
        def __call__(self, value: Any) -> NoReturn:
            sys.exit(value)

    require_result("delivery", Stop(), "the value")


def test_a_path_that_ends_in_a_rewritten_assert_is_taken() -> None:
    def fn(value: Any) -> Any:
        if value:
            return value
        assert False, "never"  # noqa: B011, PT015 -- what is tested

    require_result("delivery", fn, "the value", takes_none=False)
