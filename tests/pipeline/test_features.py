"""Features of a run: what they register, what they read and before whom, and what they keep for runs and calls."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from toolcrib import Toolkit
from toolcrib.calls import Ask, Complete, Completed, Failed, Outcome, Reject, Suspended, ToolCall
from toolcrib.hooks import DeliveryStep, FeatureParts, FeatureState, GateStep, HookSet, InputOrigin, ModelInput
from toolcrib.pipeline import Call, Channel, Pipeline, Run
from toolcrib.record import ListSink
from toolcrib.rounds import recall_transcript
from toolcrib.schema import RunContext
from toolcrib.testing import ScriptedClient
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

ASKED: tuple[Mapping[str, str], ...] = ({"path": "text", "value": "hello", "kind": "untrusted", "why": "is new"},)


class Notebook(FeatureState):
    """State of a feature that notes what it is given."""

    def __init__(self) -> None:
        self.seen: list[tuple[InputOrigin, Any]] = []
        self.approved: list[tuple[str, Sequence[Mapping[str, str]]]] = []
        self.restored: list[tuple[Mapping[str, Any], bool]] = []

    def read_input(self, given: ModelInput, run: Any) -> None:
        self.seen.append((given.origin, given.value))

    def approve(self, call: Any, origins: Sequence[Mapping[str, str]]) -> None:
        self.approved.append((call.id, origins))

    def describe(self, call: Any) -> Mapping[str, Any]:
        return {"pages": len(self.seen)}

    def to_dict(self) -> Mapping[str, Any]:
        return {"pages": len(self.seen)} if self.seen else {}

    def restore(self, data: Mapping[str, Any], *, is_same_run: bool) -> None:
        self.restored.append((data, is_same_run))


class Notes:
    """A feature of a user: it asks about each text that it has not seen, and marks what goes out."""

    def __init__(self, name: str = "notes", *, asks: bool = False) -> None:
        self.name, self.asks, self.opened = name, asks, 0
        self.gate = GateStep(name, "authorize", self.check)

    def register(self) -> FeatureParts:
        delivery = DeliveryStep(self.name, lambda call, value: f"<{value}>")
        return FeatureParts(self.name, self.open, (self.gate,), (delivery,))

    def open(self, run: Run) -> FeatureState:
        self.opened += 1
        return Notebook()

    def check(self, call: Call) -> Any:
        return Ask("it is new", origins=ASKED) if self.asks and not call.asked_origins(self.name) else None


def notebook(run: Run, name: str = "notes") -> Notebook:
    state = run.feature(name)
    assert isinstance(state, Notebook)
    return state


@ez_tool
async def send(text: str = "hello") -> str:
    """Send a text."""
    if text == "fail":
        raise ValueError("no line")
    return text


@ez_tool
async def count() -> AsyncIterator[int]:
    """Count."""
    yield 1
    yield 2


@ez_tool
async def ask(ctx: RunContext[Any]) -> str:
    """Ask the model of the client."""
    return (await ctx.sample("why?")).text


def hooks(decision: Any) -> HookSet:
    given = HookSet()

    async def decide(call: Any, input: Any) -> Any:
        return decision

    given.register(decide)
    return given


# --- what it registers


async def test_gate_and_delivery_of_a_feature_stand_around_the_calls_of_its_run() -> None:
    run = Run(features=[Notes(asks=True)])

    lines = Pipeline([send]).explain("send", run).splitlines()

    assert [line.split()[-1] for line in lines if "notes" in line] == ["notes", "notes"]
    assert isinstance(await Pipeline([send]).run(ToolCall("send"), run), Suspended)
    assert isinstance(await Pipeline([send]).run(ToolCall("send"), Run()), Completed)


async def test_the_state_of_a_run_is_made_once_and_shared_by_its_views() -> None:
    feature = Notes()
    run = Run(features=[feature])
    assert feature.opened == 0

    await Pipeline([send]).run(ToolCall("send"), run.view(principal="ann"))
    await Pipeline([send]).run(ToolCall("send"), run)

    assert feature.opened == 1
    assert len(notebook(run).seen) == 2
    assert Run().feature("notes") is None


@pytest.mark.parametrize(
    ("features", "error", "mend"),
    [
        (Notes(), TypeError, "features must be a list of them"),
        (Notes, TypeError, "features must be a list of them"),
        ([Notes], TypeError, "give features"),
        (["notes"], TypeError, "give features"),
        ([Notes(), Notes()], ValueError, "has notes twice"),
    ],
)
def test_what_is_not_a_feature_is_refused_when_the_run_is_made(features: Any, error: type, mend: str) -> None:
    with pytest.raises(error, match=f"Run: {mend}" if error is TypeError and "list" in mend else mend):
        Run(features=features)


# --- what it reads


@pytest.mark.parametrize(
    ("call", "given", "read"),
    [
        (ToolCall("send"), None, [("result", "<hello>")]),
        (ToolCall("send", {"text": "fail"}), None, [("error", "no line")]),
        (ToolCall("send"), hooks(Complete("from a hook")), [("hook", "<from a hook>")]),
        (ToolCall("send"), hooks(Reject("not today")), [("refusal", "not today")]),
        (ToolCall("send", {"text": 1}), None, [("refusal", "text")]),
        (ToolCall("count"), None, [("result", ["<1>", "<2>"])]),
        (ToolCall("sent"), None, [("refusal", "there is no tool `sent`")]),
    ],
    ids=["result", "error", "hook", "rejected", "invalid", "stream", "unknown"],
)
async def test_a_feature_reads_what_every_outcome_says(
    call: ToolCall, given: HookSet | None, read: list[tuple[str, Any]]
) -> None:
    run = Run(features=[Notes()])

    await Pipeline([send, count], hooks=given).run(call, run)

    assert [origin for origin, _ in notebook(run).seen] == [origin for origin, _ in read]
    for (_, value), (_, expected) in zip(notebook(run).seen, read, strict=True):
        assert value == expected or expected in value


async def test_a_feature_reads_why_a_stored_call_is_not_taken_up() -> None:
    suspended = await Pipeline([send]).run(ToolCall("send"), Run(features=[Notes(asks=True)]))
    assert isinstance(suspended, Suspended)
    state: dict[str, Any] = suspended.to_dict()["call"]
    changed, gone = Run(features=[Notes()]), Run(features=[Notes()])

    Pipeline([send]).restore({**state, "arguments": {"text": 1}, "given": None}, changed)
    await Pipeline([count]).recover(state, gone)

    assert [[origin for origin, _ in notebook(run).seen] for run in (changed, gone)] == [["refusal"], ["refusal"]]


async def test_a_feature_reads_each_value_of_a_stream_before_it_is_given_on() -> None:
    run = Run(features=[Notes()])

    read = [[*notebook(run).seen] async for _ in Pipeline([count]).stream(ToolCall("count"), run)]

    assert read == [
        [("value", "<1>")],
        [("value", "<1>"), ("value", "<2>")],
        [("value", "<1>"), ("value", "<2>"), ("result", ["<1>", "<2>"])],
    ]


async def test_a_feature_reads_what_the_user_says_and_what_a_client_answers() -> None:
    run = Run(features=[Notes()], channel=Channel(client=ScriptedClient(texts=["because"])))

    run.add_user_message("ask it")
    await Pipeline([ask]).run(ToolCall("ask"), run)

    (said, answered, result) = notebook(run).seen
    assert said == ("user", "ask it")
    assert answered[0] == "client"
    assert "because" in str(answered[1])
    assert result == ("result", "<because>")


# --- what it keeps


async def suspended(run: Run) -> Suspended:
    outcome: Outcome = await Pipeline([send]).run(ToolCall("send", id="c1"), run)
    assert isinstance(outcome, Suspended)
    return outcome


@pytest.mark.parametrize("in_json", [False, True])
async def test_what_a_gate_asks_about_is_shown_kept_with_the_call_and_given_back_when_approved(in_json: bool) -> None:
    run = Run(features=[Notes(asks=True)])
    asked = await suspended(run)
    stored = json.loads(json.dumps(asked.call.to_dict())) if in_json else asked
    assert asked.request.origins == ASKED
    assert asked.request.values_alone

    outcome = await Pipeline([send]).run(stored, run, grant=asked.request.grant())

    assert isinstance(outcome, Completed)
    assert notebook(run).approved == [("c1", ASKED)]


async def test_what_is_denied_is_not_approved() -> None:
    run = Run(features=[Notes(asks=True)])
    asked = await suspended(run)

    await Pipeline([send]).run(asked, run, grant=asked.request.deny(message="no"))

    assert notebook(run).approved == []


@pytest.mark.parametrize("is_same_run", [True, False])
async def test_the_state_goes_to_the_json_of_its_run_and_back(is_same_run: bool) -> None:
    run = Run(features=[Notes()])
    await Pipeline([send]).run(ToolCall("send"), run)
    counted = json.loads(json.dumps(run.counted()))

    again = Run(run.id if is_same_run else "", features=[Notes()])
    again.restore(counted)

    assert notebook(again).restored == [({"pages": 1}, is_same_run)]


async def test_a_run_without_the_feature_passes_its_state_on() -> None:
    run = Run(features=[Notes()])
    await Pipeline([send]).run(ToolCall("send"), run)
    between, last = Run(), Run(features=[Notes()])

    between.restore(run.counted())
    last.restore(between.counted())

    assert notebook(last).restored == [({"pages": 1}, False)]


async def test_the_record_has_what_a_feature_says_of_a_call_that_arrives() -> None:
    sink = ListSink()
    run = Run(features=[Notes()], sinks=[sink])

    await Pipeline([send]).run(ToolCall("send"), run)

    [came] = [event.data["came"] for event in sink.events if event.kind == "received"]
    assert came["pages"] == 0


# --- a gate that suspends calls by a request of its own


class Elsewhere(Notes):
    """A feature whose gate waits for something outside, and takes no yes for it."""

    def __init__(self) -> None:
        super().__init__()
        self.done, self.given = False, list[Any]()
        self.gate = GateStep("elsewhere", "authorize", self.check, frozenset({"new"}), resume=self.resume)

    def check(self, call: Call) -> Any:
        return None if self.done else call.suspend(call.request_about("ask_1", "confirm the mail"))

    async def resume(self, call: Call, given: Any) -> Any:
        self.given.append(given)
        return self.check(call)


@pytest.mark.parametrize("in_json", [False, True])
async def test_a_gate_takes_up_the_call_that_it_suspended(in_json: bool) -> None:
    feature = Elsewhere()
    run = Run(features=[feature])
    asked = await suspended(run)
    stored = json.loads(json.dumps(asked.call.to_dict())) if in_json else asked
    grant = asked.request.grant()

    again = await Pipeline([send]).run(stored, run, grant=grant)
    feature.done = True
    outcome = await Pipeline([send]).run(stored, run)

    assert isinstance(again, Suspended)
    assert isinstance(outcome, Completed)
    assert feature.given == [grant, None]


async def test_a_call_whose_gate_is_gone_does_not_run() -> None:
    asked = await suspended(Run(features=[Elsewhere()]))

    outcome = await Pipeline([send]).run(asked, Run(), grant=asked.request.grant())

    assert isinstance(outcome, Failed)
    assert "the gate `elsewhere` that it waits for no longer exists" in outcome.message


@pytest.mark.processes
async def test_a_feature_reads_a_program_before_the_results_of_its_calls() -> None:
    run = Run(features=[Notes()])

    await Toolkit([send]).execute_async("send('hello')", run)

    (origin, _), *read = notebook(run).seen
    assert origin == "tools"
    assert read == [("program", "send('hello')"), ("result", "<hello>")]


class Programs(Notes):
    """A feature that asks about each program before it begins."""

    def open(self, run: Run) -> FeatureState:
        class State(Notebook):
            async def asks_about_program(self, code: str) -> bool:
                return "send" in code

        return State()


async def test_a_feature_asks_about_a_program_before_it_begins() -> None:
    run = Run(features=[Programs(asks=True)])

    result = await Toolkit([send]).execute_async("send('hello')", run)

    assert [request.arguments for request in result.suspended] == [{"code": "send('hello')"}]
    assert [origin for origin, _ in notebook(run).seen] == ["tools"]


def test_a_feature_reads_a_transcript() -> None:
    run, tools = Run(features=[Notes()]), Toolset([send])
    call = {"id": "1", "type": "function", "function": {"name": "send", "arguments": "{}"}}
    transcript = [
        {"role": "assistant", "content": "Hello.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "sent"},
        {"role": "user", "content": "Thanks."},
    ]

    recall_transcript(run, tools, transcript)

    read = [("tools", tools), ("transcript", None), ("restored", "sent"), ("model", None), ("user", "Thanks.")]
    assert notebook(run).seen == read
