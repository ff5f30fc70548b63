"""A replay says what a live rerun does: nothing differs under the same tools, and just what differs under others."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.replay.scripts import RAN, Setting, Step, digests, live, tools_of, went
from toolcrib.provenance import Provenance, Rule
from toolcrib.replay import Replay, replay

SCRIPT = [
    Step("pay", '{"to": "ann", "amount": 5}', said="pay ann 5, and bob what he asks"),
    Step("pay", '{"to": "ann", "amount": "7"}'),
    Step("pay", '{"to": "ann", "amount": 0}'),
    Step("pay", '{"to": "ann", "amount": 2000}'),
    Step("pay", '{"to": "ann", "amount": 600}', answer="yes"),
    Step("pay", '{"to": "ann", "amount": 601}', answer="no"),
    Step("pay", '{"to": "ann", "amount": 602}', answer="later yes"),
    Step("pay", '{"to": "ann", "amount": 603}', answer="later no"),
    Step("pay", '{"to": "ann", "amount": 604}'),
    Step("pay", '{"to": "ann", "amount": 605}', run="b", answer="always"),
    Step("pay", '{"to": "ann", "amount": 606}', run="b"),
    Step("pay", '{"to": "ann", "amount": 606}', run="c"),
    Step("pay", '{"to": "ann"}'),
    Step("pay", '{"to": "ann", "amount": "much"}'),
    Step("pay", '{"to": "ann", "amount": 1, "note": "for tea"}'),
    Step("pay", "{broken"),
    Step("pay", {"to": "ann", "amount": 3}),
    Step("find", "{}"),
    Step("find", '{"text": "tea"}', run="b"),
    Step("fnd", '{"text": "tea"}'),
    Step("fetch", '{"page": "mallory"}'),
    Step("pay", '{"to": "mallory@evil.example", "amount": 5}'),
    Step("pay", '{"to": "mallory@evil.example", "amount": 6}', answer="yes"),
    Step("fetch", '{"page": "break"}'),
    *(Step("fetch", '{"page": "retry"}', run=run) for run in "aabaaa"),
]
CHANGED: dict[str, Setting] = {
    "a lower limit": Setting(limit=100),
    "more is asked": Setting(ask_above=1),
    "less is asked": Setting(ask_above=5_000),
    "approval in any case": Setting(needs_approval=True),
    "another schema": Setting(wants_note=True),
    "no tool": Setting(has_find=False),
    "fewer retries": Setting(retries=0),
    "a pre hook edits": Setting(factor=3),
    "a policy": Setting(policy=Provenance()),
    "a policy that refuses": Setting(policy=Provenance(rules=(Rule(untrusted="deny", unknown="allow"),))),
}


async def replayed(log: Any, setting: Setting) -> Replay:
    before = len(RAN)
    found = await replay(log, tools_of(setting), provenance=setting.policy)
    assert RAN[before:] == []  # no tool was executed
    return found


@pytest.mark.parametrize("setting", [Setting(), *CHANGED.values()], ids=["as it was", *CHANGED])
async def test_nothing_differs_under_the_same_tools(tmp_path: Path, setting: Setting) -> None:
    log = await live(tmp_path / "live.db", setting, SCRIPT)

    found = await replayed(log, setting)

    assert (found.calls, found.runs) == (len(SCRIPT), 3)
    assert [one.to_dict() for one in (*found.differences, *found.undecided)] == []


@pytest.mark.parametrize("name", CHANGED)
async def test_what_differs_is_what_a_live_rerun_does_otherwise(tmp_path: Path, name: str) -> None:
    log = await live(tmp_path / "before.db", Setting(), SCRIPT)
    rerun = await live(tmp_path / "after.db", CHANGED[name], SCRIPT, digests(log))

    found = await replayed(log, CHANGED[name])

    before, after = went(log), went(rerun)
    assert {one.call.id for one in found.differences} == {id for id in before if before[id] != after[id]}
    assert found.differences
    assert found.undecided == ()


PAYMENTS = st.builds(
    lambda to, amount, run, answer: Step("pay", json.dumps({"to": to, "amount": amount}), run, answer),
    st.sampled_from(["ann", 7]),
    st.integers(0, 2_000),
    st.sampled_from("ab"),
    st.sampled_from(["", "yes", "no", "later yes", "later no", "always"]),
)
OTHERS = st.builds(
    Step,
    st.sampled_from(["fetch", "find", "lost"]),
    st.sampled_from(['{"page": "x"}', '{"page": "retry"}', '{"text": "x"}', "{}"]),
    st.sampled_from("ab"),
)
STEPS = st.lists(PAYMENTS | OTHERS, min_size=1, max_size=12)
SETTINGS = st.builds(
    Setting,
    limit=st.sampled_from([100, 1_000]),
    ask_above=st.sampled_from([50, 500]),
    factor=st.sampled_from([1, 2]),
    needs_approval=st.booleans(),
    wants_note=st.booleans(),
    has_find=st.booleans(),
    retries=st.integers(0, 2),
    policy=st.sampled_from([None, Provenance(), Provenance(rules=(Rule(untrusted="deny", unknown="allow"),))]),
)


@settings(max_examples=examples(30), deadline=None)
@given(STEPS, SETTINGS, SETTINGS)
@example(  # the policy asks about what a tool would return that was not there
    [Step("find", '{"text": "x"}', "a"), Step("fetch", '{"page": "x"}', "a")],
    Setting(has_find=False),
    Setting(policy=Provenance()),
)
@example(  # nobody answered the second call itself, which the standing yes of the first no longer covers
    [Step("pay", '{"to": "ann", "amount": 28}', "b", "always"), Step("pay", '{"to": "ann", "amount": 51}', "b", "yes")],
    Setting(ask_above=50, needs_approval=True),
    Setting(ask_above=50),
)
async def test_any_script_under_any_tools(steps: list[Step], before: Setting, after: Setting) -> None:
    after = replace(after, policy=after.policy or before.policy)  # without one, what the policy said is as it was
    with tempfile.TemporaryDirectory() as folder:
        log = await live(Path(folder) / "before.db", before, steps)
        rerun = await live(Path(folder) / "after.db", after, steps, digests(log))

        same, changed = await replayed(log, before), await replayed(log, after)
        was, now = went(log), went(rerun)
    differ = {id for id in was if was[id] != now[id]}
    undecided = {one.call.id for one in changed.undecided}
    assert (same.differences, same.undecided) == ((), ())
    assert {one.call.id for one in changed.differences} - differ == set()
    assert differ - {one.call.id for one in changed.differences} - undecided == set()
