"""The conversations as replies of a model in a provider's wire format: one round for each turn, in a transcript."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.bfcl._as_calls import answer_of, as_json, toolset_of
from benchmarks.bfcl._calls import Call
from benchmarks.bfcl._data import Conversation, build_apis
from benchmarks.bfcl._runs import Answer, Raised, Replay, states_of
from toolcrib import Completed, Failed, Outcome, Pipeline, Run, ToolCall
from toolcrib.formats import PROVIDERS, Item
from toolcrib.rounds import ToolResult, ToolRoundPlan, Transcript, WireFormat, decode
from toolcrib.testing import wire_reply

__all__ = ["run_as_rounds"]


async def run_as_rounds(conversation: Conversation, format: WireFormat, *, as_published: bool = False) -> Replay:
    """Return what the calls do when each turn's are one reply of a model, decoded, run one by one and committed."""
    apis = build_apis(conversation, as_published=as_published)
    pipeline, scope = Pipeline(toolset_of(apis)), Run(id=conversation.id)
    transcript = Transcript(format=format)
    answers: list[tuple[Answer, ...]] = []
    for number, turn in enumerate(conversation.turns):
        transcript.extend(PROVIDERS[format].user(f"Turn {number + 1}, please."))
        calls = [_call(call, apis, f"{number:03}of{place:04}") for place, call in enumerate(turn)]
        reply = wire_reply(format, calls, "" if calls else "I cannot do that.")
        plan = await decode(pipeline, reply, format=format, run=scope, transcript=transcript).apply_hooks()
        answers.append(await _answers(plan, calls, transcript))
        if calls:  # the model reads the results, as each provider wants it before the next turn of the user
            transcript.extend(PROVIDERS[format].assistant("Done."))
    return Replay(tuple(answers), states_of(apis))


def _call(call: Call, apis: dict[str, Any], id: str) -> ToolCall:
    """Return a call with an id that every provider takes, Mistral's nine letters and digits."""
    made = as_json(call, apis)
    return ToolCall(made.name, made.arguments, id)


async def _answers(plan: ToolRoundPlan, calls: Sequence[ToolCall], transcript: Transcript) -> tuple[Answer, ...]:
    """Return the answers of a turn, each of which has to be what the committed transcript says."""
    results = await plan.run_pending(concurrency=1)  # a turn's calls build on each other
    outcomes = {issue.metadata.id: issue.outcome for issue in plan.issues} | {r.call_id: _outcome(r) for r in results}
    added = await plan.commit(transcript, results)
    problems = transcript.check()
    if problems:
        return tuple(Raised("TranscriptRefused", str(problems[0])) for _ in calls)
    texts = _texts(added, transcript.format)
    if len(texts) != len(calls):
        return tuple(Raised("TranscriptRefused", f"{len(texts)} results for {len(calls)} calls") for _ in calls)
    return tuple(_answer(outcomes[call.id], text) for call, text in zip(calls, texts, strict=True))


def _outcome(result: ToolResult) -> Outcome:
    if result.error is not None:
        error = result.error
        return Failed(result.name, result.call_id, "tool_error", str(error), type(error).__name__, exception=error)
    return Completed(result.name, result.call_id, result.output)


def _texts(added: Sequence[Item], format: WireFormat) -> list[str]:
    return [result.content for item in added for result in PROVIDERS[format].results_of(item)]


def _answer(outcome: Outcome, text: str) -> Answer:
    """Return the answer, when the model is told of it: the result itself, or the exception's message."""
    told = text == outcome.text() if isinstance(outcome, Completed) else outcome.text() in text
    return answer_of(outcome) if told else Raised("ToldOtherwise", text)
