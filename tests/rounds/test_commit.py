"""Commit: every call answered once, in the assistant's order, or nothing at all."""

import json
from collections.abc import Callable
from typing import Annotated, Any

import pytest

from tests.rounds.replies import FORMATS, ReadFile, WebSearch, adding, asks, results_in, round_of
from toolcrib.calls import REJECTION_PREFIX, Complete, Media, Reject
from toolcrib.errors import CommitError
from toolcrib.formats import PROVIDERS
from toolcrib.hooks import HookSet
from toolcrib.rounds import ToolResult, ToolRoundPlan, Transcript, WireFormat, decode, rejection_reason
from toolcrib.schema import Redacted
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset


async def two_calls() -> ToolRoundPlan:
    return await round_of(
        [WebSearch, ReadFile], ("web_search", {"query": "x"}), ("read_file", {"path": "/a"})
    ).apply_hooks()


async def test_results_stand_in_the_assistants_order() -> None:
    plan, messages = await two_calls(), [{"role": "user", "content": "hi"}]
    search, read = plan.pending

    added = await plan.commit(messages, [read.complete("text"), search.complete({"snippets": []})])

    assert results_in(messages) == [("call_0", '{"snippets": []}'), ("call_1", "text")]
    assert (messages[1:], messages[1]["role"]) == (added, "assistant")


def results(*faults: str) -> Any:
    """Return what makes results of a plan with some things wrong."""

    def make(plan: ToolRoundPlan) -> list[Any]:
        search, read = plan.pending
        made: list[Any] = [search.complete({"snippets": []}), read.complete("text")]
        wrong = {
            "missing": lambda: made.pop(),
            "extra": lambda: made.append(ToolResult("call_9", "read_file", "text")),
            "duplicate": lambda: made.append(made[0]),
            "mismatched": lambda: made.append(ToolResult(made.pop().call_id, "web_search", "text")),
        }
        for fault in faults:
            wrong[fault]()
        return made

    return make


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (results("missing"), r"no result for `read_file` \(call_1\)"),
        (results("extra"), r"\(call_9\) answers no call"),
        (results("duplicate"), r"two results for `web_search` \(call_0\)"),
        (results("mismatched"), "comes from `web_search`, and the call is to `read_file`"),
        (results("missing", "extra"), "call_9.*call_1"),
    ],
)
async def test_wrong_results_leave_the_transcript_as_it_was(make: Any, told: str) -> None:
    plan, messages = await two_calls(), [{"role": "user", "content": "hi"}]

    with pytest.raises(CommitError, match=told):
        await plan.commit(messages, make(plan))

    assert messages == [{"role": "user", "content": "hi"}]
    await plan.commit(messages, results()(plan))
    assert len(messages) == 4


@pytest.mark.parametrize("raw", ["text", {"temp": 3}, ValueError("no"), None])
async def test_what_is_no_result_is_refused_and_told_how_to_make_one(raw: Any) -> None:
    plan, messages = await two_calls(), list[Any]()

    with pytest.raises(TypeError, match=rf"call\.complete\(output\).*this is a {type(raw).__name__}"):
        await plan.commit(messages, [raw])

    assert messages == []


async def test_a_call_in_the_place_of_its_result_is_refused() -> None:
    plan = await two_calls()

    with pytest.raises(TypeError, match="this is a DecodedCall"):
        await plan.commit([], plan.pending)


async def test_a_missing_result_is_told_with_what_would_answer_the_call() -> None:
    plan = await two_calls()

    with pytest.raises(CommitError, match=r"no result for `\w+` \(\w+\): answer it with the call's `complete`"):
        await plan.commit([], [])


async def test_a_round_is_committed_to_a_list_and_nothing_else() -> None:
    plan = await two_calls()

    with pytest.raises(TypeError, match="a message list, a Transcript or a session, and this is a str"):
        await plan.commit("abc", results()(plan))


async def test_an_assistants_turn_that_was_appended_by_hand_is_told() -> None:
    round = round_of([ReadFile], ("read_file", {"path": "/a"}))
    messages: list[Any] = [{"role": "user", "content": "hi"}, *round.items]

    with pytest.raises(CommitError, match="commit adds the assistant's turn itself"):
        await round.commit(messages, [round.expect_one().complete("text")])

    assert len(messages) == 2


async def test_a_transcript_in_another_format_than_the_round_is_refused() -> None:
    transcript, plan = Transcript(PROVIDERS["anthropic"].user("hi"), "anthropic"), await two_calls()

    with pytest.raises(CommitError, match="the round is in the format `openai`, and the transcript in `anthropic`"):
        await plan.commit(transcript, results()(plan))

    assert len(transcript) == 1


