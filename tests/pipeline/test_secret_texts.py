"""Secret values in what a call leaves: each way in which code of the host's may quote one, against each text."""

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Annotated, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretBytes, SecretStr

from tests.virtual_time import in_virtual_time
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import (
    APPROVER_RULES,
    ApprovalRequest,
    Ask,
    Denial,
    Failed,
    Reject,
    Rejected,
    RequiredApprovers,
    RunNormally,
    Suspended,
    ToolCall,
)
from toolcrib.errors import ModelRetry
from toolcrib.hooks import GlobalHooks, HookSet
from toolcrib.pipeline import Durability, Pipeline, Run
from toolcrib.record import ListSink
from toolcrib.schema import Injected, Redacted, RunContext
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

PIN = "xq-47\"11'\n\\z"  # which Python and JSON write in another way
TOKEN = "sk-" + "".join(f"{number:02x}" for number in range(40, 90))


@dataclass
class Login:
    pin: str


class OwnText(Exception):
    def __init__(self, pin: str) -> None:
        super().__init__()
        self._pin = [pin]

    def __str__(self) -> str:
        return f"denied: {''.join(self._pin)}"


class Slots(Exception):
    __slots__ = ("pin",)

    def __init__(self, pin: str) -> None:
        self.pin = pin

    def __str__(self) -> str:
        return f"{self.pin} is wrong"


class Refusing(Exception):
    def __setattr__(self, name: str, value: Any) -> None:
        raise TypeError(name)


class Answer(BaseModel):
    text: str
    by: list[str]


class Quoted(BaseModel):
    pin: int


def _noted(pin: str) -> Exception:
    error = ValueError("wrong")
    error.add_note(f"it was {pin}")
    return error


def _caused(pin: str, by: Callable[[str], BaseException]) -> Exception:
    try:
        try:
            raise by(pin)
        except BaseException as cause:
            raise ValueError("wrong") from cause
    except ValueError as error:
        return error


def _in_context(pin: str) -> Exception:
    try:
        try:
            Quoted.model_validate({"pin": pin})
        except ValueError:
            raise RuntimeError("wrong")  # noqa: B904 -- the context is what is tested
    except RuntimeError as error:
        return error
    raise AssertionError


def _circular(pin: str) -> Exception:
    one, other = ValueError(pin), KeyError(pin)
    one.__cause__, other.__cause__ = other, one
    return one


def _long_chain(pin: str) -> Exception:
    error: Exception = ValueError(pin)
    for _ in range(400):
        later = ValueError(pin)
        later.__cause__ = error
        error = later
    return error


def _with_model(pin: str) -> Exception:
    return ValueError(Answer(text=f"bad pin {pin}", by=[pin]))


def _of_pydantic(pin: str) -> Exception:
    try:
        Quoted.model_validate({"pin": pin})
    except ValueError as error:
        return error
    raise AssertionError


ERRORS: dict[str, Callable[[str], Exception]] = {
    "text": lambda pin: ValueError(f"bad pin {pin}"),
    "repr": lambda pin: ValueError(f"bad {Login(pin)!r}"),
    "json": lambda pin: ValueError(json.dumps({"pin": pin})),
    "argument": KeyError,
    "dataclass": lambda pin: ValueError(Login(pin)),
    "nested": lambda pin: ValueError("wrong", {"in": [{"pin": pin}, (pin,)]}),
    "key": lambda pin: ValueError({pin: 1}),
    "attribute": OwnText,
    "slots": Slots,
    "frozen": lambda pin: Refusing(f"bad pin {pin}"),
    "pydantic": _of_pydantic,
    "os": lambda pin: FileNotFoundError(2, "no such file", f"/keys/{pin}"),
    "unicode": lambda pin: UnicodeEncodeError("ascii", pin, 0, 1, "no"),
    "note": _noted,
    "cause": lambda pin: _caused(pin, ValueError),
    "cause of pydantic": lambda pin: _caused(pin, _of_pydantic),
    "exit": lambda pin: _caused(pin, SystemExit),
    "context": _in_context,
    "circle": _circular,
    "chain": _long_chain,
    "model": _with_model,
    "group": lambda pin: ExceptionGroup(f"all {pin}", [ValueError(pin), ExceptionGroup("in", [_of_pydantic(pin)])]),
    "retry": lambda pin: ModelRetry(f"{pin} is wrong"),
    "timeout": lambda pin: TimeoutError(f"no answer to {pin}"),
    "cut": lambda pin: ValueError(f"it begins with {pin[: len(pin) * 3 // 4]}" if len(pin) > 30 else pin),
}


