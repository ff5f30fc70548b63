"""Arguments that two types could take: read alike over every way in, and back from JSON as what was seen."""

from __future__ import annotations

import json
import re
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Strict

from toolcrib.calls import Completed, Failed, Suspended, ToolCall
from toolcrib.code import Toolkit
from toolcrib.pipeline import Pipeline, Run
from toolcrib.rounds import decode
from toolcrib.testing import wire_reply
from toolcrib.tools import Tool, ez_tool
from toolcrib.tools.from_schema import schema_tool
from toolcrib.toolsets import Toolset


class Window(BaseModel):
    start: int = 0


class Trip(BaseModel):
    model_config = ConfigDict(strict=True)

    day: date
    stops: tuple[str, ...]


MODELS = [
    (Annotated[date, Strict()], "2026-12-24", date(2026, 12, 24)),
    (Trip, {"day": "2026-12-24", "stops": ["a"]}, Trip(day=date(2026, 12, 24), stops=("a",))),
    (date | str, "2026-12-24", date(2026, 12, 24)),
    (date | str, "soon", "soon"),
    (Path | str, "a//b", Path("a/b")),
    (UUID | str, "00000000-0000-0000-0000-000000000005", UUID(int=5)),
    (bytes, "aa", b"aa"),
    (list[date | str], ["2026-12-24", "soon"], [date(2026, 12, 24), "soon"]),
]
HOSTS = [
    (date | str, "2026-12-24"),
    (date | str, date(2026, 12, 24)),
    (datetime | str, "2026"),
    (Path | str, "a//b"),
    (date | Decimal, Decimal(20)),
    (Window | dict[str, int], {"a": 1}),
    (Any, "2026-12-24"),
]
CHANGED = [
    (Any, b"\xff"),
    (Any, {1: 2}),
    (dict, {1: 2}),
    (list, [(1, 2)]),
    (object, {1}),
    (re.Pattern, re.compile("a", re.IGNORECASE)),
    (datetime, datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=5, seconds=30)))),
]


def noting(kind: Any, **options: Any) -> tuple[Tool[..., Any], list[Any]]:
    seen: list[Any] = []

    async def note(what, title="") -> str:  # type: ignore[no-untyped-def]
        seen.append(what)
        return "ok"

    note.__annotations__ = {"what": kind, "title": options.pop("title", str), "return": str}
    return ez_tool(**options)(note), seen


@pytest.mark.processes
@pytest.mark.parametrize(("kind", "given", "expected"), MODELS)
async def test_text_and_objects_of_a_model_are_read_alike(kind: Any, given: Any, expected: Any) -> None:
    tool, seen = noting(kind)
    call = ToolCall("note", {"what": given}, "c")
    for form in ("openai", "anthropic", "gemini"):
        plan = await decode([tool], wire_reply(form, [call])).apply_hooks()
        await plan.run_pending()
    await Pipeline([tool]).run(call)
    await Pipeline([tool]).run(ToolCall("note", json.dumps({"what": given})))
    await Toolkit([tool]).execute_async(f"note(what={given!r})")

    assert seen == [expected] * 6
    assert {type(value) for value in seen} == {type(expected)}


@pytest.mark.parametrize("kind", [str, Any, dict[str, Any], list[str]])
@pytest.mark.parametrize("given", ["\ud83d", {"text": "\ud83d"}, {"\ud83d": 1}, ["\ud83d"]])
async def test_half_a_character_reaches_no_tool(kind: Any, given: Any) -> None:
    tool, seen = noting(kind)
    of_schema = schema_tool("note", {"type": "object", "properties": {"what": {}}}, lambda what: seen.append(what))
    for one in (tool, of_schema):
        values = {"what": given}
        for arguments in (values, json.dumps(values), json.dumps(values, ensure_ascii=False)):
            failed = await Pipeline([one]).run(ToolCall("note", arguments))
            assert isinstance(failed, Failed)
            assert failed.code == "invalid_arguments"
    assert seen == []


async def again(tool: Tool[..., Any], call: ToolCall) -> Any:
    """Return what a call comes to that is suspended, stored as JSON and approved."""
    suspended = await Pipeline([tool]).run(call)
    assert isinstance(suspended, Suspended)
    stored = json.loads(json.dumps(suspended.to_dict()))["call"]
    return await Pipeline([tool]).run(stored, Run(), grant=suspended.request.grant("ann"))


@pytest.mark.parametrize(("kind", "given", "expected"), MODELS)
async def test_a_yes_runs_what_a_model_asked_for(kind: Any, given: Any, expected: Any) -> None:
    tool, seen = noting(kind, requires_approval=True)

    assert isinstance(await again(tool, ToolCall("note", {"what": given})), Completed)
    assert seen == [expected]


@pytest.mark.parametrize(("kind", "given"), HOSTS)
async def test_a_yes_runs_what_a_host_gave(kind: Any, given: Any) -> None:
    tool, seen = noting(kind, requires_approval=True)

    assert isinstance(await again(tool, ToolCall("note", {"what": given}, origin="host")), Completed)
    assert (seen, type(seen[0])) == ([given], type(given))


@pytest.mark.parametrize(("kind", "given"), CHANGED)
async def test_what_json_would_change_does_not_run_after_it(kind: Any, given: Any) -> None:
    tool, seen = noting(kind, requires_approval=True)

    failed = await again(tool, ToolCall("note", {"what": given}, origin="host"))

    assert isinstance(failed, Failed)
    assert (
        "`note` cannot take these arguments: what: its value is another one when it is read from JSON" in failed.message
    )
    assert seen == []


@pytest.mark.parametrize("title", [str, Annotated[str, AfterValidator(str.upper)]])
@pytest.mark.parametrize("origin", ["model", "host"])
@pytest.mark.parametrize("kind", [kind for kind, _ in HOSTS if kind != date | Decimal])
async def test_an_edit_of_one_argument_leaves_the_others(kind: Any, origin: Any, title: Any) -> None:
    given = {"a": 1} if kind == Window | dict[str, int] else "2026-12-24"
    call = ToolCall("note", {"what": given}, origin=origin)
    tool, seen = noting(kind, title=title)
    asking, approved = noting(kind, title=title, requires_approval=True)

    async def edit(_: Any, args: dict[str, Any], __: Any) -> dict[str, Any]:
        return {**args, "title": "x"}

    await Pipeline([tool]).run(call)
    await Pipeline(Toolset([tool], pre_hooks={"note": edit})).run(call)
    suspended = await Pipeline([asking]).run(call, Run())
    assert isinstance(suspended, Suspended)
    grant = suspended.request.grant("ann", override_args={**suspended.request.arguments, "title": "x"})
    await Pipeline([asking]).run(suspended, Run(), grant=grant)

    assert seen == [seen[0]] * 2
    if origin == "model" or title is not str:
        assert approved == [seen[0]]
