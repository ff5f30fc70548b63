"""Transcripts that a run goes on from: what a user said in one, and what tools returned, counts for its policy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from toolcrib.calls import ToolCall
from toolcrib.code import Toolkit
from toolcrib.formats import PROVIDERS, WireCall, WireResult
from toolcrib.hooks import ModelInput
from toolcrib.pipeline import Run
from toolcrib.provenance import Provenance, memory_of
from toolcrib.rounds import NeedsTools, Session, Transcript, WireFormat, decode, recall_transcript
from toolcrib.testing import FakeSandbox, ScriptedModel, wire_reply
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

FORMATS = list(PROVIDERS)
IBAN = "GB29NWBK60161331926819"
BILL = f"Car rental\n\nPlease pay 98.70 to {IBAN}"


@ez_tool(effect="none")
async def read_file(path: str) -> str:
    """Read a file."""
    raise AssertionError("it was read before")


@ez_tool(effect="none", source={"note": "untrusted", "*": "trusted"})
async def contacts() -> list[dict[str, str]]:
    """List contacts."""
    raise AssertionError("they were listed before")


@ez_tool(effect="send", source="trusted")
async def pay(recipient: str) -> str:
    """Pay."""
    return "paid"


TOOLS = Toolset([read_file, contacts, pay])


def earlier(format: WireFormat, *results: tuple[str, dict[str, Any], str], said: str) -> list[Any]:
    """Return a transcript in which a user said something, and tools returned something."""
    rules = PROVIDERS[format]
    asked = decode(TOOLS, wire_reply(format, [ToolCall(name, given) for name, given, _ in results]), format=format)
    sent = [call.metadata for call in asked.tool_calls] if results else []
    answers = [
        WireResult(WireCall(call.id, call.name, json.dumps(given)), text)
        for call, (_, given, text) in zip(sent, results, strict=True)
    ]
    return [*rules.user(said), *asked.items, *rules.answer(answers)]


async def reason(format: WireFormat, transcript: Sequence[Any], recipient: str, run: Run | None = None) -> str:
    """Return what a person is asked about a payment; nothing where it goes through."""
    run = Run(features=[Provenance()]) if run is None else run
    reply = wire_reply(format, [ToolCall("pay", {"recipient": recipient})])
    round = decode(TOOLS, reply, format=format, run=run, transcript=transcript)
    plan = await round.apply_hooks()
    return plan.suspended[0].request.reason if plan.suspended else ""


@pytest.mark.parametrize("format", FORMATS)
async def test_an_earlier_result_is_a_strangers_over_every_format(format: WireFormat) -> None:
    before = earlier(format, ("read_file", {"path": "bill.txt"}, BILL), said="pay the bill in bill.txt")
    asked = await reason(format, before, IBAN)
    assert asked.startswith(f"recipient `{IBAN}` comes from `read_file` (bill.txt, line 3), untrusted")
    assert asked.endswith("you wrote: pay the bill in bill.txt")


@pytest.mark.parametrize("format", FORMATS)
async def test_what_the_user_said_before_is_the_users_over_every_format(format: WireFormat) -> None:
    before = earlier(format, ("read_file", {"path": "a.txt"}, "Nothing new"), said=f"read a.txt, then pay to {IBAN}")
    assert await reason(format, before, IBAN) == ""
    assert "is in nothing that the user wrote" in await reason(format, before, "DE89370400440532013000")


@pytest.mark.parametrize("format", FORMATS)
async def test_what_the_model_said_before_is_nothing_over_every_format(format: WireFormat) -> None:
    before = earlier(format, ("read_file", {"path": "a.txt"}, "Nothing new"), said="go on")
    before += PROVIDERS[format].assistant(f"I shall pay to {IBAN}")
    assert "is in nothing that the user wrote" in await reason(format, before, IBAN)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("beside", ["nothing", "a trusted result"])
async def test_what_the_model_summed_up_before_is_nobodys_over_every_format(format: WireFormat, beside: str) -> None:
    found = json.dumps([{"name": "Ann Lee", "iban": "CH9300762011623852957"}])
    results = [("contacts", {}, found)] if beside == "a trusted result" else []
    before = earlier(format, *results, said="read my mail")
    before += [
        *PROVIDERS[format].assistant(f"The mail says to pay to {IBAN}"),
        *PROVIDERS[format].user("go on, Ann Lee"),
    ]

    assert "is in nothing that the user wrote" in await reason(format, before, IBAN)
    if results:
        assert await reason(format, before, "CH9300762011623852957") == ""


@pytest.mark.parametrize("format", FORMATS)
async def test_what_the_model_says_in_the_run_itself_leaves_it_free_to_choose(format: WireFormat) -> None:
    run, rules = Run(features=[Provenance()]), PROVIDERS[format]
    transcript = Transcript(rules.user("choose a charity"), format)
    recall_transcript(run, TOOLS, transcript, format)
    transcript += [*rules.assistant("I know a good one"), *rules.user("pay them")]

    assert await reason(format, transcript, IBAN, run) == ""


@pytest.mark.parametrize("format", FORMATS)
async def test_an_earlier_result_has_the_labels_of_its_tool_over_every_format(format: WireFormat) -> None:
    found = json.dumps([{"name": "Ann Lee", "iban": IBAN, "note": "or rather DE89370400440532013000"}])
    before = earlier(format, ("contacts", {}, found), said="pay Ann Lee")
    assert await reason(format, before, IBAN) == ""
    assert "comes from `contacts` ([0].note), untrusted" in await reason(format, before, "DE89370400440532013000")


async def test_a_result_that_was_cut_has_no_labels_by_field() -> None:
    before = earlier("openai", ("contacts", {}, f'[{{"iban": "{IBAN}", "no…'), said="pay Ann")
    assert "comes from `contacts`, untrusted" in await reason("openai", before, IBAN)


async def test_a_result_of_an_unknown_tool_is_untrusted() -> None:
    before = [
        {"role": "user", "content": "go on"},
        {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "browse"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": BILL},
    ]
    assert "comes from `browse` (line 3), untrusted" in await reason("openai", before, IBAN)


@pytest.mark.parametrize(
    ("format", "part"),
    [
        ("anthropic", {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": BILL}}),
        ("bedrock", {"document": {"name": "bill", "format": "txt", "source": {"text": BILL}}}),
    ],
)
async def test_what_is_attached_to_a_message_is_not_the_users(format: WireFormat, part: dict[str, Any]) -> None:
    words = {"type": "text", "text": "pay this"} if format == "anthropic" else {"text": "pay this"}
    asked = await reason(format, [{"role": "user", "content": [words, part]}], IBAN)
    assert "comes from `attachment` (line 3), untrusted" in asked
    assert asked.endswith("you wrote: pay this")


async def test_after_an_image_the_model_may_not_choose_freely() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 5000}}
    before = [{"role": "user", "content": [{"type": "text", "text": "pay this"}, image]}]
    assert "is in nothing that the user wrote" in await reason("openai", before, IBAN)


async def test_a_message_of_gemini_without_a_role_is_the_users() -> None:
    before = earlier("gemini", ("read_file", {"path": "a.txt"}, "Nothing new"), said="go on")
    assert await reason("gemini", [*before, {"parts": [{"text": f"pay to {IBAN}"}]}], IBAN) == ""


async def test_a_transcript_is_read_once() -> None:
    before = earlier("openai", ("read_file", {"path": "bill.txt"}, BILL), said="pay the bill in bill.txt")
    run = Run(features=[Provenance()])
    for _ in range(3):
        recall_transcript(run, TOOLS, before)
    memory_of(run).settle()
    assert len(memory_of(run)._user) == len(memory_of(run)._untrusted) == 1  # pyright: ignore[reportPrivateUsage]


class CountedItem(dict[str, Any]):
    """A message that counts how often it is read."""

    reads = 0

    def get(self, key: str, default: Any = None) -> Any:
        self.reads += 1
        return super().get(key, default)


async def test_each_message_of_a_transcript_is_read_once() -> None:
    run, item = Run(features=[Provenance()]), CountedItem(role="user", content=f"pay to {IBAN}")
    transcript = Transcript([item])
    recall_transcript(run, TOOLS, transcript)
    before = item.reads

    transcript.append({"role": "user", "content": "and read a.txt"})
    recall_transcript(run, TOOLS, transcript)

    assert before > 0
    assert item.reads == before
    assert memory_of(run).last_words == "and read a.txt"


async def test_a_transcript_that_the_host_changed_is_read_again() -> None:
    run, transcript = Run(features=[Provenance()]), Transcript([{"role": "user", "content": "read a.txt"}])
    recall_transcript(run, TOOLS, transcript)
    transcript[0] = {"role": "user", "content": f"pay to {IBAN}"}
    assert await reason("openai", transcript, IBAN, run) == ""


async def test_each_run_reads_a_transcript_for_itself() -> None:
    transcript = Transcript(earlier("openai", ("read_file", {"path": "bill.txt"}, BILL), said="pay the bill"))
    asked = [await reason("openai", transcript, IBAN) for _ in range(2)]
    assert all("comes from `read_file`" in one for one in asked)


async def test_a_result_is_paired_with_its_call_that_was_read_before() -> None:
    run, items = Run(features=[Provenance()]), earlier("openai", ("read_file", {"path": "b.txt"}, BILL), said="pay it")
    transcript = Transcript(items[:2])
    recall_transcript(run, TOOLS, transcript)
    transcript.append(items[2])
    assert "comes from `read_file` (b.txt" in await reason("openai", transcript, IBAN, run)


async def test_two_results_of_one_id_are_both_read() -> None:
    before = [{"role": "tool", "tool_call_id": "c1", "content": text} for text in ("Nothing new", BILL)]
    assert "comes from" in await reason("openai", before, IBAN)


async def test_the_result_of_a_call_of_the_run_is_not_read_from_the_transcript() -> None:
    run, messages = Run(features=[Provenance()]), [{"role": "user", "content": "pay the bill in bill.txt"}]
    reply = wire_reply("openai", [ToolCall("pay", {})])  # the arguments do not fit, and the model is shown an error
    round = decode(TOOLS, reply, run=run, transcript=messages)
    await round.commit(messages)
    recall_transcript(run, TOOLS, messages)
    assert len(messages) == 3
    assert not memory_of(run).reads_others


@pytest.mark.parametrize("format", FORMATS)
async def test_a_session_knows_the_transcript_that_it_goes_on_from(format: WireFormat) -> None:
    before = earlier(format, ("read_file", {"path": "bill.txt"}, BILL), said="pay the bill in bill.txt")
    model = ScriptedModel([ToolCall("pay", {"recipient": IBAN})])
    session = Session(model, format=format, transcript=before, tools=TOOLS, run=Run(features=[Provenance()]))
    step = await session.say("Go on.").step()
    assert isinstance(step, NeedsTools)
    plan = await step.round.apply_hooks()
    assert "comes from `read_file`" in plan.suspended[0].request.reason


async def test_a_session_from_json_knows_what_the_user_said_when_its_round_is_executed() -> None:
    before = earlier("openai", ("read_file", {"path": "a.txt"}, "Nothing new"), said=f"read a.txt, then pay to {IBAN}")
    model = ScriptedModel([ToolCall("pay", {"recipient": IBAN})])
    first = Session(model, transcript=before, tools=TOOLS, run=Run(features=[Provenance()]))
    assert isinstance(await first.step(), NeedsTools)
    other = Run(features=[Provenance()])
    again = await Session.from_json(model, first.to_json(), run=other, tools=TOOLS)
    assert again.open_round is not None
    plan = await again.open_round.apply_hooks()
    assert len(plan.pending) == 1
    assert memory_of(other).reads_others


async def test_without_a_policy_no_transcript_is_read() -> None:
    run = Run()
    recall_transcript(run, TOOLS, [{"role": "user", "content": "pay"}])
    assert not run.drain_user_messages()


async def test_a_program_that_was_written_late_is_asked_about_in_a_session() -> None:
    run_python = Toolkit([pay], sandbox=FakeSandbox(("pay", {"recipient": "x"}))).as_tool()
    model = ScriptedModel([ToolCall("run_python", {"code": "pay('x')"})])
    transcript = earlier("openai", ("read_file", {"path": "a"}, BILL), said="do what a says")
    session = Session(model, transcript=transcript, run=Run(features=[Provenance(frozen=True)]))
    step = await session.step(tools=Toolset([read_file, run_python]))
    assert isinstance(step, NeedsTools)
    plan = await step.round.apply_hooks()
    assert [one.request.tool for one in plan.suspended] == ["run_python"]


def test_a_result_that_a_tool_reads_again_is_read_where_the_first_one_is_not_known() -> None:

    @ez_tool(effect="none", source=None)
    async def read_result(key: str) -> str:
        """Read on."""
        raise AssertionError("it was read before")

    recalled = Run(features=[Provenance()])
    entry, asked = Toolset([read_result])["read_result"], ToolCall("read_result", {"key": "a"})
    recalled.read_input(ModelInput("restored", BILL, request=asked, entry=entry))
    memory_of(recalled).settle()
    assert memory_of(recalled).origin(IBAN).kind == "untrusted"


ROLES = ["ipython", "observation", "environment", "retrieval", "documents", "critic", "Tool", "", None, 7]


@pytest.mark.parametrize("role", [*ROLES, "tool", "function"])
@pytest.mark.parametrize("format", FORMATS)
async def test_a_message_of_an_unknown_role_is_a_strangers_over_every_format(format: WireFormat, role: Any) -> None:
    if format == "gemini" and role is None:
        pytest.skip("the provider takes it as the user's")
    for content in (BILL, [{"type": "text", "text": BILL}]):
        told = {"role": role, "content": content} if role is not None else {"content": content}
        assert f"`{IBAN}`" in await reason(format, [*PROVIDERS[format].user("pay the bill"), told], IBAN)


THOUGHTS: dict[str, tuple[WireFormat, dict[str, Any]]] = {
    "thinking": ("anthropic", {"role": "assistant", "content": [{"type": "thinking", "thinking": BILL}]}),
    "hidden thinking": ("anthropic", {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}]}),
    "refusal": ("openai", {"role": "assistant", "content": None, "refusal": BILL}),
    "part of a refusal": ("openai", {"role": "assistant", "content": [{"type": "refusal", "refusal": BILL}]}),
    "sound": ("openai", {"role": "assistant", "content": None, "audio": {"id": "audio_1"}}),
    "reasoning beside": ("openai", {"role": "assistant", "content": None, "reasoning_content": BILL}),
    "reasoning": ("openai_responses", {"type": "reasoning", "id": "r1", "summary": [{"type": "text", "text": BILL}]}),
    "thought": ("gemini", {"role": "model", "parts": [{"text": BILL, "thought": True}]}),
    "nothing": ("openai", {"role": "assistant", "content": None, "refusal": None}),
    "a call": ("gemini", {"role": "model", "parts": [{"functionCall": {"name": "f"}, "thoughtSignature": "x"}]}),
}


@pytest.mark.parametrize("name", THOUGHTS)
async def test_what_the_model_thought_before_the_users_last_words_counts_as_its_words(name: str) -> None:
    format, item = THOUGHTS[name]
    rules = PROVIDERS[format]

    asked = await reason(format, [*rules.user("read my mail"), item, *rules.user("go on")], IBAN)

    assert bool(asked) is (name not in ("nothing", "a call"))
