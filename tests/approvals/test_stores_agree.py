"""The store in a file does what the one in memory does, whatever is asked and answered in whatever order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.effort import examples
from toolcrib.approvals import MemoryApprovalStore, SqliteApprovalStore
from toolcrib.calls import ApprovalRequest, Denial, Grant
from toolcrib.errors import ApprovalError

Store = MemoryApprovalStore | SqliteApprovalStore

requests = st.builds(
    ApprovalRequest,
    id=st.sampled_from(["ask_1", "ask_2", "ask_3"]),
    call_id=st.sampled_from(["call_1", "call_2"]),
    tool=st.sampled_from(["refund", "pay"]),
    arguments=st.just({"cents": 5}),
    digest=st.sampled_from(["d5", "d6"]),
    principal=st.sampled_from([None, "bob"]),
)
answers = st.one_of(
    requests.map(lambda request: request.grant("ann")),
    requests.map(lambda request: request.grant("ann", override_args={"cents": 4})),
    requests.map(lambda request: request.always("ann")),
    requests.map(lambda request: request.always("ann", scope="arguments")),
    requests.map(lambda request: request.deny(message="no", by="ann")),
    requests.map(lambda request: request.grant(request_id=None)),
    requests.map(lambda request: request.grant(scope="tool", request_id=None, principal="*")),
)


class TwoStores(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.runner = asyncio.Runner()
        self.stores: tuple[Store, Store] = (
            MemoryApprovalStore(),
            SqliteApprovalStore(Path(self.folder.name) / "approvals.db"),
        )

    def teardown(self) -> None:
        self.runner.close()
        self.folder.cleanup()

    def both(self, act: Callable[[Store], Coroutine[Any, Any, Any]]) -> Any:
        in_memory, in_file = (self.runner.run(self.tried(act(store))) for store in self.stores)
        assert in_memory == in_file
        return in_memory

    async def tried(self, act: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await act
        except ApprovalError as error:
            return str(error).replace(self.stores[1].place, "this process")  # it names the store

    @rule(request=requests)
    def put(self, request: ApprovalRequest) -> None:
        self.both(lambda store: store.put(request))

    @rule(answer=answers)
    def answer(self, answer: Grant | Denial) -> None:
        self.both(lambda store: store.answer(answer))

    @rule(request=requests)
    def take(self, request: ApprovalRequest) -> None:
        taken = self.both(lambda store: store.take(request))
        if isinstance(taken, Grant) and not taken.standing:
            assert (taken.call_id, taken.tool) == (request.call_id, request.tool)

    @rule(request=requests, answer=answers)
    def use(self, request: ApprovalRequest, answer: Grant | Denial) -> None:
        self.both(lambda store: store.use(request, answer))

    @rule(data=st.data())
    def revoke(self, data: st.DataObject) -> None:
        standing = self.both(lambda store: store.standing())
        if standing:
            grant = data.draw(st.sampled_from(standing))
            assert self.both(lambda store: store.revoke(grant))

    @invariant()
    def same_history(self) -> None:
        kept = [self.runner.run(store.list()) for store in self.stores]
        in_memory, in_file = ([(e.request, e.answer, e.state) for e in entries] for entries in kept)
        assert in_memory == in_file


TwoStores.TestCase.settings = settings(max_examples=examples(20), stateful_step_count=15, deadline=None)
test_stores_agree = TwoStores.TestCase
