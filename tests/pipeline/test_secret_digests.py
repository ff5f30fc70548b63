"""Digests of arguments with secrets: bound to exactly these, and of no use to who tries all PINs."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest
from pydantic import SecretStr

from toolcrib.approvals import MemoryApprovalStore, SqliteApprovalStore, digest
from toolcrib.calls import ApprovalRequest, Completed, Failed, Suspended, ToolCall
from toolcrib.pipeline import Pipeline, Run
from toolcrib.record import ListSink
from toolcrib.tools import ez_tool


@ez_tool(requires_approval=True, effect="spend")
async def pay(pin: SecretStr) -> str:
    return "paid"


@ez_tool(requires_approval=True)
async def greet(name: str) -> str:
    return f"hello {name}"


CALL = ToolCall("pay", {"pin": "4711"}, "call_1")


async def _asked(run: Run, pin: str = "4711", call_id: str = "call_1") -> Suspended:
    outcome = await Pipeline([pay]).run(ToolCall("pay", {"pin": pin}, call_id), run)
    assert isinstance(outcome, Suspended)
    return outcome


async def test_nothing_readable_has_the_plain_digest_of_a_secret(tmp_path: Path) -> None:
    store, sink = SqliteApprovalStore(tmp_path / "approvals.db"), ListSink()
    run = Run(approvals=store, sinks=[sink])
    asked = await _asked(run)
    await store.answer(asked.request.grant("ann"))

    outcome = await Pipeline([pay]).run(asked, run)

    assert isinstance(outcome, Completed)
    entries = [(entry.request.to_dict(), entry.answer) for entry in await store.list()]
    told = json.dumps([entries, [event.to_dict() for event in sink.events]], default=str)
    told += (tmp_path / "approvals.db").read_bytes().decode("latin-1")
    assert asked.request.digest in told
    assert digest("pay", {"pin": "4711"}) not in told


async def test_the_id_of_a_doubt_does_not_follow_from_a_plain_digest() -> None:
    run = Run()

    outcome = await Pipeline([pay]).recover(CALL, run, begun=1)

    assert isinstance(outcome, Suspended)
    doubt = f"toolcrib:in-doubt:{run.id}:call_1:1:{digest('pay', {'pin': '4711'})}"
    assert outcome.request.id != f"ask_{uuid5(NAMESPACE_URL, doubt).hex}"


async def test_an_answer_is_for_exactly_these_secrets() -> None:
    run = Run()
    asked, other = await _asked(run), await _asked(run, "4712")
    assert asked.request.digest != other.request.digest

    outcome = await Pipeline([pay]).run(other, run, grant=asked.request.grant(request_id=other.request.id))

    assert isinstance(outcome, Failed)
    assert "the arguments changed" in outcome.message


async def test_two_processes_with_one_store_have_the_same_digests(tmp_path: Path) -> None:
    first, second = (SqliteApprovalStore(tmp_path / "approvals.db") for _ in range(2))
    asked = await _asked(Run(approvals=first, principal="ann"))
    await first.answer(asked.request.always("ann", scope="arguments"))

    call = ToolCall("pay", {"pin": "4711"}, "call_2")
    outcome = await Pipeline([pay]).run(call, Run(approvals=second, principal="ann"))
    other = await _asked(Run(approvals=second, principal="ann"), "4712", "call_3")

    assert isinstance(outcome, Completed)
    assert await first.digest_key() == await second.digest_key()
    assert other.request.digest != asked.request.digest


async def test_each_store_has_a_key_of_its_own(tmp_path: Path) -> None:
    stores = [SqliteApprovalStore(tmp_path / "one.db"), SqliteApprovalStore(tmp_path / "two.db"), MemoryApprovalStore()]

    digests = {(await _asked(Run(approvals=store))).request.digest for store in stores}

    assert len(digests) == 3


@pytest.mark.processes
async def test_a_call_goes_on_in_a_process_that_has_no_store(tmp_path: Path) -> None:
    asked = await _asked(Run())
    (tmp_path / "call.json").write_text(json.dumps(asked.to_dict()))
    program = """
        import asyncio, json, sys
        from toolcrib.calls import outcome_from_dict
        from toolcrib.pipeline import Pipeline, Run
        from tests.pipeline.test_secret_digests import pay

        async def main():
            asked = outcome_from_dict(json.load(open(sys.argv[1])))
            print((await Pipeline([pay]).run(asked, Run(), grant=asked.request.grant("ann"))).text())

        asyncio.run(main())
    """

    command = [sys.executable, "-c", dedent(program), str(tmp_path / "call.json")]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)

    assert done.stdout == "paid\n"


async def test_a_call_of_an_earlier_version_goes_on_with_its_digest() -> None:
    asked = await _asked(Run())
    data: dict[str, Any] = json.loads(json.dumps(asked.to_dict()))
    plain = digest("pay", {"pin": "4711"})
    data["request"]["digest"] = data["call"]["request"]["digest"] = plain
    del data["call"]["digest_key"], data["call"]["version"]
    request = ApprovalRequest.from_dict(data["request"])

    suspended = Suspended("pay", "call_1", request, data["call"])
    outcome = await Pipeline([pay]).run(suspended, Run(), grant=request.grant("ann"))

    assert outcome.text() == "paid"


async def test_the_digest_of_what_is_shown_is_the_same_everywhere() -> None:
    outcome = await Pipeline([greet]).run(ToolCall("greet", {"name": "ann"}), Run(approvals=MemoryApprovalStore()))

    assert outcome.request.digest == digest("greet", {"name": "ann"})
