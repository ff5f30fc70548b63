"""A standing yes within bounds: it covers what its words say, as often as they say, and nothing else."""

from __future__ import annotations

import asyncio
import json
import ntpath
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path, PureWindowsPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import Url

from toolcrib import Pipeline, Run, Suspended, ToolCall, tool
from toolcrib.approvals import ApprovalStore, MemoryApprovalStore, SqliteApprovalStore, misfit, typed_bounds
from toolcrib.calls import ApprovalRequest, Bound, Completed, Grant, GrantUse, now
from toolcrib.errors import ApprovalError
from toolcrib.record import ListSink
from toolcrib.schema import REDACTED

Opened = Callable[[Path], ApprovalStore | None]

STORES: dict[str, Opened] = {
    "run": lambda folder: None,
    "memory": lambda folder: MemoryApprovalStore(),
    "sqlite": lambda folder: SqliteApprovalStore(folder / "approvals.db"),
}


@tool(requires_approval=True)
async def refund(order: str, amount: float, note: str = "") -> str:
    """Pay an order back."""
    return f"{order}: {amount}"


def asked(arguments: dict[str, Any], **more: Any) -> ApprovalRequest:
    return ApprovalRequest("ask_1", "call_1", "refund", arguments, "d1", principal="ann", **more)


async def suspended(pipeline: Pipeline, run: Run, **arguments: Any) -> Suspended:
    outcome = await pipeline.run(ToolCall("refund", arguments), run)
    assert isinstance(outcome, Suspended)
    return outcome


# --- bounds


@pytest.mark.parametrize(
    ("bound", "covered", "others"),
    [
        (Bound.any(), [1, "x", None, REDACTED, {"a": REDACTED}], []),
        (Bound.exactly(1), [1, 1.0], [True, "1", 2, [1], None, REDACTED]),
        (Bound.exactly({"a": [True]}), [{"a": [True]}], [{"a": [1]}, {"a": [True], "b": 1}, {}]),
        (Bound.exactly(REDACTED), [], [REDACTED]),
        (Bound.one_of(["a", 2]), ["a", 2], ["b", True, "2"]),
        (Bound.between(0, 50), [0, 50, 49.99, "12.50", 1e-7], [50.01, -1, True, "a", "1e1", None, float("nan"), "٣"]),
        (Bound.between(high=Decimal("0.3")), [0, 0.3, "0.30"], [0.30000000000000004, -9]),
        (Bound.between(low=5), [5, 10**30], [4]),
        (
            Bound.under("/srv/reports"),
            ["/srv/reports", "/srv/reports/may.pdf", "/srv/reports/"],
            [
                "/srv/reports-old",
                "/srv/reports/../x",
                "/srv//reports/x",
                "/srv/reports/./x",
                "/srv/reports\\..\\x",
                "srv/reports/x",
                "~/srv/reports",
                "/srv/reports/a\x00b",
                "/srv/reports/a\nb",
                5,
                "",
                "file:///srv/reports",
            ],
        ),
        (Bound.under("reports"), ["reports/x"], ["/reports/x", "../reports/x", "reports/../x", "reportsx"]),
        (Bound.under("/"), ["/etc", "/"], ["etc", "//etc", "https://x.example/"]),
        (
            Bound.under("https://api.example.org/v1"),
            ["https://api.example.org/v1/a?x=1", "HTTPS://API.example.org:443/v1", "https://api.example.org./v1/a%20b"],
            [
                "https://api.example.org/v1x",
                "https://api.example.org.evil.com/v1/a",
                "http://api.example.org/v1/a",
                "https://api.example.org@evil.com/v1/a",
                "https://api.example.org:444/v1/a",
                "//api.example.org/v1/a",
                "https://api.example.org/v1/%2e%2e/x",
                "https://api.example.org/v1/..%2fx",
                "https://api.example.org/v1/../x",
                "https://api.example.org/v1/..;/x",
                "https://api.example.org/v1/..;a=b/x",
                "https://api.example.org/v1/.;/x",
                "https://api.example.org\\.evil.com/v1/a",
                "https://api.example.org/v1/%252e%252e/x",
                " https://api.example.org/v1",
                "http\u017f://api.example.org/v1",
                "https://api.example.org/v1/..%20/x",
            ],
        ),
        (
            Bound.under("C:\\reports\\may"),
            ["C:\\reports\\may\\a b.pdf", "c:/reports/may/x/", "C:\\reports/may"],
            [
                *("D:\\reports\\may\\x", "C:\\reports\\may-old", "C:\\reports\\may\\..\\x", "C:\\reports\\may\\.. \\x"),
                *("C:reports\\may\\x", "\\\\?\\C:\\reports\\may\\x", "\\reports\\may\\x", "/reports/may/x"),
                *(
                    "C:\\reports\\may\\x:stream",
                    "C:\\reports\\may\\\\x",
                    "C:\\reports\\may \\x",
                    "https://C:\\reports\\may\\x",
                ),
            ],
        ),
        (Bound.under("C:/"), ["C:\\x", "c:\\"], ["C:", "C:x", "D:/x", "/x"]),
        (
            Bound.under("https://[2001:DB8::0:1]/v1"),
            ["https://[2001:db8::1]:443/v1/a", "https://[2001:0db8:0:0:0:0:0:1]/v1"],
            [
                "https://[2001:db8::2]/v1/a",
                "https://2001:db8::1/v1",
                "https://[2001:db8::1%25eth0]/v1",
                "https://[x]/v1",
            ],
        ),
        (
            Bound.under("https://bücher.example/v1"),
            [
                "https://xn--bcher-kva.example/v1/a",
                "https://BÜCHER.example./v1",
                "https://bu\u0308cher\u3002example/v1/a",
            ],
            [
                "https://bucher.example/v1/a",
                "https://xn--bcher-kva.example.evil.com/v1/a",
                "https://b\u00fc\u0441her.example/v1",
            ],
        ),
    ],
    ids=lambda value: value.text() if isinstance(value, Bound) else "",
)
def test_a_bound_covers_its_values_and_no_others(bound: Bound, covered: list[Any], others: list[Any]) -> None:
    assert [value for value in covered if not bound.covers(value)] == []
    assert [value for value in others if bound.covers(value)] == []
    assert Bound.from_dict(bound.to_dict()) == bound


