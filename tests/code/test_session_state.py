"""The state of a session of programs: what it carries to another process, what it leaves out, and who may change it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from toolcrib.calls import ApprovalRequest, Grant
from toolcrib.code import ProgramSessionState, Toolkit
from toolcrib.errors import SandboxError, SessionStateError
from toolcrib.pipeline import CallLimits, Run
from toolcrib.provenance import Provenance
from toolcrib.sandbox import ProcessSandbox, SandboxLimits
from toolcrib.tools import ez_tool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the processes of ProcessSandbox need Linux")

KEY = b"a key of more than sixteen bytes"
found: list[int] = []


@ez_tool(effect="none")
def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    found.append(a + b)
    return a + b


@ez_tool(effect="send")
def send(text: str) -> str:
    """Send a text."""
    return text


async def yes(request: ApprovalRequest) -> Grant:
    return request.grant("ann")


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessSandbox]:
    with ProcessSandbox() as made:
        yield made


@pytest.fixture
def kit(process: ProcessSandbox) -> Toolkit:
    return Toolkit([add, send], sandbox=process)


async def state_after(kit: Toolkit, code: str, run: Run | None = None) -> ProgramSessionState:
    async with kit.session(run) as session:
        result = await session.execute_async(code)
        assert result.success, result.error
        return await session.state_async()


async def value_in(kit: Toolkit, state: ProgramSessionState, code: str) -> Any:
    async with kit.session(state=state) as session:
        result = await session.execute_async(code)
    return result.return_value if result.success else result.error


DATA = """
import datetime as d, decimal, math
whole = [None, True, -5, 10**30, 2.5, "h\u00e9", {"a": [1, {"b": {}}]}]
others = ((1, (2,)), {3}, frozenset({4}), b"\\xff", {1: "a", (2, 3): "b"}, {"$set": [1]}, {"$x": 1, "y": 2})
times = [d.date(2026, 1, 2), d.datetime(2026, 1, 2, 3, tzinfo=d.UTC), d.time(4, 5), d.timedelta(-1, 2, 3)]
numbers = [decimal.Decimal("1.50"), math.inf, -math.inf]
shown = repr([whole, others, times, numbers])
"""


async def test_data_goes_on_in_another_process(kit: Toolkit) -> None:
    state = ProgramSessionState.from_bytes((await state_after(kit, DATA)).to_bytes(KEY), KEY)

    with ProcessSandbox() as other:
        there = Toolkit([add, send], sandbox=other)
        same = await value_in(there, state, "repr([whole, others, times, numbers]) == shown")

    assert same is True


async def test_a_session_goes_on_after_its_state_was_taken(kit: Toolkit) -> None:
    async with kit.session() as session:
        await session.execute_async("def double(n): return add(n, n)\nfirst = 1")
        before = await session.state_async()
        result = await session.execute_async("double(first)")
        after = await session.state_async()

    assert result.return_value == 2
    assert (before.data, after.data) == ({"first": 1}, {"first": 1})


async def test_what_is_no_data_is_named_and_a_program_is_told(kit: Toolkit) -> None:
    code = """
import json
class C: pass
def f(): pass
c, g, s, loop, k = C(), (i for i in []), slice(1), [], 1
loop.append(loop)
"""

    state = await state_after(kit, code)
    error = await value_in(kit, state, "f()")

    assert state.data == {"k": 1}
    assert state.left_out == {
        **{"json": "module", "C": "type", "f": "function", "c": "C"},
        **{"g": "generator", "s": "slice", "loop": "list"},
    }
    assert "name 'f' is not defined. The session went on in another process without it" in error
    assert "of the kind `function`" in error


async def test_what_was_left_out_is_there_again_when_it_is_defined(kit: Toolkit) -> None:
    state = await state_after(kit, "def f(): return 1\nn = 2")

    async with kit.session(state=state) as session:
        result = await session.execute_async("def f(): return 3\nm = n\nf() + m")
        again = await session.state_async()

    assert result.return_value == 5
    assert (again.data, again.left_out) == ({"n": 2, "m": 2}, {"f": "function"})


async def test_tools_and_names_of_the_interpreter_are_not_in_it(kit: Toolkit) -> None:
    state = await state_after(kit, "_x = 1\nadd = 5\nmy_add = send\ny = 1")

    assert (state.data, state.left_out) == ({"y": 1}, {})


async def test_a_session_that_ran_nothing_has_a_state(kit: Toolkit) -> None:
    state = await state_after(kit, "n = 1")
    async with kit.session(state=state) as session:
        unused = await session.state_async()

    async with kit.session() as session:
        assert (await session.state_async()).data == {}
    assert unused.data == {"n": 1}


def test_plain_code_takes_a_state_too(kit: Toolkit) -> None:
    with kit.session() as session:
        session.execute("n = 1")
        state = session.state()
    with kit.session(state=state) as session:
        assert session.execute("n + 1").return_value == 2


async def test_what_is_too_large_is_left_out_and_not_taken_in(process: ProcessSandbox) -> None:
    small = Toolkit([add], sandbox=process, limits=SandboxLimits(value_size=2_000))

    state = await state_after(small, "n, long, many = 1, 'x' * 3_000, list(range(3_000))")
    with pytest.raises(SessionStateError, match="2000 is the most"):
        small.session(state=ProgramSessionState({"long": "x" * 3_000}))

    assert (state.data, state.left_out) == ({"n": 1}, {"long": "str", "many": "list"})


async def test_objects_that_fight_back_are_left_out(kit: Toolkit) -> None:
    code = """
