"""A call as a span: what is on it, what is not, and what is inside of it."""

import asyncio
import contextvars
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import pytest
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, get_current_span
from pydantic import SecretStr

from tests.in_doubt import answered_in_doubt
from tests.telemetry.conftest import Watch
from toolcrib.approvals import approve_all, deny_all
from toolcrib.calls import Reject, RunNormally, Suspended, ToolCall, outcome_from_dict
from toolcrib.errors import ModelRetry
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Call, Channel, Pipeline, Run
from toolcrib.provenance import Provenance
from toolcrib.schema import Redacted
from toolcrib.telemetry import OtelSink
from toolcrib.tools import Tool, ez_tool

SECRET = "xyzzy-plugh"


@pytest.mark.parametrize("wrong", ["http://localhost:4317", InMemorySpanExporter()], ids=["address", "exporter"])
def test_where_spans_go_is_a_provider(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"OtelSink: tracer_provider is .*; give a TracerProvider of the SDK"):
        OtelSink(wrong)
    with pytest.raises(TypeError, match=r"OtelSink: meter_provider is .*; give a MeterProvider of the SDK"):
        OtelSink(meter_provider=wrong)


@ez_tool
async def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@ez_tool(requires_approval=True)
async def refund(order: int) -> int:
    return order


@ez_tool
async def count(to: int) -> Any:
    for n in range(to):
        yield n


@ez_tool
async def fail(say: str) -> None:
    raise LookupError(say)


async def call(watch: Watch, tool: Tool[..., Any], given: Any, hooks: HookSet | None = None, **options: Any) -> Any:
    shown = {name: options.pop(name) for name in ("arguments", "results") if name in options}
    pipeline = Pipeline([tool], hooks=hooks, sinks=[watch.sink(**shown)])
    return await pipeline.run(
        ToolCall(tool.name, given, "c1"), Run(id="run_1", channel=Channel(entry="test"), **options)
    )


def attributes(watch: Watch, name: str = "") -> dict[str, Any]:
    span = watch.span(name) if name else watch.spans[-1]
    return dict(span.attributes or {})


def events(watch: Watch, name: str) -> list[tuple[str, dict[str, Any]]]:
    return [(event.name, dict(event.attributes or {})) for event in watch.span(name).events]


async def test_a_call_is_a_span_by_the_conventions(watch: Watch) -> None:
    await call(watch, add, {"a": 1})

    span = watch.span("execute_tool add")
    assert span.kind is SpanKind.INTERNAL
    assert span.status.status_code is StatusCode.UNSET
    assert span.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "Add two numbers.",
        "toolcrib.run.id": "run_1",
        "toolcrib.entry": "test",
        "toolcrib.outcome": "completed",
    }
    assert [event.name for event in span.events] == ["toolcrib.started"]
    assert span.instrumentation_scope is not None
    assert span.instrumentation_scope.name == "toolcrib"


async def test_arguments_and_results_are_on_the_span_when_they_are_asked_for(watch: Watch) -> None:
    await call(watch, add, {"a": 1}, arguments=True, results=True)

    told = attributes(watch)
    assert json.loads(told["gen_ai.tool.call.arguments"]) == {"a": 1, "b": 1}
    assert told["gen_ai.tool.call.result"] == "2"


@pytest.mark.parametrize("shown", [{}, {"arguments": True}, {"results": True}])
async def test_each_of_them_is_left_out_unless_it_is_asked_for(watch: Watch, shown: Any) -> None:
    @ez_tool
    async def echo(text: str) -> str:
        return f"result of {text}"

    await call(watch, echo, {"text": "hello"}, **shown)

    told = attributes(watch)
    assert ("gen_ai.tool.call.arguments" in told) is ("arguments" in shown)
    assert ("gen_ai.tool.call.result" in told) is ("results" in shown)


async def test_what_is_secret_stays_hidden_though_everything_is_asked_for(watch: Watch) -> None:
    @ez_tool(requires_approval=True)
    async def log_in(token: SecretStr, password: Annotated[str, Redacted]) -> str:
        return "in"

    given = {"token": SECRET, "password": SECRET}
    await call(watch, log_in, given, arguments=True, results=True, approver=approve_all)

    assert "gen_ai.tool.call.arguments" in attributes(watch)
    assert SECRET not in watch.spans[-1].to_json()


async def test_long_values_are_cut(watch: Watch) -> None:
    @ez_tool
    async def echo(text: str) -> str:
        return text

    await call(watch, echo, {"text": "x" * 50_000}, arguments=True, results=True)

    told = attributes(watch)
    assert len(told["gen_ai.tool.call.arguments"]) < 5000
    assert len(told["gen_ai.tool.call.result"]) < 5000


