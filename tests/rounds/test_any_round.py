"""Whatever a model replies and a host does, no transcript is committed that its provider refuses."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.rounds.replies import FORMATS, ReadFile, WebSearch
from toolcrib.calls import Ask, Complete, Reject, RunNormally, ToolCall
from toolcrib.errors import CommitError, RoundError
from toolcrib.formats import PROVIDERS
from toolcrib.hooks import HookSet
from toolcrib.rounds import ToolResult, ToolRound, ToolRoundPlan, Transcript, WireFormat, decode
from toolcrib.testing import wire_reply
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset, off, use

EXAMPLES = int(os.environ.get("TOOLCRIB_ROUNDS", "25"))  # conversations for each provider; `make fuzz` asks for many


@ez_tool
async def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    if b == 0:
        raise ValueError("nothing to add")
    return a + b


@ez_tool(requires_approval=True)
async def wipe(path: str) -> str:
    """Remove a file."""
    return path


class Tools(Toolset):
    add = use(add)
    wipe = use(wipe)
    web_search = use(WebSearch)
    read_file = off(ReadFile)


IDS = st.sampled_from(["a", "b", "c", "d", "", "long-" * 12, "abcdefghi"])
NAMES = st.sampled_from(["add", "add", "wipe", "web_search", "read_file", "nope", ""])
ARGUMENTS = st.sampled_from(
    ['{"a": 1}', '{"a": 1, "b": 0}', '{"path": "/a"}', '{"query": "x"}', '{"a": "x"}', '{"a": 1', "", "null", "[]", "7"]
)
CALLS = st.lists(st.builds(ToolCall, NAMES, ARGUMENTS, IDS), max_size=4)
DECISIONS = st.sampled_from([None, Complete("done"), Reject("no"), Ask("sure?"), "nonsense"])
ANSWERS = st.lists(
    st.sampled_from(["complete", "fail", "reject", "run", "skip", "twice", "stray", "issue"]), min_size=1, max_size=4
)


class Conversation(RuleBasedStateMachine):
    """A transcript, to which rounds are committed in whatever way a host may come upon."""

    format: WireFormat = "openai"

    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.transcript = Transcript(PROVIDERS[self.format].user("go"), self.format)
        self.round: ToolRound | None = None
        self.plan: ToolRoundPlan | None = None

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.loop.close()

    @rule(calls=CALLS, text=st.sampled_from(["", "Well."]), known=st.booleans(), cut=st.booleans())
    def reply(self, calls: list[ToolCall], text: str, known: bool, cut: bool) -> None:
        made = wire_reply(self.format, calls, text or ("" if calls else "Hm."))
        if cut and self.format == "openai":
            made = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": _delta(made)}]}
        seen = self.transcript if known else ()
        self.round = decode(Tools, [made] if cut and self.format == "openai" else made, transcript=seen)
        self.plan = None

    @rule(decision=DECISIONS)
    def decide(self, decision: Any) -> None:
        hooks = HookSet()

        @hooks.register
        async def policy(call: Any, given: Any) -> Any:
            return RunNormally(given) if decision is None else decision

        self._try(self._applied(hooks))

    async def _applied(self, hooks: HookSet) -> None:
        if self.round is not None:
            self.plan = await (self.plan or self.round).apply_hooks(hooks)

    @rule(yes=st.booleans())
    def resolve(self, yes: bool) -> None:
        if self.plan is not None:
            asked = [waiting.request for waiting in self.plan.awaiting]
            grants, denials = [one.grant("ada") for one in asked if yes], [one.deny() for one in asked if not yes]
            self._try(self.plan.resolve(grants, denials))

    @rule(answers=ANSWERS)
    def commit(self, answers: list[str]) -> None:
        if self.plan is not None:
            before = list(self.transcript)
            done = self._try(self._commit(self.plan, answers))
            assert done or list(self.transcript) == before

    async def _commit(self, plan: ToolRoundPlan, answers: list[str]) -> None:
        ran = {result.call_id: result for result in await plan.run_pending()} if "run" in answers else {}
        results: list[Any] = []
        for number, call in enumerate(plan.pending):
            match answers[number % len(answers)]:
                case "fail":
                    results.append(call.fail(OSError("broken")))
                case "reject":
                    results.append(call.reject("not now"))
                case "run" if call.id in ran:
                    results.append(ran[call.id])
                case "skip":
                    pass
                case "twice":
                    results += [ToolResult(call.id, call.name, 1)] * 2
                case _:
                    results.append(ToolResult(call.id, call.name, "text"))
        if "stray" in answers:
            results.append(ToolResult("z", "add", 1))
        if "issue" in answers:
            results += [issue.complete("explained") for issue in plan.issues]
        await plan.commit(self.transcript, results)

    @rule(calls=CALLS, known=st.booleans())
    def go_the_whole_way(self, calls: list[ToolCall], known: bool) -> None:
        self.reply(calls, "", known, False)
        self.decide(None)
        self.resolve(True)
        self.commit(["run"])

    @rule()
    def commit_without_hooks(self) -> None:
        if self.round is not None:
            answers = [ToolResult(call.id, call.name, "text") for call in self.round.tool_calls]
            self._try(self.round.commit(self.transcript, answers))

    @rule()
    def discard(self) -> None:
        if self.plan is not None:
            try:
                self.plan.discard()
            except CommitError:
                return  # it was over before

    @rule()
    def say(self) -> None:
        self.transcript.extend(PROVIDERS[self.format].user("go on"))

    @invariant()
    def the_provider_takes_the_transcript(self) -> None:
        if hasattr(self, "transcript"):
            assert self.transcript.check() == []

    def _try(self, work: Any) -> bool:
        """Return whether `work` went through; what a host is told it did wrong is no matter here."""
        try:
            self.loop.run_until_complete(work)
        except (RoundError, ValueError):
            return False
        return True


def _delta(reply: dict[str, Any]) -> dict[str, Any]:
    """Return the first chunk of a stream that was cut inside the arguments of its last call."""
    delta = {**reply["choices"][0]["message"]}
    asked: list[dict[str, Any]] = delta.pop("tool_calls", [])
    calls: list[dict[str, Any]] = [{**call, "index": number} for number, call in enumerate(asked)]
    if calls:
        last = calls[-1]["function"]
        calls[-1]["function"] = {**last, "arguments": last["arguments"][: len(last["arguments"]) // 2]}
        delta["tool_calls"] = calls
    return delta


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.timeout(0 if EXAMPLES > 25 else 60)
def test_no_conversation_comes_to_a_transcript_that_its_provider_refuses(format: WireFormat) -> None:
    machine = type("Conversation", (Conversation,), {"format": format})
    quiet = [HealthCheck.too_slow, HealthCheck.filter_too_much]
    many = settings(max_examples=EXAMPLES, stateful_step_count=20, deadline=None, suppress_health_check=quiet)

    run_state_machine_as_test(machine, settings=many)
