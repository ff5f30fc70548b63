"""A call that waited is taken up, also in another process."""

import json
import pickle
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from typing import Annotated, Any
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr
from pydantic_core import to_jsonable_python

from tests.effort import examples
from tests.pipeline.calling import pay, suspended
from toolcrib._run_sync import run_sync
from toolcrib.approvals import MemoryApprovalStore, approve_all
from toolcrib.calls import (
    ApprovalRequest,
    Completed,
    Denial,
    Failed,
    Outcome,
    Rejected,
    Suspended,
    ToolCall,
    outcome_from_dict,
)
from toolcrib.pipeline import Pipeline, Run
from toolcrib.schema import Redacted, RunContext
from toolcrib.testing import RecordingSink
from toolcrib.tools import BaseTool, ez_tool
from toolcrib.toolsets import Toolset


class Colour(Enum):
    RED = "red"


class Address(BaseModel):
    street: str
    codes: dict[str, Annotated[str, Redacted]] = {}


@ez_tool(requires_approval=True)
async def everything(
    when: datetime,
    price: Decimal,
    tags: set[str],
    where: Address,
    id: UUID,
    path: PurePosixPath,
    data: bytes,
    wait: timedelta,
    colour: Colour = Colour.RED,
    pair: tuple[int, str] = (1, "a"),
    password: SecretStr | None = None,
    number: float = float("inf"),
    *more: int,
    **rest: Any,
) -> Any:
    return dict(locals())


def as_json(value: Any) -> Any:
    return to_jsonable_python(value) if isinstance(value, timedelta) else str(value)


@settings(max_examples=examples(40))
@given(
    st.fixed_dictionaries(
        {
            "when": st.datetimes(timezones=st.just(UTC)),
            "price": st.decimals(allow_nan=False, allow_infinity=False, places=2),
            "tags": st.lists(st.text(max_size=4), max_size=3),
            "where": st.builds(lambda s, c: {"street": s, "codes": c}, st.text(max_size=4), st.just({"door": "4711"})),
            "id": st.uuids(),
            "path": st.just("/a/b"),
            "data": st.binary(max_size=4).map(lambda data: data.hex()),
            "wait": st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=9)),
        },
        optional={
            "pair": st.tuples(st.integers(), st.text(max_size=4)).map(list),
            "password": st.text(max_size=4),
            "number": st.floats(allow_nan=False),
            "more": st.lists(st.integers(), max_size=2),
            "extra": st.integers(),
        },
    )
)
def test_a_call_is_resumed_from_json_with_the_arguments_that_were_approved(arguments: dict[str, Any]) -> None:
    direct, resumed = run_sync(both_ways(json.dumps(arguments, default=as_json)))

    assert isinstance(direct, Completed)
    assert isinstance(resumed, Completed), resumed
    assert resumed.value == direct.value


async def both_ways(raw: str) -> tuple[Outcome, Outcome]:
    """Return what a call comes to when it is approved at once, and when it is written down in between."""
    pipeline = Pipeline([everything])
    direct = await pipeline.run(ToolCall("everything", raw), Run(approver=approve_all))
    waiting = await suspended(pipeline, raw, "everything")
    restored = outcome_from_dict(json.loads(json.dumps(waiting.to_dict())))
    assert isinstance(restored, Suspended)
    return direct, await Pipeline([everything]).run(restored, grant=waiting.request.grant())


async def test_a_call_is_resumed_from_a_pickle() -> None:
    waiting = pickle.loads(pickle.dumps(await suspended(Pipeline([pay]))))

    outcome = await Pipeline([pay]).run(waiting, grant=waiting.request.grant())

    assert isinstance(outcome, Completed)


async def test_metadata_of_the_call_survives_as_far_as_json_can_hold_it() -> None:
    seen: list[Any] = []

    def pre(ctx: Any, args: Any, metadata: dict[str, Any]) -> Any:
        metadata.update(user="ann", handle=object())
        return args

    def post(ctx: Any, result: Any, metadata: dict[str, Any]) -> Any:
        seen.append(metadata["user"])
        return result

    pipeline = Pipeline(Toolset([pay], pre_hooks={"pay": pre}, post_hooks={"pay": post}))
    waiting = await suspended(pipeline)
    restored = outcome_from_dict(json.loads(json.dumps(waiting.to_dict())))

    await pipeline.run(restored, grant=waiting.request.grant())

    assert seen == ["ann"]