async def test_a_failure_says_its_kind_and_its_words_only_when_results_may_be_shown(watch: Watch) -> None:
    await call(watch, fail, {"say": "private"})
    await call(watch, fail, {"say": "private"}, results=True)

    hidden, shown = watch.spans
    assert (hidden.attributes or {})["error.type"] == "LookupError"
    assert (hidden.status.status_code, hidden.status.description) == (StatusCode.ERROR, "LookupError")
    assert "private" not in hidden.to_json()
    assert "private" in str(shown.status.description)


async def test_a_name_that_a_model_made_up_names_no_span(watch: Watch) -> None:
    await Pipeline([add], sinks=[watch.sink()]).run(ToolCall("made_up_7", {}, "c1"))

    span = watch.span("execute_tool")
    assert (span.attributes or {})["gen_ai.tool.name"] == "made_up_7"
    assert [dict(point.attributes)["gen_ai.tool.name"] for point in watch.points("toolcrib.tool.calls")] == ["_OTHER"]


async def test_decisions_and_approvals_are_events(watch: Watch) -> None:
    hooks = HookSet()

    @hooks.register
    async def check(call: Any, given: Any) -> Any:
        return RunNormally(given)

    await call(watch, refund, {"order": 1}, hooks, approver=approve_all)

    told = events(watch, "execute_tool refund")
    assert [name for name, _ in told] == ["toolcrib.decision", "toolcrib.approval", "toolcrib.started"]
    assert told[0][1] == {"toolcrib.decision.hook": "check", "toolcrib.decision.decision": "run"}
    assert told[1][1]["toolcrib.approval.approver"] == "approve_all"
    assert told[1][1]["toolcrib.approval.answer"] == "grant"
    assert told[1][1]["toolcrib.approval.at"].startswith("20")


async def test_the_event_says_that_a_call_in_doubt_was_done_and_not_run_again(watch: Watch) -> None:
    pipeline = Pipeline([refund], sinks=[watch.sink()])

    await answered_in_doubt(pipeline, lambda request: request.done(7, "ann"))

    answers = [event for span in watch.spans for event in span.events if event.name == "toolcrib.approval"]
    assert [(event.attributes or {}).get("toolcrib.approval.done") for event in answers] == [True]


async def test_origins_of_arguments_are_in_the_event_without_the_values(watch: Watch) -> None:
    @ez_tool(effect="none")
    async def read_file() -> str:
        return f"pay to {SECRET}"

    @ez_tool(effect="send")
    async def pay(recipient: str) -> str:
        return recipient

    run = Run(features=[Provenance(dry_run=True)])
    pipeline = Pipeline([read_file, pay], sinks=[watch.sink()])
    await pipeline.run(ToolCall("read_file", {}, "c1"), run)
    await pipeline.run(ToolCall("pay", {"recipient": SECRET}, "c2"), run)

    [attributes] = [found for name, found in events(watch, "execute_tool pay") if name == "toolcrib.decision"]
    assert attributes["toolcrib.decision.origins"] == ("recipient: untrusted read_file c1",)
    assert SECRET not in str(attributes)


async def test_a_denied_and_a_rejected_call_are_no_errors(watch: Watch) -> None:
    hooks = HookSet()

    @hooks.register
    async def refuse(call: Any, given: Any) -> Any:
        return Reject(f"not with {SECRET}")

    await call(watch, refund, {"order": 1}, approver=deny_all)
    await call(watch, add, {"a": 1}, hooks)

    denied, rejected = attributes(watch, "execute_tool refund"), attributes(watch, "execute_tool add")
    assert (denied["toolcrib.outcome"], denied["toolcrib.outcome.source"]) == ("rejected", "user")
    assert (rejected["toolcrib.outcome"], rejected["toolcrib.outcome.source"]) == ("rejected", "hook")
    assert {span.status.status_code for span in watch.spans} == {StatusCode.UNSET}
    assert not any(SECRET in span.to_json() for span in watch.spans)


async def test_a_retry_is_an_event(watch: Watch) -> None:
    @ez_tool
    async def picky(a: int) -> int:
        raise ModelRetry("another one")

    await call(watch, picky, {"a": 1})

    assert [name for name, _ in events(watch, "execute_tool picky")] == ["toolcrib.started", "toolcrib.retry"]


async def test_the_values_of_a_stream_are_counted_and_the_first_are_events(watch: Watch) -> None:
    await call(watch, count, {"to": 50})

    assert attributes(watch)["toolcrib.values"] == 50
    assert [name for name, _ in events(watch, "execute_tool count")].count("toolcrib.yielded") == 32


