"""Rounds as JSON, from which another process goes on when a person has answered, perhaps days later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Self, cast

from toolcrib.calls import Outcome, StoredFields, Suspended, outcome_from_dict, versioned
from toolcrib.errors import InvalidOutput, RoundError
from toolcrib.formats import PROVIDERS, ProviderFormat, WireCall, WireReply, read_stored, stored
from toolcrib.pipeline import Call, Channel, Pipeline, Run, is_call
from toolcrib.rounds._call import DecodedCall, edited_arguments, readable_call, was_asked
from toolcrib.rounds._round_state import RoundState, pipeline_of, received
from toolcrib.rounds._tool_calls import ToolCalls
from toolcrib.tools import checked_output
from toolcrib.toolsets import ToolsetLike

_OLDEST = 4


class StoredRound:
    """The common part of a round and its plan, over the state that they share: its end, and its form as JSON."""

    def __init__(self, state: RoundState) -> None:
        self._state = state

    def discard(self) -> None:
        """Drop the assistant's turn; the records of calls that were not answered are closed as cancelled."""
        self._state.discard()

    def to_json(self) -> str:
        """Return the round as JSON, from which `from_json` goes on, in another process perhaps.

        It holds the real arguments, so it belongs in safe keeping and never in a log.

        Raises:
            RoundError: The round is over, or the input of a call was edited since its gates were asked.
            ResultNotSerializable: A tool's result has no JSON form; commit first.
        """
        return stored(_saved(self._state))

    @classmethod
    async def from_json(
        cls,
        tools: Pipeline | ToolsetLike,
        text: str | bytes,
        *,
        run: Run | None = None,
        format: ProviderFormat | None = None,
    ) -> Self:
        """Return the round, or plan, that `to_json` described.

        Hooks are not asked about a call a second time, and no tool is run a second time. Availability and approval of
        what is pending are asked again: a grant for one call alone does not come along. A call that was executed has
        its result. One that was executing is in doubt, unless its tool is idempotent: it is suspended, and its request
        says so.

        Args:
            tools: The toolset, or a pipeline of it; of tools that have changed, calls may become issues.
            text: The result of `to_json`.
            run: The run that goes on; what was counted in it before is added. One of the same id when None.
            format: The format that decoded the round, where that is not a provider's name.

        Raises:
            ValueError: The text is not a round, of another version, or in a format that is not known.
        """
        return cls(await _loaded(tools, read_stored(text), run, format))


def _saved(state: RoundState) -> dict[str, Any]:
    """Return a round as JSON shapes."""
    state.require_open()
    reply = state.reply
    data: dict[str, Any] = {
        "format": state.format.title,
        "reply": {
            "items": list(reply.items),
            "text": reply.text,
            "calls": list(map(asdict, reply.calls)),
            "stop": reply.stop,
            "problems": list(reply.problems),
            "stop_kind": reply.stop_kind,
            "unknown": list(map(asdict, reply.unknown)),
            "container": reply.container,
        },
        "strict": state.strict,
        "run": run_of(state.run),
        "calls": [_saved_call(call) for call in state.calls],
    }
    return versioned("ToolRound", data)


async def _loaded(
    tools: Pipeline | ToolsetLike, data: Mapping[str, Any], run: Run | None, format: ProviderFormat | None
) -> RoundState:
    """Return the round that `_saved` described, with availability and approval asked again; no hook is."""
    data = StoredFields("ToolRound", data)
    if data.version < _OLDEST:
        raise ValueError(f"a saved round has the version {_OLDEST} or a later one, and this has {data.version}")
    rules = cast("Mapping[str, ProviderFormat]", PROVIDERS).get(data["format"], format)
    if rules is None:
        raise ValueError(f"the round is in the format {data['format']!r}, which is not a provider's: give `format=`")
    sent = StoredFields("WireReply", data["reply"])
    reply = WireReply(
        items=tuple(sent["items"]),
        text=sent["text"],
        calls=tuple(WireCall(**call) for call in sent["calls"]),
        stop=sent["stop"],
        problems=tuple(sent["problems"]),
        stop_kind=sent["stop_kind"],
        unknown=tuple(WireCall(**data_of_call) for data_of_call in sent["unknown"]),
        container=sent.get("container", ""),
    )
    pipeline, run, strict = pipeline_of(tools), run_from(data["run"], run, "round"), data["strict"]
    reader = ToolCalls(pipeline.toolset, rules, strict=strict)
    calls = [
        received(wire, reader, reply, pipeline, run)
        if data_of_call is None
        else await _loaded_call(wire, pipeline, run, data_of_call)
        for wire, data_of_call in zip(reader.of(reply), data["calls"], strict=True)
    ]
    return RoundState(rules, reply, pipeline, run, strict=strict, calls=calls)


# --- the run


def run_of(run: Run) -> dict[str, Any]:
    """Return the counts of a run, and its available tools, as JSON shapes."""
    return {
        "id": run.id,
        "principal": run.principal,
        "available": None if run.available is None else sorted(run.available),
        **run.counted(),
    }


def run_from(data: Mapping[str, Any], run: Run | None, entry: str) -> Run:
    """Return the run that goes on: the one given or one of the same id, with nothing forgotten that was counted."""
    if run is None:
        run = Run(data["id"], principal=data["principal"], channel=Channel(entry=entry))
    run.run.restore(data)
    if run.available is None and data["available"] is not None:
        return run.view(available=frozenset(data["available"]))
    return run


# --- one call


def _saved_call(decoded: DecodedCall[Any]) -> dict[str, Any] | None:
    """Return a call as JSON shapes; None for one whose gates were not asked, which is read again from the reply."""
    if edited_arguments(decoded) is not None:
        raise RoundError((f"the input of `{decoded.name}` was edited; `apply_hooks()` before the round is saved",))
    if not was_asked(decoded):
        return None
    call, outcome = readable_call(decoded), decoded.outcome
    if outcome is None and call is not None and call.state == "closed":  # finished, and not committed
        outcome = call.outcome
    return {
        "call": None if call is None or isinstance(outcome, Suspended) else call.to_dict(),
        "outcome": None if outcome is None else outcome.to_dict(),
    }


async def _loaded_call(wire: WireCall, pipeline: Pipeline, run: Run, data: Mapping[str, Any]) -> DecodedCall[Any]:
    ended = None if data["outcome"] is None else outcome_from_dict(data["outcome"])
    state = ended.call if isinstance(ended, Suspended) else data["call"]
    if state is None:
        return DecodedCall(wire, pipeline, run, outcome=ended)
    restored: Call | Outcome = pipeline.restore(cast("Mapping[str, Any]", state), run)
    if not is_call(restored):  # the tool has gone or changed; a call that had ended stays as it was
        return DecodedCall(wire, pipeline, run, outcome=ended or restored)
    if ended is not None:
        return DecodedCall(wire, pipeline, run, restored, ended)
    recovered = await pipeline.recover(restored, run)
    if not is_call(recovered):
        return DecodedCall(wire, pipeline, run, restored, recovered)
    if recovered.state == "executed" and recovered.error is None:
        pipeline.executed(recovered, _as_declared(recovered))
    return DecodedCall(wire, pipeline, run, recovered)


def _as_declared(call: Call) -> Any:
    try:
        return checked_output(call.tool, call.name, call.value)
    except InvalidOutput:  # the tool returned what it does not declare, and post hooks may know what to do with it
        return call.value