STEPS = st.sampled_from(["a", "b", "a b", "..", ".", "", ".. ", "a.", "...", "a:b", "C:", "ü", "%2e%2e", "a\\b"])


def joined(head: str, steps: list[str], separators: list[str]) -> str:
    return head + "".join(f"{step}{end}" for step, end in zip(steps, separators, strict=False))


@given(
    st.sampled_from(["C:\\", "c:/", "C:", "\\\\host\\share\\", "/", ""]),
    st.sampled_from(["C:\\", "c:/", "D:\\", "C:", "\\", "/", "\\\\?\\C:\\", ""]),
    st.lists(STEPS, max_size=3),
    st.lists(STEPS, max_size=5),
    st.lists(st.sampled_from(["\\", "/", "//"]), min_size=5, max_size=5),
)
def test_a_path_that_is_covered_is_below_the_place_on_windows(
    head: str, other: str, of_place: list[str], steps: list[str], separators: list[str]
) -> None:
    place, value = joined(head, of_place, separators), joined(other, [*of_place, *steps], separators[::-1] * 2)
    try:
        bound = Bound.under(place)
    except ValueError as error:
        assert "is not a plain path or http address" in str(error)  # noqa: PT017 -- or it is one
        return

    if bound.covers(value):
        below, above = PureWindowsPath(ntpath.normpath(value)), PureWindowsPath(ntpath.normpath(place))
        assert below.is_relative_to(above)
        assert bound.covers(value.replace("\\", "/")) or head == ""


HOSTS = st.text(
    st.sampled_from("ab\u00fc\u0308\u00df\u0131\u017f\u212a\u00c9\uff11.\u3002-[]:0%@_")
    | st.characters(max_codepoint=0x2FFF, exclude_characters="/?#\\"),  # which end a host
    max_size=8,
)