async def test_a_resumed_call_is_a_span_of_its_own_with_a_link_to_the_first(watch: Watch) -> None:
    pipeline = Pipeline([refund], sinks=[watch.sink()])
    suspended = await pipeline.run(ToolCall("refund", {"order": 1}, "c1"))
    written = json.loads(json.dumps(suspended.to_dict()))

    copy = outcome_from_dict(written)
    assert isinstance(copy, Suspended)
    elsewhere = Pipeline([refund], sinks=[watch.sink()])
    await elsewhere.run(copy, grant=copy.request.grant("ada"))

    first, second = watch.spans
    assert watch.linked(second) == [watch.place(first).span_id]
    assert (first.attributes or {})["toolcrib.outcome"] == "suspended"
    assert [event.name for event in first.events] == ["toolcrib.suspended"]
    assert [point.value for point in watch.points("toolcrib.tool.suspensions")] == [1]


async def test_a_call_that_is_resumed_where_it_was_suspended_is_linked_too(watch: Watch) -> None:
    pipeline = Pipeline([refund], sinks=[watch.sink()])
    suspended = await pipeline.run(ToolCall("refund", {"order": 1}, "c1"))
    assert isinstance(suspended, Suspended)

    await pipeline.run(suspended, grant=suspended.request.grant("ada"))

    first, second = watch.spans
    assert watch.linked(second) == [watch.place(first).span_id]


async def test_a_cancelled_call_is_closed(watch: Watch) -> None:
    began = asyncio.Event()

    @ez_tool
    async def forever() -> None:
        began.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(call(watch, forever, {}))
    await began.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert attributes(watch)["toolcrib.outcome"] == "cancelled"


async def test_measurements_have_few_attributes(watch: Watch) -> None:
    await call(watch, add, {"a": 1})
    await call(watch, add, {"a": 2})
    await call(watch, fail, {"say": "no"})

    calls = {point.attributes["gen_ai.tool.name"]: point for point in watch.points("toolcrib.tool.calls")}
    assert (calls["add"].value, calls["fail"].value) == (2, 1)
    assert dict(calls["fail"].attributes) == {
        "gen_ai.tool.name": "fail",
        "toolcrib.entry": "test",
        "toolcrib.outcome": "failed",
        "error.type": "LookupError",
    }
    assert [point.value for point in watch.points("toolcrib.tool.errors")] == [1]
    assert sum(point.count for point in watch.points("toolcrib.tool.duration")) == 3


# --- what is inside of a call


async def test_spans_of_the_tools_own_are_inside_of_the_call(watch: Watch) -> None:
    tracer = watch.tracers.get_tracer("tool")

    @ez_tool
    async def outer() -> None:
        with tracer.start_as_current_span("query"):
            await asyncio.sleep(0)

    with tracer.start_as_current_span("handler"):
        await call(watch, outer, {})

    assert watch.tree() == {"handler": {"execute_tool outer": {"query": {}}}}


async def test_spans_of_a_tool_within_an_executor_are_inside_of_the_call(watch: Watch) -> None:
    tracer = watch.tracers.get_tracer("tool")

    class Around:
        async def execute(self, call: Call, run: Callable[[], Awaitable[Any]]) -> Any:
            with tracer.start_as_current_span("around"):
                return await run()

    @ez_tool
    async def outer() -> None:
        with tracer.start_as_current_span("query"):
            await asyncio.sleep(0)

    await Pipeline([outer], sinks=[watch.sink()], executor=Around()).run(ToolCall("outer", {}))

    assert watch.tree() == {"execute_tool outer": {"around": {"query": {}}}}


async def test_so_are_those_of_hooks_and_approvers(watch: Watch) -> None:
    tracer, hooks = watch.tracers.get_tracer("tool"), HookSet()

    @hooks.register
    async def check(call: Any, given: Any) -> Any:
        with tracer.start_as_current_span("guard"):
            return RunNormally(given)

    async def ask(request: Any) -> Any:
        with tracer.start_as_current_span("person"):
            return request.grant("ada")

    await call(watch, refund, {"order": 1}, hooks, approver=ask)

    assert watch.tree() == {"execute_tool refund": {"guard": {}, "person": {}}}


async def test_a_tool_in_a_thread_is_inside_of_its_call(watch: Watch) -> None:
    tracer = watch.tracers.get_tracer("tool")

    @ez_tool
    def work() -> str:
        with tracer.start_as_current_span("query"):
            return threading.current_thread().name

    outcome = await call(watch, work, {})

    assert outcome.value != threading.main_thread().name
    assert watch.tree() == {"execute_tool work": {"query": {}}}