def _forms(secret: str) -> set[str]:
    return {secret, repr(secret)[1:-1], json.dumps(secret)[1:-1], *([secret[:20], secret[-20:]] * (len(secret) > 30))}


def require_hidden(texts: Any, *secrets: str) -> None:
    text = texts if isinstance(texts, str) else json.dumps(texts, default=str) + str(texts)
    assert not [form for secret in secrets for form in _forms(secret) if form in text]


def _of_error(error: BaseException | None) -> str:
    lines = logging.Formatter().formatException((type(error), error, None)) if error else ""
    return f"{error}{error!r}{lines}"


def _all_of(sink: ListSink) -> list[Any]:
    return [*(event.to_dict() for event in sink.events), *(record.to_dict() for record in sink.records)]


@pytest.mark.parametrize("secret", [PIN, TOKEN], ids=["short", "long"])
@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("kind", ["returns", "streams", "thread"])
async def test_an_error_quotes_no_secret(name: str, secret: str, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    make = ERRORS[name]

    @ez_tool(name="pay", effect="spend", max_retries=3)
    async def returns(pin: SecretStr) -> str:
        raise make(pin.get_secret_value())

    @ez_tool(name="pay", effect="spend", max_retries=3)
    async def streams(pin: SecretStr) -> Any:
        yield 1
        raise make(pin.get_secret_value())

    @ez_tool(name="pay", effect="spend", max_retries=3)
    def thread(pin: SecretStr) -> str:
        raise make(pin.get_secret_value())

    sink, store = ListSink(), MemoryApprovalStore()
    tool = {"returns": returns, "streams": streams, "thread": thread}[kind]
    run = Run(sinks=[sink], durability=Durability(store=store))

    with caplog.at_level("DEBUG"):
        outcome = await Pipeline([tool]).run(ToolCall("pay", {"pin": secret}), run)

    assert isinstance(outcome, Failed)
    require_hidden([outcome.text(), repr(outcome), outcome.to_dict(), outcome.traceback], secret)
    require_hidden(_of_error(outcome.exception), secret)
    require_hidden(_all_of(sink), secret)
    require_hidden(caplog.text, secret)
    require_hidden([(entry.request.to_dict(), entry.execution) for entry in await store.list()], secret)


async def test_an_error_that_is_hidden_is_the_one_that_was_raised() -> None:
    raised: list[ValueError] = []

    @ez_tool
    async def pay(pin: SecretStr) -> None:
        raised.append(ValueError(f"bad pin {pin.get_secret_value()}", 7))
        raise raised[0]

    outcome = await Pipeline([pay]).run(ToolCall("pay", {"pin": "4711"}))

    assert isinstance(outcome, Failed)
    assert outcome.exception is raised[0]
    assert raised[0].args == ("bad pin [redacted]", 7)


async def test_an_object_in_an_error_is_another_one_of_its_class() -> None:
    answer = Answer(text="it is 4711", by=["ann"])

    @ez_tool
    async def pay(pin: SecretStr) -> None:
        raise ValueError(answer)

    outcome = await Pipeline([pay]).run(ToolCall("pay", {"pin": "4711"}))

    assert isinstance(outcome, Failed)
    assert outcome.exception is not None
    assert outcome.exception.args == (Answer(text="it is [redacted]", by=["ann"]),)
    assert answer.text == "it is 4711"


class Deep(BaseModel):
    name: str
    keys: list[SecretStr]
    raw: SecretBytes
    by_user: Annotated[dict[str, int], Redacted]


async def test_a_secret_is_hidden_wherever_the_arguments_have_it() -> None:
    @ez_tool
    async def pay(login: Deep, *, number: Annotated[int, Redacted]) -> None:
        raise ValueError([login.keys[0].get_secret_value(), login.raw.get_secret_value(), login.by_user, number])

    given = {"name": "Ann's name", "keys": ["key-4711"], "raw": "raw-4711", "by_user": {"ann-4711": 98765}}
    outcome = await Pipeline([pay]).run(ToolCall("pay", {"login": given, "number": 47110}))

    assert isinstance(outcome, Failed)
    assert outcome.message.count("[redacted]") == 5
    require_hidden(outcome.message, "key-4711", "raw-4711", "ann-4711", "98765", "47110")


async def test_a_secret_is_hidden_that_the_tool_takes_out_of_its_arguments() -> None:
    @ez_tool
    async def pay(login: Annotated[dict[str, str], Redacted]) -> None:
        raise ValueError(login.pop("pin"))

    outcome = await Pipeline([pay]).run(ToolCall("pay", {"login": {"pin": "4711"}}))

    assert outcome.text() == "ValueError: [redacted]"


async def test_secrets_before_and_after_an_edit_are_hidden() -> None:
    hooks, numbers = HookSet(), count(4711)

    @ez_tool
    async def pay(pin: SecretStr) -> None:
        raise ValueError("0815, 4711, 4712")

    for _ in range(2):

        @hooks.on(pay)
        async def edit(call: Any, given: Any) -> RunNormally:
            return RunNormally(given.model_copy(update={"pin": SecretStr(str(next(numbers)))}))

    outcome = await Pipeline([pay], hooks=hooks).run(ToolCall("pay", {"pin": "0815"}))

    assert outcome.text() == "ValueError: [redacted], [redacted], [redacted]"


# --- what hooks, gates and middleware say


@ez_tool(name="pay")
async def quiet(pin: SecretStr) -> str:
    return "paid"


async def _outcome(sink: ListSink, *, pre: Any = None, post: Any = None, hooks: HookSet | None = None) -> Any:
    toolset = Toolset([quiet], global_hooks=GlobalHooks(pre=pre, post=post))
    return await Pipeline(toolset, hooks=hooks).run(ToolCall("pay", {"pin": PIN}), Run(sinks=[sink]))


async def test_a_hooks_reasons_quote_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    hooks, sink = HookSet(), ListSink()

    @hooks.on(quiet)
    async def refuse(call: Any, given: Any) -> Reject:
        return Reject(f"not {given.pin.get_secret_value()}")

    with caplog.at_level("DEBUG"):
        outcome = await _outcome(sink, hooks=hooks)

    assert isinstance(outcome, Rejected)
    require_hidden([outcome.reason, _all_of(sink), caplog.text], PIN)


async def test_a_request_quotes_no_secret() -> None:
    hooks, sink = HookSet(), ListSink()

    @hooks.on(quiet)
    async def ask(call: Any, given: Any) -> Ask:
        return Ask(f"is it {given.pin.get_secret_value()}", {"pin": [given.pin.get_secret_value()]})

    outcome = await _outcome(sink, hooks=hooks)

    assert isinstance(outcome, Suspended)
    require_hidden([outcome.request.text(), outcome.request.to_dict(), _all_of(sink)], PIN)


@pytest.mark.parametrize("place", ["pre", "post"])
@pytest.mark.parametrize("name", ["text", "pydantic", "group", "cause"])
async def test_an_error_of_middleware_quotes_no_secret(name: str, place: str, caplog: pytest.LogCaptureFixture) -> None:
    async def pre(ctx: Any, tool_name: str, args: Any, metadata: Any) -> Any:
        raise ERRORS[name](args["pin"].get_secret_value())

    async def post(ctx: Any, tool_name: str, result: Any, metadata: Any) -> Any:
        raise ERRORS[name](PIN)

    sink = ListSink()

    with caplog.at_level("DEBUG"):
        outcome = await _outcome(sink, pre=pre if place == "pre" else None, post=post if place == "post" else None)

    assert isinstance(outcome, Failed)
    require_hidden([outcome.text(), outcome.traceback, _of_error(outcome.exception), _all_of(sink), caplog.text], PIN)


# --- what a tool logs, asks and yields


async def test_what_a_tool_logs_asks_and_yields_is_recorded_without_its_secrets(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sink, asked = ListSink(), list[ApprovalRequest]()

    async def answer(request: ApprovalRequest) -> Denial:
        asked.append(request)
        return request.deny()

    @ez_tool
    async def pay(pin: SecretStr, ctx: RunContext) -> Any:
        secret = pin.get_secret_value()
        await ctx.log("info", {"pin": [Login(secret)]})
        ctx.progress(1, 2, f"with {secret}")
        await ctx.elicit(f"Is it {secret}?")
        yield {"pin": secret}

    with caplog.at_level("DEBUG"):
        outcome = await Pipeline([pay]).run(ToolCall("pay", {"pin": PIN}), Run(sinks=[sink], approver=answer))

    assert outcome.value == [{"pin": PIN}]
    assert {"logged", "progressed", "asked", "yielded", "ended"} <= {event.kind for event in sink.events}
    require_hidden([_all_of(sink), caplog.text, [request.to_dict() for request in asked]], PIN)


# --- what a tool is given besides


@dataclass
class Settings:
    key: SecretStr


async def test_credentials_that_a_tool_is_given_are_hidden() -> None:
    sink = ListSink()

    @ez_tool(fixed_key=SecretStr("fixed-4711"), marked=lambda: "mark-4711")
    async def pay(
        text: str,
        fixed_key: SecretStr,
        marked: Annotated[str, Redacted],
        injected: Annotated[Settings, Injected],
        ctx: RunContext[Settings],
    ) -> None:
        told = [fixed_key, injected.key, ctx.deps.key]
        raise ValueError([marked, *(secret.get_secret_value() for secret in told)])

    run = Run(deps=Settings(SecretStr("deps-4711")), provide={Settings: Settings(SecretStr("inj-4711"))}, sinks=[sink])
    outcome = await Pipeline([pay]).run(ToolCall("pay", {"text": "x"}), run)

    assert outcome.text().count("[redacted]") == 4
    require_hidden(_all_of(sink), "fixed-4711", "mark-4711", "inj-4711", "deps-4711")


@dataclass
class Account:
    rows: list[int]
    login: "Login | Marked"
    key: SecretStr


@dataclass
class Marked:
    pin: Annotated[str, Redacted]


async def test_a_credential_of_the_run_is_hidden_wherever_it_is_in_its_deps() -> None:
    @ez_tool
    async def pay(ctx: RunContext[Account]) -> None:
        raise ValueError([ctx.deps.key.get_secret_value(), ctx.deps.login.pin])

    run = Run(deps=Account(list(range(10_000)), Marked("mark-4711"), SecretStr("deps-4711")))
    outcome = await Pipeline([pay]).run(ToolCall("pay", {}), run)

    assert outcome.text() == "ValueError: ['[redacted]', '[redacted]']"


@pytest.mark.parametrize("as_json", [False, True])
async def test_a_call_that_goes_on_in_another_run_quotes_no_credential_of_that(as_json: bool) -> None:
    @ez_tool(requires_approval=True)
    async def pay(ctx: RunContext[Settings]) -> None: ...

    def refuse_after_the_first(call: Any) -> Reject | None:
        key = call.run.deps.key.get_secret_value()
        return None if key == "first-4711" else Reject(f"refused for {key}")

    pipeline = Pipeline(Toolset([pay]).with_gates(refuse_after_the_first))
    suspended: Any = await pipeline.run(ToolCall("pay", {}), Run(deps=Settings(SecretStr("first-4711"))))
    state = suspended.call.to_dict() if as_json else suspended
    run = Run(deps=Settings(SecretStr("second-4711")))
    outcome = await pipeline.run(state, run, grant=suspended.request.grant())

    assert outcome.text() == "Rejected: refused for [redacted]"


@pytest.mark.parametrize("place", ["pre", "post"])
async def test_middleware_of_a_tool_without_secrets_quotes_no_credential_of_the_run(place: str) -> None:
    sink = ListSink()

    @ez_tool(name="pay")
    async def plain(cents: int) -> str:
        return "paid"

    async def quote(ctx: Any, tool_name: str, args: Any, metadata: Any) -> Any:
        raise ValueError(ctx.deps.key.get_secret_value())

    hooks = GlobalHooks(pre=quote if place == "pre" else None, post=quote if place == "post" else None)
    run = Run(deps=Settings(SecretStr("deps-4711")), sinks=[sink])
    outcome = await Pipeline(Toolset([plain], global_hooks=hooks)).run(ToolCall("pay", {"cents": 1}), run)

    assert isinstance(outcome, Failed)
    require_hidden([outcome.text(), outcome.traceback, _all_of(sink)], "deps-4711")


# --- what is cut


async def test_a_record_that_is_cut_has_no_half_of_a_secret() -> None:
    sink = ListSink()
    lengths = {"log": (6_667, 10_000), "ask": (1_334, 2_000), "result": (66_667, 100_000)}

    def texts(what: str, secret: str) -> list[str]:
        head, limit = lengths[what]
        return [f"{'x' * (head - known)}{secret}{'x' * limit}" for known in range(1, len(secret) + 2)]

    @ez_tool
    async def pay(pin: SecretStr, ctx: RunContext) -> Any:
        secret = pin.get_secret_value()
        for text in texts("log", secret):
            await ctx.log("info", text)
        for text in texts("ask", secret):
            await ctx.elicit(text)
        for text in texts("result", secret):
            yield text

    async def answer(request: ApprovalRequest) -> Denial:
        return request.deny()

    await Pipeline([pay]).run(ToolCall("pay", {"pin": "hunter2xyz"}), Run(sinks=[sink], approver=answer))

    assert len(sink.events) > 30
    assert "hu" not in json.dumps(_all_of(sink)).replace("human", "")


# --- what stays as it is


WORDS = [
    "failed", "kind", "message", "value", "code", "tool", "text", "what", "pay_it", "hook", "reason", "completed",
    "rule", "people", "3600", "tool_error", "call_4711", "pipeline",
]  # fmt: skip


@pytest.mark.parametrize("secret", WORDS)
@pytest.mark.parametrize("end", ["returns", "raises", "asks", "is late"])
@in_virtual_time
async def test_a_secret_that_is_a_word_of_ours_changes_no_record(secret: str, end: str) -> None:
    async def work(pin: SecretStr, ctx: RunContext) -> Any:
        await ctx.log("info", {"mine": "x"})
        ctx.progress(1, 2, "on its way")
        if end == "raises":
            raise ValueError("wrong")
        if end == "is late":
            await asyncio.sleep(5)
        return {"of": 1}

    def described(found: Any) -> Any:  # the names of fields, and what identifies a call
        told = {"kind", "call_id", "tool", "code", "entry", "what", "hook", "decision"}
        if isinstance(found, dict):
            named = cast("dict[str, Any]", found).items()
            return {name: part if name in told else described(part) for name, part in named}
        return [described(part) for part in cast("list[Any]", found)] if isinstance(found, list | tuple) else None

    async def made(secret: str) -> Any:
        sink = ListSink()
        rule = RequiredApprovers("rule", {"people": 1}, {"people": [["ann"]]}, expires_after=3600).to_dict()
        hooks = HookSet()
        tool = ez_tool(name="pay_it", timeout=0.01 if end == "is late" else None)(work)

        @hooks.on(tool)
        async def hook(call: Any, given: Any) -> Any:
            return Ask("why", {f"{APPROVER_RULES}rule": [rule]}) if end == "asks" else RunNormally(given)

        call = ToolCall("pay_it", {"pin": secret}, "call_4711")
        outcome = await Pipeline([tool], hooks=hooks).run(call, Run("run_1", sinks=[sink]))
        asked = outcome.request.required if isinstance(outcome, Suspended) else ()
        return outcome.kind, getattr(outcome, "code", ""), asked, described(_all_of(sink))

    assert await made(secret) == await made("neutral")


# --- what stays readable


@pytest.mark.parametrize(
    ("pin", "said", "shown"),
    [
        ("1", "1 of 10 failed", "1 of 10 failed"),
        ("", "nothing", "nothing"),
        ("abc", "abc", "abc"),
        ("pass", "the password of pass", "the password of [redacted]"),
        ("1234", "1234 is not 51234, pin1234", "[redacted] is not 51234, pin[redacted]"),
        ("hunter2x", "myhunter2xy HUNTER2X", "my[redacted]y [redacted]"),
        (" 4711\n", "it is 4711.", "it is [redacted]."),
        ("a b&c", "at /?q=a%20b%26c", "at /?q=[redacted]"),
    ],
)
async def test_short_values_and_parts_of_words_stay(pin: str, said: str, shown: str) -> None:
    @ez_tool
    async def pay(pin: SecretStr) -> None:
        raise ValueError(said)

    outcome = await Pipeline([pay]).run(ToolCall("pay", {"pin": pin}))

    assert outcome.text() == f"ValueError: {shown}"


async def test_the_arguments_that_a_person_is_shown_are_not_changed() -> None:
    @ez_tool(requires_approval=True)
    async def pay(amount: int, pin: Annotated[int, Redacted]) -> None: ...

    outcome = await Pipeline([pay]).run(ToolCall("pay", {"amount": 4711, "pin": 4711}))

    assert outcome.request.arguments == {"amount": 4711, "pin": "[redacted]"}


@given(st.text(min_size=8, max_size=60), st.text(max_size=30), st.text(max_size=30))
async def test_any_text_of_eight_characters_is_hidden_in_any_other(secret: str, before: str, after: str) -> None:
    @ez_tool
    async def pay(pin: SecretStr) -> None:
        raise ValueError(before + pin.get_secret_value() + after)

    outcome: Any = await Pipeline([pay]).run(ToolCall("pay", {"pin": secret}, origin="host"))

    kept = secret.strip()
    assert len(kept) < 8 or kept in "[redacted]" or kept not in outcome.message