@given(HOSTS, HOSTS | st.none())
def test_an_address_that_is_covered_is_of_the_same_host_to_browsers_and_to_python(host: str, other: str | None) -> None:
    try:
        bound = Bound.under(f"https://{host}/a")
    except ValueError:
        return
    found = Url(f"https://{host}/a").host
    assert found is not None

    assert bound.covers(f"https://{found}/a/b")  # in ASCII
    assert found.encode().decode("ascii").encode("idna") == found.encode()
    value = f"https://{found.upper() if other is None else other}/a/b"
    if bound.covers(value):
        assert str(Url(value).host).rstrip(".") == found.rstrip(".")


@pytest.mark.parametrize(
    ("typed", "bound"),
    [
        ("any", Bound.any()),
        ("*", Bound.any()),
        ("", Bound.exactly(7)),
        ("exactly", Bound.exactly(7)),
        ('= "a"', Bound.exactly("a")),
        ("<= 50", Bound.between(high=50)),
        (">=0.5", Bound.between(low=Decimal("0.5"))),
        ("5..50", Bound.between(5, 50)),
        ("under /srv/a b", Bound.under("/srv/a b")),
        ('one of "a", 2', Bound.one_of(["a", 2])),
    ],
)
def test_a_person_types_a_bound(typed: str, bound: Bound) -> None:
    assert Bound.parse(typed, 7) == bound


@pytest.mark.parametrize(
    "typed",
    [
        *(
            "<= x",
            "<= nan",
            "5..",
            "50..5",
            "under ../x",
            "under https://x.example/?a",
            "under https://stra\u00dfe.example/",  # strasse.example to some clients
            "under https://[x]/",
            *("under http://010.0.0.1/", "under http://127.1/", "under http://0x7f000001/"),
            "under C:reports",
            "under C:\\..\\x",
            "one of",
            "one of x",
            "= x",
            "y",
        ),
        *(f"= {'[' * 100_000}", f"one of {'[' * 60}{']' * 60}", f'= "{REDACTED}"'),
    ],
    ids=lambda typed: typed[:20],
)
def test_what_is_no_bound_is_an_error_that_names_the_argument(typed: str) -> None:
    with pytest.raises(ValueError, match=r"`amount`: .* is not a bound: "):
        typed_bounds(asked({"amount": 7}), {"amount": typed})


# --- grants


@pytest.mark.parametrize("given", [5, "<= 50", None, [Bound.any()], Bound, {"kind": "any"}])
def test_what_is_no_bound_is_named_with_its_argument_and_the_mend(given: Any) -> None:
    with pytest.raises(TypeError, match=r"within: `order` is .*, which is not a bound: write Bound\.exactly"):
        asked({"order": "A"}).always("bob", within={"order": given})


@pytest.mark.parametrize("given", [["order"], "order", Bound.any()])
def test_bounds_without_names_are_an_error_that_says_how_they_are_given(given: Any) -> None:
    with pytest.raises(TypeError, match=r"^within is .*; give bounds by argument"):
        asked({"order": "A"}).always("bob", within=given)


def test_the_words_of_a_grant_have_all_that_it_covers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    request = asked({"order": "A", "amount": 20.5, "to": "/srv/a"})

    grant = request.always(
        "bob",
        within={"order": Bound.any(), "amount": Bound.between(high=50), "to": Bound.under("/srv")},
        expires=now().replace(year=2100, month=1, day=2, hour=18, minute=0),
        uses=10,
        total=("amount", 200),
    )

    assert grant.text() == (
        'refund: order any, amount up to 50, to under "/srv"; on behalf of ann; until 2100-01-02 18:00 (UTC); '
        "at most 10 times; 200 of amount in all"
    )
    assert Grant.from_dict(grant.to_dict()) == grant


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"within": {"amount": Bound.between(high=5)}}, "`amount` is 20, and it was given for up to 5"),
        (
            {"within": {"amont": Bound.any()}},
            "`amont` is not an argument of refund; there are amount, debit, order, token",
        ),
        ({"within": {"order": Bound.any()}}, "`token` is .*redacted"),
        ({"total": ("amount", 5)}, "`amount` would come to 20 in all, and it was given for 5"),
        ({"total": ("order", 5)}, 'it counts `order`, which is "A", and no number'),
        ({"total": ("debit", 5)}, "it counts `debit`, which is -3, and no number of 0 or more"),
        ({"total": ("amount", -1)}, "the total of `amount` must be a number of 0 or more"),
        ({"uses": 0}, "uses must be a number of calls, 1 or more"),
        ({"uses": True}, "uses must be a number of calls, 1 or more"),
    ],
)
def test_a_grant_that_does_not_cover_its_own_call_is_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        asked({"order": "A", "amount": 20, "debit": -3, "token": REDACTED}).always("bob", **options)


