"""What somebody writes who is new to durable work: the error says what is meant here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolcrib.adapters.dbos import Client, DurableAgent, Engine, Queue, RetryPolicy
from toolcrib.turns import Agent

AGENT = Agent("newcomers", "Has no tools.", [], register=False)


@pytest.mark.parametrize(
    ("write", "mend"),
    [
        (lambda: Engine("a.db", record="record.db"), "record is 'record.db'; give True or False"),
        (
            lambda: Engine("a.db", approvals="appr.db"),
            r"Engine: approvals must be a store, as in approvals=SqliteApproval",
        ),
        (
            lambda: Client("a.db", approvals="appr.db"),
            r"Client: approvals must be a store, as in approvals=SqliteApproval",
        ),
        (lambda: Engine("a.db", queues=["s"]), r"queues=\[Queue\('mail'\)\], and not \['s'\]"),
        (lambda: Engine("a.db", queues=Queue("s")), r"queues=\[Queue\('mail'\)\], and not Queue"),
        (lambda: Engine("a.db", queues="s"), r"queues=\[Queue\('mail'\)\], and not 's'"),
        (lambda: Engine("a.db", concurrency=1), r"Here it is an option of a queue: .* Queue\('mail', concurrency="),
        (lambda: DurableAgent(AGENT, database="a.db"), r"Here it is `Engine\(database\)` or `Client\(database\)`"),
        (lambda: DurableAgent(AGENT, base=None), "DurableAgent has no option `base`. There are: `agent`, `client`, `q"),
        (lambda: DurableAgent(AGENT, client="a.db"), r"client=Client\('work.db'\), and not 'a.db'"),
        (lambda: DurableAgent(AGENT, retries=3), r"retries=\{'mail': RetryPolicy\(3\)\}, and not 3"),
        (lambda: DurableAgent(AGENT, retries={"mail": 3}), r"retries=\{'mail': RetryPolicy\(3\)\}, and not"),
        (lambda: Queue("s", rate="3/minute"), r"rate=\(100, 60.0\), and not '3/minute'"),
        (lambda: Queue("s", rate=100), r"rate=\(100, 60.0\), and not 100"),
        (lambda: Queue("s", rate=(3, "minute")), "the time of rate must be a number of seconds, and is 'minute'"),
        (lambda: Queue("s", rate=("3", 60)), "the number of rate must be a whole number, and is '3'"),
        (lambda: Queue("s", rate=(None, 60)), r"rate=\(100, 60.0\), and not \(None, 60\)"),
        (lambda: Queue("s", partition_rate="3/minute"), r"partition_rate=\(100, 60.0\), and not '3/minute'"),
        (lambda: Queue("s", retry=3), r"retry=RetryPolicy\(3\), and not 3"),
        (lambda: Queue(5), "name is 5; give a text"),
    ],
)
def test_a_value_of_another_kind_is_refused_where_it_is_given(
    write: Callable[[], Any], mend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises((TypeError, ValueError), match=mend):
        write()

    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("verb", ["approve", "deny", "done"])
async def test_an_answer_is_about_a_request(verb: str, tmp_path: Path) -> None:
    agent = DurableAgent(AGENT)
    async with Client(tmp_path / "work.db") as client:
        agent.use(client)
        with pytest.raises(TypeError, match="an answer is about one request, or its id"):
            await getattr(agent, verb)(True, *(["result"] if verb == "done" else []))


def test_what_is_meant_is_taken() -> None:
    assert Queue("s", rate=(3, 60), retry=RetryPolicy(3)).rate == (3, 60)
    assert Engine("a.db", queues=iter([Queue("s")])).queues == (Queue("s"),)