async def test_calls_at_the_same_time_do_not_mix(watch: Watch) -> None:
    tracer = watch.tracers.get_tracer("tool")

    @ez_tool
    async def work(n: int) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        with tracer.start_as_current_span(f"query {n}"):
            await asyncio.sleep(0)

    pipeline = Pipeline([work], sinks=[watch.sink()])
    await asyncio.gather(*(pipeline.run(ToolCall("work", {"n": n}, "same"), Run(id=f"r{n}")) for n in range(5)))

    by_id = {watch.place(span).span_id: span for span in watch.spans}
    for n in range(5):
        parent = watch.span(f"query {n}").parent
        assert parent is not None
        assert (by_id[parent.span_id].attributes or {})["toolcrib.run.id"] == f"r{n}"


async def test_a_stream_keeps_its_spans_to_itself(watch: Watch, caplog: pytest.LogCaptureFixture) -> None:
    tracer = watch.tracers.get_tracer("tool")

    @ez_tool
    async def steps() -> Any:
        with tracer.start_as_current_span("whole"):
            yield 1
            with tracer.start_as_current_span("step"):
                yield 2

    with tracer.start_as_current_span("taker") as taker:
        async for _ in Pipeline([steps], sinks=[watch.sink()]).stream(ToolCall("steps", {})):
            assert get_current_span() is taker

    assert watch.tree() == {"taker": {"execute_tool steps": {"whole": {"step": {}}}}}
    assert caplog.text == ""


async def test_a_stream_may_be_left_and_taken_by_other_tasks(watch: Watch, caplog: pytest.LogCaptureFixture) -> None:
    pipeline = Pipeline([count], sinks=[watch.sink()])
    values = pipeline.stream(ToolCall("count", {"to": 5}))

    for _ in range(2):
        await asyncio.create_task(anext(values))
    await asyncio.create_task(values.aclose())

    assert attributes(watch)["toolcrib.outcome"] == "cancelled"
    assert caplog.text == ""


async def test_a_call_that_is_thrown_away_logs_nothing(watch: Watch, caplog: pytest.LogCaptureFixture) -> None:
    @ez_tool
    async def forever() -> None:
        await asyncio.Event().wait()

    running = Pipeline([forever], sinks=[watch.sink()]).run(ToolCall("forever", {}))
    context = contextvars.copy_context()
    context.run(running.send, None)
    running.close()

    assert attributes(watch)["toolcrib.outcome"] == "cancelled"
    assert caplog.text == ""
    assert not get_current_span().get_span_context().is_valid


async def test_an_exporter_that_fails_fails_no_call(watch: Watch) -> None:
    class Broken:
        def on_start(self, *given: Any, **more: Any) -> None:
            raise RuntimeError("no collector")

        def on_end(self, *given: Any) -> None:
            raise RuntimeError("no collector")

        def _on_ending(self, *given: Any) -> None:
            raise RuntimeError("no collector")

        def shutdown(self) -> None: ...

        def force_flush(self, *given: Any) -> bool:
            return True

    watch.tracers.add_span_processor(Broken())  # pyright: ignore[reportArgumentType] -- it does what one does
    outcome = await call(watch, add, {"a": 1})

    assert outcome.value == 2


async def test_nothing_is_kept_of_calls_that_ended(watch: Watch) -> None:
    sink = watch.sink()
    pipeline = Pipeline([add], sinks=[sink])

    for n in range(3):
        await pipeline.run(ToolCall("add", {"a": n}, f"c{n}"), Run(id="r"))

    assert [sink.carry("call", f"c{n}", "r") for n in range(3)] == [{}, {}, {}]


async def test_without_a_provider_a_call_is_as_without_the_sink() -> None:
    from toolcrib.telemetry import OtelSink  # noqa: PLC0415 -- with the process's own providers, which are none

    outcome = await Pipeline([add], sinks=[OtelSink(arguments=True, results=True)]).run(ToolCall("add", {"a": 1}))

    assert outcome.to_dict()["value"] == 2


async def test_a_sink_says_whether_spans_go_anywhere_and_has_them_exported(watch: Watch) -> None:
    kept = InMemorySpanExporter()
    watch.tracers.add_span_processor(BatchSpanProcessor(kept, schedule_delay_millis=60_000))
    sink = watch.sink()

    await Pipeline([add], sinks=[sink]).run(ToolCall("add", {"a": 1}))
    before = kept.get_finished_spans()
    sink.flush()

    assert sink.has_provider
    assert (len(before), len(kept.get_finished_spans())) == (0, 1)