async def test_a_resumed_call_asks_again_whether_the_tool_is_available() -> None:
    there = True

    class Pay(BaseTool):
        requires_approval = True

        def is_available(self, ctx: RunContext) -> bool:
            return there

        async def call(self, ctx: RunContext) -> None: ...

    pipeline = Pipeline([Pay])
    waiting = await suspended(pipeline, {})
    there = False

    outcome = await pipeline.run(waiting, grant=waiting.request.grant())

    assert isinstance(outcome, Failed)
    assert outcome.code == "not_available"


async def test_a_tool_that_changed_meanwhile_is_a_failure() -> None:
    waiting = await suspended(Pipeline([pay]))
    restored = outcome_from_dict(json.loads(json.dumps(waiting.to_dict())))
    assert isinstance(restored, Suspended)

    @ez_tool(name="pay", requires_approval=True)
    async def new_pay(euros: int) -> None: ...

    changed = await Pipeline([new_pay]).run(restored, grant=waiting.request.grant())
    gone = await Pipeline([]).run(restored, grant=waiting.request.grant())

    assert isinstance(changed, Failed)
    assert (changed.code, changed.retryable) == ("approval_error", False)
    assert isinstance(gone, Failed)
    assert gone.code == "unknown_tool"


async def test_a_resumed_call_needs_approval_even_if_the_policy_has_changed_its_mind() -> None:
    waiting = await suspended(Pipeline([pay]))

    @ez_tool(name="pay")
    async def free_pay(cents: int, to: str = "ann") -> None: ...

    outcome = await Pipeline([free_pay]).run(waiting)

    assert isinstance(outcome, Suspended)


class Settled(BaseTool):
    """A tool whose call waits, and of which something else says that it need not."""

    name = "settled"
    asks, settler = True, "ann"

    async def call(self, ctx: RunContext[Any]) -> str:
        return f"done by the word of {ctx.approved_by}"

    def requires_approval(self, arguments: Any, ctx: Any) -> bool:
        return self.asks

    async def get_settler(self, request: ApprovalRequest) -> str | None:
        if self.settler == "nobody":
            raise OSError("the file is gone")
        return self.settler or None


async def settled_meanwhile(settler: str, *, asks: bool = False, denied: bool = False) -> Outcome:
    tool, run = Settled(), Run(approvals=MemoryApprovalStore())
    pipeline = Pipeline([tool])
    waiting = await pipeline.run(ToolCall("settled", {}), run)
    assert isinstance(waiting, Suspended)
    if denied:
        await run.approvals.answer(waiting.request.deny(message="no", by="bob"))
    tool.asks, tool.settler = asks, settler
    return await pipeline.run(waiting, run)


async def test_what_is_settled_by_other_means_goes_on_by_the_word_of_who_did_so() -> None:
    settled, open_still = await settled_meanwhile("ann"), await settled_meanwhile("")

    assert isinstance(settled, Completed)
    assert settled.value == "done by the word of ann"
    assert isinstance(open_still, Suspended)


async def test_a_policy_that_asks_still_an_answer_and_a_failure_stand_against_that() -> None:
    asked, denied = await settled_meanwhile("ann", asks=True), await settled_meanwhile("ann", denied=True)
    failed = await settled_meanwhile("nobody")

    assert isinstance(asked, Suspended)
    assert isinstance(denied, Rejected)
    assert isinstance(failed, Failed)
    assert failed.code == "hook_error"


async def test_a_denial_in_a_record_says_who_and_why() -> None:
    sink = RecordingSink()
    pipeline = Pipeline([pay], sinks=[sink])
    waiting = await suspended(pipeline)

    await pipeline.run(waiting, grant=Denial("pay", "bob", waiting.call_id, message="no"))

    record = sink.records[-1]
    assert record.approval is not None
    assert (record.approval["kind"], record.approval["approver"], record.approval["message"]) == ("denial", "bob", "no")
    assert record.approval["digest"] == waiting.request.digest


async def test_a_tool_that_took_anothers_place_is_not_given_its_arguments() -> None:
    waiting = await suspended(Pipeline([pay]))

    @ez_tool(name="pay", requires_approval=True)
    async def again(cents: str) -> str:
        raise AssertionError("not with the arguments of the other")

    outcome = await Pipeline([again]).run(waiting, grant=waiting.request.grant("ann"))

    assert isinstance(outcome, Failed)
    assert outcome.code == "approval_error"
    assert "have changed since it was asked (`pay` cannot take these arguments: cents: " in outcome.message
