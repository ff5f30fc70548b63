"""The console over a Postgres server: what is kept there is shown, and answered there."""

from __future__ import annotations

from tests.console.conftest import Console, serve_app
from tests.postgres import Postgres
from toolcrib.approvals import PostgresApprovalStore
from toolcrib.calls import Grant, Suspended, ToolCall
from toolcrib.console import ConsoleOptions, console_app
from toolcrib.pipeline import Pipeline, Run
from toolcrib.record import PostgresSink, postgres_events
from toolcrib.tools import tool
from toolcrib.toolsets import Toolset


async def test_a_call_that_waits_on_a_server_is_answered_there(postgres: Postgres) -> None:
    @tool(requires_approval=True)
    async def refund(cents: int) -> int:
        return cents

    url = postgres.url("console")
    store = PostgresApprovalStore(url)
    pipeline = Pipeline(Toolset([refund]))
    with PostgresSink(url) as sink, serve_app(console_app(postgres_events(url), store, ConsoleOptions())) as port:
        console = Console(port)
        scope = Run(sinks=(sink,), approvals=store, principal="bob")
        outcome = await pipeline.run(ToolCall("refund", {"cents": 5}, "c1"), scope)
        assert isinstance(outcome, Suspended)
        sink.flush()

        (shown,) = console.get("/api/activities?text=REFUND&status=suspended&principal=bob").json["activities"]
        (asked,) = console.get("/api/inbox").json["requests"]
        sent = {"request": asked["id"], "answer": "approve", "arguments": '{"cents": 3}', "name": "Ann"}
        assert console.post("/api/answer", sent).status == 200

        assert (shown["id"], shown["status"]) == ("c1", "suspended")
        answer = (await store.show(asked["id"])).answer
        assert isinstance(answer, Grant)
        assert (answer.by, answer.override_args) == ("Ann (console)", {"cents": 3})