def test_limits_are_of_a_standing_grant() -> None:
    for limits in ({"uses": 2}, {"total": ("amount", Decimal(5))}, {"within": {"amount": Bound.any()}}):
        with pytest.raises(ValueError, match=r"belongs? to a standing grant"):
            asked({"amount": 1}).grant("bob", **limits)


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        ({}, True),
        ({"principal": "eve"}, False),
        ({"tool": "pay"}, False),
        ({"definition": "other"}, False),
        ({"in_doubt": True}, False),
        ({"approvals_needed": 2}, False),
        ({"origins": ({"path": "order", "value": "A", "mark": "m"},)}, True),
        ({"origins": ({"path": "order", "value": "A", "mark": "n"},)}, False),
        ({"origins": ({"path": "order", "value": "A"},)}, False),
        ({"arguments": {"order": "Z", "amount": 1}}, True),
        ({"arguments": {"order": "Z", "amount": 1, "note": "x"}}, False),
        ({"arguments": {"order": "Z", "amount": 51}}, False),
        ({"arguments": {"order": "Z"}}, False),
        ({"arguments": {"amount": 1}}, True),
    ],
)
def test_a_grant_within_bounds_holds_for_the_tool_principal_and_origins_it_was_given_for(
    change: dict[str, Any], fits: bool
) -> None:
    origins = ({"path": "order", "value": "A", "mark": "m"},)
    first = asked({"order": "A", "amount": 20}, definition="d", origins=origins)
    grant = first.always("bob", within={"order": Bound.any(), "amount": Bound.between(high=50)})

    later = replace(first, **{"id": "ask_2", "call_id": "call_2", "digest": "d2", "origins": (), **change})

    assert (misfit(grant, later) == "") is fits


# --- calls


@pytest.mark.parametrize("kind", STORES)
async def test_calls_run_within_the_bounds_and_are_asked_about_beyond(kind: str, tmp_path: Path) -> None:
    store, pipeline = STORES[kind](tmp_path), Pipeline([refund])
    run = Run(approvals=store, principal="ann")
    first = await suspended(pipeline, run, order="A", amount=20.5)
    bounds = {"order": Bound.any(), "amount": Bound.between(high=50)}
    grant = first.request.always("bob", within=bounds, uses=3, total=("amount", 90))

    later = [{"amount": 50}, {"amount": 51}, {"amount": 5, "note": "x"}, {"amount": 30}, {"amount": 3}, {"amount": 1}]
    outcomes = [await pipeline.run(first, run, grant=grant)]
    outcomes += [await pipeline.run(ToolCall("refund", {"order": "B", **arguments}), run) for arguments in later]

    ran = [isinstance(outcome, Completed) for outcome in outcomes]
    assert ran == [True, True, False, False, False, True, False]
    assert all(isinstance(outcome, Completed | Suspended) for outcome in outcomes)
    if store is not None:
        used = await store.grant_use(grant)  # type: ignore[attr-defined]
        assert (used.calls, used.spent) == (3, Decimal("73.5"))


async def test_each_use_is_on_the_record_with_what_it_was_given_for() -> None:
    sink = ListSink()
    pipeline, run = Pipeline([refund], sinks=[sink]), Run(principal="ann", approvals=MemoryApprovalStore())
    first = await suspended(pipeline, run, order="A", amount=20)
    await pipeline.run(first, run, grant=first.request.always("bob", within={"order": Bound.any()}, uses=2))
    before = len(sink.events)

    await pipeline.run(ToolCall("refund", {"order": "B", "amount": 20}), run)

    said = json.dumps([event.data for event in sink.events[before:]], sort_keys=True, default=str)
    assert '"within": {"amount": {"kind": "exactly", "value": 20.0}, "note": {"kind": "exactly", "value": ""}, ' in said
    assert '"order": {"kind": "any"}' in said