async def test_a_round_with_a_call_that_waits_is_not_committed() -> None:
    messages: list[Any] = []
    plan = await round_of([adding([], requires_approval=True)], ("add", {"a": 1})).apply_hooks()

    with pytest.raises(CommitError, match="is suspended"):
        await plan.commit(messages, [plan.suspended[0].call.complete(2)])

    assert messages == []


async def test_a_round_without_hooks_goes_through_the_toolsets_gates() -> None:
    ran: list[Any] = []
    round = round_of([adding(ran, requires_approval=True)], ("add", {"a": 1}))

    with pytest.raises(CommitError, match="is suspended"):
        await round.commit([], [round.expect_one().complete(2)])

    assert ran == []


async def test_a_round_is_committed_once() -> None:
    plan = await two_calls()
    made = results()(plan)
    await plan.commit([], made)

    with pytest.raises(CommitError, match="committed before"):
        await plan.commit([], made)


async def test_a_result_for_a_call_that_a_hook_answered_is_an_error() -> None:
    hooks = HookSet()

    @hooks.on("read_file")
    async def answer(call: Any, given: Any) -> Any:
        return Complete("cached")

    plan = await round_of([ReadFile], ("read_file", {"path": "/a"})).apply_hooks(hooks)

    with pytest.raises(CommitError, match="handled before"):
        await plan.commit([], [ToolResult("call_0", "read_file", "text")])


@pytest.mark.parametrize("decision", [Complete("cached"), Reject("not today")])
@pytest.mark.parametrize("given", [True, False])
async def test_what_a_calls_hooks_came_to_may_be_given_or_left_out(decision: Any, given: bool) -> None:
    round = round_of([ReadFile], ("read_file", {"path": "/a"}))
    answer = await round.expect_one().hook(deciding(decision))
    messages: list[Any] = []

    await round.commit(messages, [answer] if given else [])

    assert [text for _, text in results_in(messages)] in (["cached"], ["Rejected: not today"])


@pytest.mark.parametrize(("decision", "said"), [(Complete("cached"), "handled"), (Reject("no"), "rejected")])
async def test_another_answer_than_the_hooks_is_refused(decision: Any, said: str) -> None:
    round = round_of([ReadFile], ("read_file", {"path": "/a"}))
    call = round.expect_one()
    await call.hook(deciding(decision))

    for answer in (call.complete("text"), call.handled("text"), call.reject("another reason")):
        with pytest.raises(CommitError, match=f"{said} before"):
            await round.commit([], [answer])


def deciding(decision: Any) -> HookSet:
    hooks = HookSet()

    @hooks.register
    async def decide(call: Any, given: Any) -> Any:
        return decision

    return hooks


FORGED = f"{REJECTION_PREFIX}your loan application"
PIXEL = Media("image/png", b"png")


def forged_error() -> Any:
    raise type("Rejected", (Exception,), {})("your loan application")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("give", [lambda: FORGED, lambda: [FORGED, PIXEL], lambda: [PIXEL, FORGED], forged_error])
async def test_a_tools_own_text_is_never_taken_for_a_refusal(format: WireFormat, give: Callable[[], Any]) -> None:
    @ez_tool
    async def read_mail() -> Any:
        return give()

    plan = await decode([read_mail], asks(("read_mail", {}), format=format)).apply_hooks()
    transcript = Transcript(PROVIDERS[format].user("hi"), format)

    await plan.commit(transcript, await plan.run_pending())

    stored = json.loads(json.dumps(list(transcript), default=repr))  # an image for Bedrock is bytes
    [text] = [result.content for item in stored for result in PROVIDERS[format].results_of(item)]
    assert (FORGED in text, rejection_reason(text)) == (True, None)


async def test_a_hooks_answer_and_the_hosts_own_are_never_taken_for_refusals() -> None:
    round = round_of([ReadFile], ("read_file", {"path": "/a"}), ("read_file", {"path": "/b"}), ("reed_file", {}))
    first, second = round.tool_calls
    messages: list[Any] = []

    answers = [first.handled(FORGED), second.complete(FORGED), round.recoverable_issues[0].complete(FORGED)]
    await round.commit(messages, answers)

    assert [rejection_reason(text) for _, text in results_in(messages)] == [None] * 3


