"""What a server asks during a call, passed on to the client that made it: what the host lets through, and no more."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

import pytest

import tests.adapters.mcp_client.asking_server as module
from tests.adapters.mcp_client.asking_server import PAGE, REQUESTS, Asking
from tests.adapters.mcp_client.servers import outcome_of, serving
from tests.networks import free_port
from toolcrib.adapters.mcp_client import ServerToolset, connect
from toolcrib.approvals import deny_all
from toolcrib.calls import ApprovalRequest, Completed, Grant
from toolcrib.pipeline import Channel, Run
from toolcrib.schema import ClientFeature, ClientRoot, Elicited, ElicitRequest, LogLine, Sampled, SampleRequest

both_generations = pytest.mark.parametrize("mode", ["auto", "legacy"])


class FakeClient:
    """A client that can do all that `can` names, and keeps what it was asked."""

    def __init__(self, *features: ClientFeature, name: str = "Ann") -> None:
        self.features = features or ("elicit", "elicit_url", "sample", "sample_tools", "roots", "log")
        self.name, self.asked = name, list[Any]()
        self.folders: Sequence[ClientRoot] = [ClientRoot("file:///home/ann"), ClientRoot("file:///srv/data/ann")]

    def can(self, feature: ClientFeature) -> bool:
        return feature in self.features

    async def elicit(self, request: ElicitRequest) -> Elicited[dict[str, Any]]:
        self.asked.append(request)
        await asyncio.sleep(0)
        return Elicited("accept", None if request.url else {"name": self.name})

    async def sample(self, request: SampleRequest) -> Sampled:
        self.asked.append(request)
        return Sampled([{"type": "text", "text": f"four, says {self.name}"}], "model", "endTurn")

    async def roots(self) -> Sequence[ClientRoot]:
        return self.folders

    async def log(self, line: LogLine) -> None:
        self.asked.append(line)


async def asked(server: ServerToolset, run: Run, what: str, times: int = 1, name: str = "ask") -> str:
    """Return what a call comes to in which the server asks for something."""
    async with server.open() as tools:
        return (await outcome_of(tools, name, run=run, what=what, times=times)).text()


def asking(mode: str, **options: Any) -> ServerToolset:
    return connect(Asking().server(), name="asking", mode=mode, **options)


@both_generations
async def test_a_form_is_filled_in_at_the_client_that_made_the_call(mode: str) -> None:
    ann = FakeClient()

    said = await asked(asking(mode), Run(channel=Channel(client=ann), approver=deny_all), "form")

    assert said == str({"action": "accept", "content": {"beds": 1, "name": "Ann"}})
    assert ann.asked == [ElicitRequest("asking asks: Who sleeps here?", REQUESTS["form"].params.requested_schema)]


@both_generations
async def test_so_is_a_page_to_visit(mode: str) -> None:
    ann = FakeClient()

    said = await asked(asking(mode), Run(channel=Channel(client=ann)), "page")

    assert said == str({"action": "accept"})
    assert (ann.asked[0].url, ann.asked[0].id[:8]) == (PAGE, "asking: ")


@both_generations
async def test_its_model_is_asked_where_the_host_lets_it_and_knows_who_wants_it(mode: str) -> None:
    ann = FakeClient()

    said = await asked(asking(mode, ask_client=["sampling"]), Run(channel=Channel(client=ann)), "sampling")

    assert "four, says Ann" in said
    assert ann.asked[0].params == {
        "messages": [{"role": "user", "content": {"type": "text", "text": "What is the sum?"}}],
        "maxTokens": 10,
        "_meta": {"toolcrib/source": {"server": "asking", "tool": "ask"}},
    }  # of no other server's context


@both_generations
async def test_its_model_is_not_asked_by_default(mode: str) -> None:
    ann = FakeClient()

    said = await asked(asking(mode), Run(channel=Channel(client=ann)), "sampling")

    assert "Sampling not supported" in said
    assert ann.asked == []


@both_generations
@pytest.mark.parametrize("says_yes", [True, False])
async def test_a_person_may_have_to_approve_each_request_to_the_model(mode: str, says_yes: bool) -> None:
    ann, requests = FakeClient(), list[ApprovalRequest]()

    async def person(request: ApprovalRequest) -> Any:
        requests.append(request)
        return request.grant() if says_yes else request.deny()

    options: dict[str, Any] = {"ask_client": ["sampling"], "approve_sampling": True}
    said = await asked(asking(mode, **options), Run(channel=Channel(client=ann), approver=person), "sampling")

    assert ("four" in said, bool(ann.asked)) == (says_yes, says_yes)
    assert requests[0].asked_by == "asking"
    assert requests[0].arguments == {"messages": ["user: What is the sum?"], "max_tokens": 10}


async def test_a_long_request_to_the_model_is_shown_to_its_end_and_the_cut_is_said() -> None:
    requests = list[ApprovalRequest]()

    async def person(request: ApprovalRequest) -> Any:
        requests.append(request)
        return request.deny()

    options: dict[str, Any] = {"ask_client": ["sampling"], "approve_sampling": True}
    await asked(asking("auto", **options), Run(channel=Channel(client=FakeClient()), approver=person), "long sampling")

    shown = requests[0].arguments
    assert shown["messages"][0].endswith(" and mail it to Eve.")
    assert "\n[... 1026 of 3026 characters cut ...]\n" in shown["messages"][0]
    assert "\n[... 500 of 2500 characters cut ...]\n" in shown["system_prompt"]


@both_generations
async def test_of_its_folders_a_server_learns_those_that_the_host_allows(mode: str) -> None:
    ann = FakeClient()

    within = await asked(
        asking(mode, roots=["/srv/data", "/home/ann/notes"]), Run(channel=Channel(client=ann)), "roots"
    )
    every = await asked(asking(mode, ask_client=True), Run(channel=Channel(client=ann)), "roots")
    no_client = await asked(asking(mode, roots=["/srv/data"]), Run(), "roots")
    default = await asked(asking(mode), Run(channel=Channel(client=ann)), "roots")

    assert within == str({"roots": [{"uri": "file:///home/ann/notes"}, {"uri": "file:///srv/data/ann"}]})
    assert every == str({"roots": [{"uri": "file:///home/ann"}, {"uri": "file:///srv/data/ann"}]})
    assert no_client == str({"roots": [{"uri": "file:///srv/data"}]})
    assert "not supported" in default


@both_generations
async def test_a_root_is_not_inside_another_by_its_spelling(mode: str) -> None:
    ann = FakeClient()
    ann.folders = [ClientRoot(f"file:///srv/{path}") for path in ("database", "data/../etc", "data%2f..%2fetc", "")]

    said = await asked(asking(mode, roots=["/srv/data"]), Run(channel=Channel(client=ann)), "roots")

    assert said == str({"roots": [{"uri": "file:///srv/data"}]})


@both_generations
async def test_its_log_has_the_lines_up_to_a_limit(mode: str) -> None:
    ann, bob = FakeClient(), FakeClient()

    await asked(asking(mode), Run(channel=Channel(client=ann)), "", 10_000, "log")
    await asked(asking(mode, ask_client=["forms"]), Run(channel=Channel(client=bob)), "", 1, "log")

    assert ann.asked[0] == LogLine("info", "line 0", "asking: it")
    assert len(ann.asked) == 1_001
    assert "more than 1000 lines" in ann.asked[-1].data
    assert bob.asked == []


@both_generations
@pytest.mark.parametrize("given", [False, [], ["logs"]])
async def test_where_the_host_does_not_let_it_the_approver_is_asked_and_not_the_client(mode: str, given: Any) -> None:
    ann = FakeClient()

    async def person(request: ApprovalRequest) -> Grant:
        return request.grant(override_args={"name": "Bob"})

    said = await asked(asking(mode, ask_client=given), Run(channel=Channel(client=ann), approver=person), "form")

    assert "Bob" in said
    assert ann.asked == []


@both_generations
async def test_a_server_asks_a_limited_number_of_times_during_a_call(mode: str) -> None:
    ann = FakeClient()

    said = await asked(asking(mode), Run(channel=Channel(client=ann)), "form", 25)

    assert len(ann.asked) == 20
    assert said.count("decline") == 5


@both_generations
@pytest.mark.parametrize(
    ("url", "words"),
    [("javascript:alert(1)", "http"), ("file:///etc", "http"), ("https://a@evil.org/", "user name")],
)
async def test_no_one_is_sent_to_a_page_that_is_none(mode: str, url: str, words: str) -> None:
    ann, server = FakeClient(), Asking()
    server.requests["page"] = REQUESTS["page"].model_copy(
        update={"params": REQUESTS["page"].params.model_copy(update={"url": url})}
    )

    said = await asked(connect(server.server(), mode=mode), Run(channel=Channel(client=ann)), "page")

    assert words in said
    assert ann.asked == []


@both_generations
@pytest.mark.parametrize(
    ("message", "fields", "words"),
    [("?" * 10_001, 1, "10000 characters"), ("Who?", 101, "100 fields"), ("Who?", 100, "65536 characters")],
)
async def test_a_huge_form_is_not_shown(mode: str, message: str, fields: int, words: str) -> None:
    ann, server = FakeClient(), Asking()
    parts = {f"f{number}": {"type": "string", "description": "x" * 1_000} for number in range(fields)}
    form = {"message": message, "requested_schema": {"type": "object", "properties": parts}}
    server.requests["form"] = REQUESTS["form"].model_copy(
        update={"params": REQUESTS["form"].params.model_copy(update=form)}
    )

    said = await asked(connect(server.server(), mode=mode), Run(channel=Channel(client=ann)), "form")

    assert words in said
    assert ann.asked == []


@both_generations
async def test_a_call_that_wants_a_page_visited_first_is_made_again_after_that(mode: str) -> None:
    ann, server = FakeClient(), Asking()

    said = await asked(
        connect(server.server(), name="asking", mode=mode), Run(channel=Channel(client=ann)), "", 1, "locked"
    )

    assert said == "done"
    assert [one.url for one in ann.asked] == [PAGE]
    assert server.calls == 2


@both_generations
async def test_where_no_person_visits_it_the_model_is_told_of_the_page(mode: str) -> None:
    server = Asking()

    said = await asked(connect(server.server(), name="asking", mode=mode), Run(), "", 1, "locked")

    assert PAGE in said
    assert server.calls == 1


async def test_what_a_server_asks_after_the_call_is_refused() -> None:
    ann, server = FakeClient(), Asking()

    async with connect(server.server(), name="asking", mode="legacy", ask_client=True).open() as tools:
        await outcome_of(tools, "late", run=Run(channel=Channel(client=ann)))
        assert server.later is not None
        server.ended.set()
        *refused, roots = await server.later

    assert all("cannot be tied to one call" in text for text in refused)
    assert roots == str({"roots": []})
    assert ann.asked == []


async def test_two_principals_calls_at_once_are_asked_nothing_over_a_connection_that_does_not_tell_them_apart() -> None:
    ann, bob = FakeClient(name="Ann"), FakeClient(name="Bob")
    command = [sys.executable, "-m", module.__name__]

    async with connect(command, name="asking", mode="legacy").open() as tools:
        both = await asyncio.gather(
            *(
                outcome_of(
                    tools, "ask", run=Run(channel=Channel(client=client), principal=client.name), what="form", times=5
                )
                for client in (ann, bob)
            )
        )
        alone = await outcome_of(tools, "ask", run=Run(channel=Channel(client=ann), principal="Ann"), what="form")

    texts = [outcome.text() for outcome in both]
    assert "Bob" not in texts[0]
    assert "Ann" not in texts[1]
    assert any("cannot be tied to one call" in text for text in texts)
    assert isinstance(alone, Completed)
    assert "Ann" in alone.text()


@both_generations
async def test_over_http_each_of_many_calls_at_once_is_asked_at_its_own_client(mode: str) -> None:
    port, server, clients = free_port(), Asking(), [FakeClient(name=f"client {number}") for number in range(10)]
    everything: Any = {"mode": mode, "ask_client": True}

    async with (
        serving(server.server().streamable_http_app(), port),
        connect(f"http://127.0.0.1:{port}/mcp", name="asking", **everything).open() as tools,
    ):
        calls = [
            (
                client,
                outcome_of(tools, "ask", run=Run(channel=Channel(client=client), principal=client.name), what=what),
            )
            for _ in range(3)
            for client in clients
            for what in ("form", "sampling")
        ]
        outcomes = await asyncio.gather(*(call for _, call in calls))

    said = [(client.name, outcome.text()) for (client, _), outcome in zip(calls, outcomes, strict=True)]
    assert [name for name, text in said if f"{name}'" not in text] == []
    assert [len(client.asked) for client in clients] == [6] * 10


@pytest.mark.parametrize("given", ["forms", ["form"]])
def test_a_kind_that_there_is_not_is_an_error(given: Any) -> None:
    with pytest.raises(ValueError, match="forms, urls, sampling, roots, logs"):
        connect("server", ask_client=given)


async def test_a_question_is_not_for_a_call_whose_client_has_left_one_unanswered() -> None:
    was_asked = asyncio.Event()

    class Gone(FakeClient):
        async def elicit(self, request: Any) -> Any:
            was_asked.set()
            await asyncio.Event().wait()

    gone, ann = Gone(name="Ann"), FakeClient(name="Ann")
    command = [sys.executable, "-m", module.__name__]

    async with connect(command, name="asking", mode="legacy").open() as tools:
        left = asyncio.create_task(
            outcome_of(tools, "ask", run=Run(channel=Channel(client=gone), principal="Ann"), what="form")
        )
        await was_asked.wait()
        outcome = await outcome_of(tools, "ask", run=Run(channel=Channel(client=ann), principal="Ann"), what="form")
        left.cancel()

    assert isinstance(outcome, Completed)
    assert len(ann.asked) == 1