async def test_of_calls_at_once_as_many_run_as_the_grant_has_left(tmp_path: Path) -> None:
    path = tmp_path / "approvals.db"
    stores = [SqliteApprovalStore(path) for _ in range(3)]
    pipeline, runs = Pipeline([refund]), [Run(principal="ann", approvals=store) for store in stores]
    first = await suspended(pipeline, runs[0], order="A", amount=1)
    grant = first.request.always("bob", within={"order": Bound.any()}, uses=4)
    await pipeline.run(first, runs[0], grant=grant)

    calls = [ToolCall("refund", {"order": f"B{number}", "amount": 1}) for number in range(9)]
    outcomes = await asyncio.gather(*(pipeline.run(call, runs[n % 3]) for n, call in enumerate(calls)))

    assert sum(isinstance(outcome, Completed) for outcome in outcomes) == 3
    assert sum(isinstance(outcome, Suspended) for outcome in outcomes) == 6
    assert len(await stores[0].list(pending=True)) == 6
    assert (await stores[0].grant_use(grant)).calls == 4


async def test_a_grant_that_is_used_up_between_the_gate_and_the_tool_lets_nothing_begin() -> None:
    store, request = MemoryApprovalStore(), asked({"order": "A", "amount": 1})
    grant = request.always("bob", uses=1)
    await store.put(request)
    await store.answer(grant)
    second = replace(request, id="ask_2", call_id="call_2")
    assert await store.take(second) == grant
    await store.begin(request, grant)

    with pytest.raises(ApprovalError, match=r"it was given for 1 call, and covers no more\. Ask again"):
        await store.begin(second, grant)


# --- nothing runs that the words do not cover

_numbers = st.one_of(st.integers(-100, 100), st.decimals(-100, 100, places=2).map(float))
_values = st.one_of(
    _numbers, st.sampled_from(["a", "b", "12", "/srv/a", "/srv/b/c", REDACTED]), st.booleans(), st.none()
)
_bounds = st.one_of(
    st.just(Bound.any()),
    _values.map(Bound.exactly),
    st.lists(_values, min_size=1, max_size=3).map(Bound.one_of),
    st.tuples(st.integers(-50, 50), st.integers(0, 50)).map(lambda ends: Bound.between(ends[0], ends[0] + ends[1])),
    st.sampled_from(["/srv", "/srv/a"]).map(Bound.under),
)


@given(
    st.dictionaries(st.sampled_from("abc"), _bounds, min_size=1),
    st.lists(st.dictionaries(st.sampled_from("abc"), _values), max_size=6),
    st.one_of(st.none(), st.integers(1, 3)),
    st.one_of(st.none(), st.decimals(0, 200, places=1)),
)
def test_a_call_is_covered_only_if_each_argument_the_count_and_the_sum_are(
    bounds: dict[str, Bound], calls: list[dict[str, Any]], uses: int | None, most: Decimal | None
) -> None:
    base = Grant("refund", "bob", request_id="ask_0", scope="within", within=bounds, uses=uses, principal="ann")
    grant = base if most is None else replace(base, total=("a", most))
    use, spent, made = GrantUse(), Decimal(0), 0

    for arguments in calls:
        request = asked(arguments)
        if grant.limit_reached(request, use):
            continue
        use, made = grant.used_by(request, use), made + 1
        assert arguments.keys() <= bounds.keys()
        for name, value in arguments.items():
            assert bounds[name].kind == "any" or value != REDACTED
            if bounds[name].kind == "between":
                low, high = map(Decimal, bounds[name].value)
                assert not isinstance(value, bool)
                assert low <= Decimal(str(value)) <= high
        assert uses is None or made <= uses
        if most is not None:
            spent += Decimal(str(arguments["a"]))
            assert arguments["a"] is not True
            assert Decimal(str(arguments["a"])) >= 0
            assert spent <= most
    assert use.calls == made


def test_a_grant_that_has_expired_covers_nothing() -> None:
    request = asked({"amount": 1})
    grant = request.always("bob", within={"amount": Bound.any()}, expires=timedelta(hours=1))

    assert misfit(grant, request, now() + timedelta(hours=2)).startswith("it expired at")