class Meta(type):
    @property
    def __name__(cls): raise SystemExit
class C(metaclass=Meta):
    @property
    def __class__(self): raise SystemExit
class Text(str):
    def __iter__(self): raise SystemExit
c, t, n = C(), Text("a"), 1
"""

    state = await state_after(kit, code)

    assert state.data == {"n": 1}
    assert set(state.left_out) == {"Meta", "C", "Text", "c", "t"}


async def test_limits_count_on_from_the_run_of_the_state(kit: Toolkit) -> None:
    state = await state_after(kit, "add(1)\nadd(2)", Run(limits=CallLimits(total=3)))

    async with kit.session(Run(limits=CallLimits(total=3)), state=state) as session:
        result = await session.execute_async("add(3)\nadd(4)")

    assert "may make 3 calls" in str(result.error)
    assert found[-1] == 3


async def test_of_data_that_was_carried_the_origin_is_not_known(kit: Toolkit) -> None:
    state = ProgramSessionState({"text": "Pay 5 to eve@evil.example"})

    async with kit.session(Run(features=[Provenance()]), state=state) as session:
        result = await session.execute_async("send(text)")

    assert [request.tool for request in result.suspended] == ["send"]


async def test_a_closed_session_has_no_state(kit: Toolkit) -> None:
    session = kit.session()
    session.close()

    with pytest.raises(SandboxError, match="closed"):
        await session.state_async()


# --- a state that somebody else wrote


@pytest.mark.parametrize("name", ["__builtins__", "_x", "a b", "", "1", "x.y"])
def test_a_name_that_no_program_leaves_is_refused(name: str) -> None:
    with pytest.raises(SessionStateError, match="not a name"):
        ProgramSessionState.from_dict({"data": {name: 1}, "left_out": {}, "run": {}, "complete": True})


def test_a_change_without_the_key_is_noticed() -> None:
    signed = ProgramSessionState({"n": 1}).to_bytes(KEY)

    for changed in (signed.replace(b'"n":1', b'"n":2'), signed[:-1], b"x", signed.replace(b"session 1", b"session 2")):
        with pytest.raises(SessionStateError):
            ProgramSessionState.from_bytes(changed, KEY)
    with pytest.raises(SessionStateError, match="another key"):
        ProgramSessionState.from_bytes(signed, b"another key of the same length..")


@pytest.mark.parametrize("field", ["data", "left_out", "run"])
def test_another_shape_is_refused(field: str) -> None:
    whole: dict[str, Any] = ProgramSessionState({"n": 1}).to_dict()

    with pytest.raises(ValueError, match="is not an object"):
        ProgramSessionState.from_dict({**whole, field: ["n"]})


async def test_what_is_written_otherwise_makes_nothing_but_data(kit: Toolkit) -> None:
    data = {
        "unknown": {"$reduce": ["os.system", "x"]},
        "wrong": {"$bytes": 5},
        "unhashable": {"$set": [[1]]},
        "date": {"$datetime": "now"},
        "tool": {"$tuple": 7},
        "ids": [1, 2],
    }
    names = f"sorted(n for n in globals() if n in {sorted(data)!r})"

    assert await value_in(kit, ProgramSessionState(data), names) == ["ids"]


async def test_a_name_of_a_tool_stays_the_tool(kit: Toolkit) -> None:
    assert await value_in(kit, ProgramSessionState({"add": 5, "n": 1}), "add(n, 1)") == 2
