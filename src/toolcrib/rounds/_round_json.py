"""A round as JSON, so that another process takes it up: days later perhaps, when a person has answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from toolcrib.calls import Suspended, jsonable, outcome_from_dict, revived
from toolcrib.errors import InvalidOutput, ModelRetry, RoundError
from toolcrib.formats import PROVIDERS, ProviderFormat, WireCall, WireReply
from toolcrib.pipeline import Pipeline, Run, is_call
from toolcrib.rounds._pipelines import pipeline_of
from toolcrib.rounds._results import checked_output
from toolcrib.rounds._round_call import Desk, Result, Work
from toolcrib.rounds._state import RoundState
from toolcrib.toolsets import ToolsetLike

__all__ = ["loaded", "run_from", "run_of", "saved"]

_VERSION = 1


def saved(paper: RoundState) -> dict[str, Any]:
    """Return a round as JSON shapes; they hold the real arguments, so they belong in safe keeping.

    Raises:
        RoundError: It was committed or discarded, or a call was edited since its gates were asked.
        ResultNotSerializable: What a tool returned has no JSON form.
    """
    paper.open()
    reply, desk = paper.reply, paper.works[0].desk if paper.works else None
    calls = [{"id": c.id, "name": c.name, "arguments": c.arguments, "kind": c.kind} for c in reply.calls]
    return {
        "version": _VERSION,
        "format": paper.format.title,
        "reply": {
            "items": list(reply.items),
            "text": reply.text,
            "calls": calls,
            "stop": reply.stop,
            "problems": list(reply.problems),
        },
        "strict": desk is not None and desk.strict,
        "run": None if desk is None else run_of(desk.run),
        "works": [_saved_work(work) for work in paper.works],
    }


async def loaded(
    tools: Pipeline | ToolsetLike, data: Mapping[str, Any], run: Run | None, format: ProviderFormat | None
) -> RoundState:
    """Return the round that `saved` described, with availability and approval asked again; no hook is.

    Raises:
        ValueError: It is none, of another version, or in a format that is not known.
    """
    if data.get("version") != _VERSION:
        raise ValueError(f"a saved round has the version {_VERSION}, and this has {data.get('version')!r}")
    rules = cast("Mapping[str, ProviderFormat]", PROVIDERS).get(data["format"], format)
    if rules is None:
        raise ValueError(f"the round is in the format {data['format']!r}, which is no provider's: give `format=`")
    told = data["reply"]
    reply = WireReply(
        items=tuple(told["items"]),
        text=told["text"],
        calls=tuple(WireCall(**call) for call in told["calls"]),
        stop=told["stop"],
        problems=tuple(told["problems"]),
    )
    run = run_from(data["run"], run, "round")
    desk = Desk(pipeline_of(tools), run, data["strict"])
    works = [await _loaded_work(desk, call, one) for call, one in zip(reply.calls, data["works"], strict=True)]
    return RoundState(rules, reply, tuple(works))


# --- the run


def run_of(run: Run) -> dict[str, Any]:
    """Return what was counted in a run, and what may be called in it, as JSON shapes."""
    return {
        "id": run.id,
        "principal": run.principal,
        "available": None if run.available is None else sorted(run.available),
        **run.counted(),
    }


def run_from(data: Mapping[str, Any] | None, run: Run | None, door: str) -> Run:
    """Return the run that goes on: the one given or one of the same id, with nothing forgotten that was counted."""
    told = data or {}
    if run is None:
        named = {"id": told["id"], "principal": told["principal"]} if told else {}
        run = Run(entry=door, **named)
    run.run.restore(told)
    if run.available is None and told.get("available") is not None:
        return run.view(available=frozenset(told["available"]))
    return run


# --- one call


def _saved_work(work: Work) -> dict[str, Any]:
    if not work.asked:
        return {"asked": False}
    pending = work.outcome is None and not work.begun
    if pending and work.edited() is not None:
        raise RoundError((f"the input of `{work.wire.name}` was edited; `apply_hooks()` before the round is saved",))
    state = None if work.prepared is None or isinstance(work.outcome, Suspended) else work.prepared.to_dict()
    return {
        "asked": True,
        "begun": work.begun,
        "prepared": state,
        "outcome": None if work.outcome is None else work.outcome.to_dict(),
        "performed": None if work.performed is None else _saved_result(work, work.performed),
    }


def _saved_result(work: Work, performed: Result) -> dict[str, Any]:
    if performed.error is not None:
        return {"error": type(performed.error).__name__, "message": str(performed.error)}
    return {"value": jsonable(performed.value, work.wire.name, media=True)}


async def _loaded_work(desk: Desk, call: WireCall, data: Mapping[str, Any]) -> Work:
    work = Work(desk, call)
    if not data["asked"]:
        return work
    work.asked, work.begun = True, data["begun"]
    outcome = None if data["outcome"] is None else outcome_from_dict(data["outcome"])
    state = outcome.call if isinstance(outcome, Suspended) else data["prepared"]
    made = None if state is None else desk.pipeline.restore(cast("Mapping[str, Any]", state), desk.run)
    if made is not None and is_call(made):
        work.prepared = made
    work.outcome = outcome if outcome is not None or (made is not None and is_call(made)) else made
    if work.outcome is None and (made is not None and is_call(made)):
        await work.readmit()
    if data["performed"] is not None and work.outcome is None:
        work.performed = _loaded_result(work, data["performed"])
    return work


def _loaded_result(work: Work, data: Mapping[str, Any]) -> Result:
    if "error" not in data:
        return Result(_as_declared(work, revived(data["value"])))
    kind = ModelRetry if data["error"] == ModelRetry.__name__ else type(data["error"], (Exception,), {})
    return Result(None, kind(data["message"]))


def _as_declared(work: Work, value: Any) -> Any:
    try:
        return checked_output(work.ready.tool, work.wire.name, value)
    except InvalidOutput:  # the tool returned what it does not declare, and post hooks may know what to do with it
        return value