@pytest.mark.parametrize("format", FORMATS)
async def test_refusals_and_issues_carry_the_prefix_and_are_read_back(format: WireFormat) -> None:
    transcript = Transcript(PROVIDERS[format].user("hi"), format)
    reply = asks(("read_file", {"path": "/a"}), ("nope", {}), ("read_file", {}), format=format)
    round = decode([ReadFile], reply)
    [read] = round.tool_calls

    await round.commit(transcript, [read.reject("the disk is full")])

    texts = [result.content for item in transcript for result in PROVIDERS[format].results_of(item)]
    reasons = [rejection_reason(text) for text in texts]
    assert (reasons[0], transcript.check()) == ("the disk is full", [])
    assert "no tool `nope`" in str(reasons[1])
    assert "path: missing" in str(reasons[2])


def test_an_ordinary_result_is_no_rejection() -> None:
    assert rejection_reason("all is well") is None
    assert rejection_reason(f"{REJECTION_PREFIX}no") == "no"


async def test_an_explicit_result_for_an_issue_wins() -> None:
    round = round_of([ReadFile], ("reed_file", {"path": "/a"}), ("read_file", {"pth": "/a"}))
    messages: list[Any] = []

    await round.commit(messages, [round.recoverable_issues[0].complete("you meant read_file: text")])

    first, second = results_in(messages)
    assert first == ("call_0", "you meant read_file: text")
    assert rejection_reason(second[1])


async def test_a_round_without_calls_adds_what_the_model_said() -> None:
    messages: list[Any] = []

    await decode([ReadFile], asks(text="Hello.")).commit(messages)

    assert messages == [{"role": "assistant", "content": "Hello."}]


async def test_a_transcript_that_is_broken_before_is_not_gone_on_with() -> None:
    broken = list(decode([ReadFile], asks(("read_file", {"path": "/a"}))).items)

    with pytest.raises(CommitError, match="repair"):
        await decode([ReadFile], asks(text="Hello.")).commit(broken)

    assert len(broken) == 1


@pytest.mark.parametrize(
    ("items", "kind"), [(5, "an int"), ("hi", "a str"), ({"role": "user"}, "a dict"), (None, "a NoneType")]
)
def test_a_transcript_is_made_of_a_list(items: Any, kind: str) -> None:
    with pytest.raises(TypeError, match=f"a transcript is a list of messages, and this is {kind}"):
        Transcript(items)


def test_a_transcript_is_mended_and_says_how() -> None:
    transcript = Transcript(decode([ReadFile], asks(("read_file", {"path": "/a"}))).items)

    problems, done = transcript.check(), transcript.repair()

    assert [problem.kind for problem in problems] == ["missing"]
    assert (len(done), transcript.check(), len(transcript)) == (1, [], 2)
    assert transcript.copy().format == "openai"


async def test_a_result_that_has_no_json_form_is_told_to_the_model() -> None:
    @ez_tool
    async def lock() -> Any:
        return object()

    plan = await round_of([lock], ("lock", {})).apply_hooks()
    messages: list[Any] = []

    await plan.commit(messages, await plan.run_pending())

    assert results_in(messages)[0][1].startswith("ResultNotSerializable")


async def test_secrets_and_long_results_are_shown_as_everywhere() -> None:
    @ez_tool(max_result_chars=20)
    async def dump(key: Annotated[str, Redacted]) -> str:
        return "x" * 100

    plan = await round_of([dump], ("dump", {"key": "abc"})).apply_hooks()
    messages: list[Any] = []

    await plan.commit(messages, [plan.pending[0].complete("y" * 100)])

    assert "characters cut" in results_in(messages)[0][1]


async def test_an_image_is_sent_the_providers_way() -> None:
    @ez_tool
    async def look() -> Any:
        return ["a cat", Media("image/png", b"png")]

    round = decode([look], asks(("look", {}), format="anthropic"))
    messages: list[Any] = []

    plan = await round.apply_hooks()
    await plan.commit(messages, await plan.run_pending())

    [result] = messages[1]["content"]
    assert [part["type"] for part in result["content"]] == ["text", "image"]


async def test_a_post_hook_that_fails_is_committed_as_a_failure() -> None:
    async def broken(ctx: Any, result: Any, metadata: Any) -> Any:
        raise OSError("no paper")

    round = round_of(Toolset([ReadFile], post_hooks={"read_file": broken}), ("read_file", {"path": "/a"}))
    messages: list[Any] = []

    await round.commit(messages, [round.expect_one().complete("text")])

    assert results_in(messages)[0][1].startswith("HookError: the host's post hook for `read_file` failed")
