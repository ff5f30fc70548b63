from __future__ import annotations

import datetime
import random
from fractions import Fraction
from typing import Any

import pytest

from benchmarks.bfcl._as_programs import program
from benchmarks.bfcl._calls import parse_call
from benchmarks.bfcl._compare import Difference, differences
from benchmarks.bfcl._data import FILES, Conversation, DataMissing, build_apis, load_conversations
from benchmarks.bfcl._runs import Raised, Replay, Returned, function_named, run_directly
from benchmarks.bfcl._snapshots import Mismatch, mismatch, snapshot
from benchmarks.bfcl.run import MODES, ROUNDS, main, replay


@pytest.fixture(scope="module")
def conversations() -> list[Conversation]:
    return load_conversations()


# --- the calls' texts ------------------------------------------------------------------------------------------------


def test_a_call_is_read_without_being_run() -> None:
    call = parse_call(" lockDoors(True, door=['driver', 'rear_left']) ")

    assert (call.text, call.name) == ("lockDoors(True, door=['driver', 'rear_left'])", "lockDoors")
    assert call.args == (True,)
    assert call.kwargs == {"door": ["driver", "rear_left"]}


def test_positional_arguments_are_bound_to_names() -> None:
    def move(source: str, destination: str, force: bool = False) -> None: ...

    assert parse_call("move('a', destination='b')").bound_to(move) == {"source": "a", "destination": "b"}


@pytest.mark.parametrize("text", ["cd(", "cd", "fs.cd('a')", "cd(folder())", "cd(**{'folder': 'a'})", "cd('a'); ls()"])
def test_what_is_not_one_plain_call_of_literals_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="cannot read the call"):
        parse_call(text)


# --- snapshots -------------------------------------------------------------------------------------------------------


class Folder:
    def __init__(self, name: str, parent: Folder | None = None) -> None:
        self.name, self.parent = name, parent
        self.children: dict[str, Folder] = {}
        self._last_modified = datetime.datetime.now()


def test_an_object_that_contains_itself_has_a_snapshot() -> None:
    root = Folder("root")
    root.children["docs"] = Folder("docs", root)

    child = {"<class>": "Folder", "name": "docs", "parent": "<the Folder above>", "children": {}}
    assert snapshot(root) == {"<class>": "Folder", "name": "root", "parent": None, "children": {"docs": child}}


def test_a_snapshot_stays_when_the_value_changes() -> None:
    value = {"tags": ["a"], "pair": (1, 2), "ids": {3}, "third": Fraction(1, 4)}
    taken = snapshot(value)

    value["tags"] = []

    assert taken == {"tags": ["a"], "pair": [1, 2], "ids": {"<set>": [3]}, "third": 0.25}


def test_random_generators_are_compared_by_what_they_will_draw() -> None:
    first, second = random.Random(7), random.Random(7)

    assert snapshot(first) == snapshot(second)

    first.random()
    assert snapshot(first) != snapshot(second)


@pytest.mark.parametrize(
    ("first", "second", "place"),
    [
        ({"a": [1, {"b": 5}]}, {"a": [1, {"b": 5.0}]}, None),
        ({"a": [1, {"b": 5}]}, {"a": [1, {"b": 6}]}, Mismatch("['a'][1]['b']", 5, 6)),
        ({"on": True}, {"on": 1}, Mismatch("['on']", True, 1)),
        ([1, 2], [1], Mismatch("[1]", 2, "(missing)")),
        ({}, {"a": None}, Mismatch("['a']", "(missing)", None)),
        ({"a": None}, {}, Mismatch("['a']", None, "(missing)")),
        ("5", 5, Mismatch("", "5", 5)),
    ],
)
def test_the_first_mismatch_is_named_by_its_path(first: Any, second: Any, place: Mismatch | None) -> None:
    assert mismatch(first, second) == place


# --- data and the direct run -----------------------------------------------------------------------------------------


def test_there_are_200_conversations_and_every_call_fits_one_method(conversations: list[Conversation]) -> None:
    bound = 0
    for conversation in conversations:
        apis = build_apis(conversation)
        for call in (call for turn in conversation.turns for call in turn):
            call.bound_to(function_named(call.name, apis))
            bound += 1

    assert len(conversations) == 200
    assert bound == sum(conversation.calls for conversation in conversations) == 1142


def test_the_other_files_have_the_same_form() -> None:
    sizes = {file: [len(rows := load_conversations(file)), sum(row.calls for row in rows)] for file in FILES[1:]}

    assert sizes == {
        "multi_turn_long_context": [200, 1203],
        "multi_turn_miss_func": [200, 1140],
        "multi_turn_miss_param": [200, 1140],
    }


def test_the_direct_run_is_the_same_every_time(conversations: list[Conversation]) -> None:
    found = [d for c in conversations for d in differences(c, run_directly(c), run_directly(c))]

    assert found == []


def test_the_direct_run_keeps_results_and_end_states(conversations: list[Conversation]) -> None:
    run = run_directly(conversations[0])

    assert run.answers[0][1:] == (
        Returned(None),
        Returned({"result": "'final_report.pdf' moved to 'temp/final_report.pdf'"}),
    )
    assert set(run.states) == {"TwitterAPI", "GorillaFileSystem"}
    assert "temp" in run.states["GorillaFileSystem"]["root"]["contents"]["document"]["contents"]


def test_what_a_call_raises_is_its_answer(conversations: list[Conversation]) -> None:
    wrong = Conversation("wrong", ("TicketAPI",), {}, ((parse_call("get_ticket(nr=1)"),),))

    (answer,) = run_directly(wrong).answers[0]

    assert isinstance(answer, Raised)
    assert answer.error == "TypeError"
    assert "unexpected keyword argument 'nr'" in answer.message


def test_mistakes_of_the_classes_are_corrected_unless_they_are_wanted_as_published(
    conversations: list[Conversation],
) -> None:
    corrected = build_apis(conversations[173])["TicketAPI"]
    published = build_apis(conversations[173], as_published=True)["TicketAPI"]

    assert parse_call("close_ticket(ticket_id='ticket_001')") in [c for turn in conversations[173].turns for c in turn]
    assert published.close_ticket.__annotations__["ticket_id"] is int
    assert corrected.close_ticket.__annotations__["ticket_id"] == "int | str"


def test_missing_data_says_how_to_install_it() -> None:
    with pytest.raises(DataMissing, match=r"pip install --no-deps bfcl-eval==2026\.3\.23 mpmath"):
        load_conversations("multi_turn_forgotten")


# --- comparison ------------------------------------------------------------------------------------------------------


def test_differences_name_turn_call_and_both_values() -> None:
    turns = tuple(tuple(map(parse_call, turn)) for turn in (["buy(1)"], ["pay()", "go()", "stop()"]))
    shop = Conversation("c_1", ("Shop",), {}, turns)
    directly = Replay(
        ((Returned(1),), (Returned(2.0), Returned({"at": [7]}), Raised("KeyError", "'x'"))), {"Shop": {"sold": [1]}}
    )
    other = Replay(((Returned(1),), (Returned(2), Returned({"at": [8]}), Returned(None))), {"Shop": {"sold": []}})

    assert differences(shop, directly, other) == [
        Difference("c_1", "turn 2, go() -> ['at'][0]", "7", "8"),
        Difference("c_1", "turn 2, stop()", "raised KeyError: 'x'", "returned None"),
        Difference("c_1", "end state of Shop['sold'][0]", "1", "'(missing)'"),
    ]


# --- over the counter ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chosen(conversations: list[Conversation]) -> list[Conversation]:
    """Every tenth, so all eight classes; and those with numbers of mpmath, a kept list and a text for an id."""
    uses_mpmath = [c for c in conversations if any(call.name == "logarithm" for turn in c.turns for call in turn)]
    return [*conversations[::10], *uses_mpmath, conversations[90], conversations[173]]


def test_the_subset_covers_all_classes(chosen: list[Conversation]) -> None:
    assert len({name for conversation in chosen for name in conversation.apis}) == 8


@pytest.mark.parametrize("mode", MODES)
async def test_conversations_go_as_in_plain_python(chosen: list[Conversation], mode: str) -> None:
    report = await replay(FILES[0], mode, chosen)

    assert report.differences == ()
    assert report.calls > 100


@pytest.mark.parametrize(
    ("mode", "error"), [("json", "InvalidArguments"), ("code-process", "ValueError"), ("code-monty", "ValueError")]
)
async def test_a_call_that_does_not_fit_its_declaration_is_refused(
    conversations: list[Conversation], mode: str, error: str
) -> None:
    report = await replay(FILES[0], mode, [conversations[173]], as_published=True)

    call, state = report.differences
    assert call.place == "turn 4, close_ticket(ticket_id='ticket_001')"
    assert call.run.startswith(f"raised {error}: `close_ticket` cannot take these arguments: ticket_id: ")
    assert (state.place, state.directly, state.run) == (
        "end state of TicketAPI['ticket_queue'][0]['status']",
        "'Closed'",
        "'Open'",
    )


@pytest.mark.parametrize("mode", ROUNDS)
async def test_a_call_that_does_not_fit_is_an_issue_of_its_round(conversations: list[Conversation], mode: str) -> None:
    report = await replay(FILES[0], mode, [conversations[173]], as_published=True)

    assert len(report.differences) == 2
    assert report.differences[0].run.startswith("raised InvalidArguments: `close_ticket` cannot take these arguments")


@pytest.mark.parametrize("mode", ROUNDS)
async def test_a_turn_without_calls_is_a_reply_without_calls(mode: str) -> None:
    conversation = Conversation("quiet", ("MathAPI",), {}, ((), (parse_call("add(1, 2)"),)))

    report = await replay(FILES[0], mode, [conversation])

    assert (report.same, report.calls) == (1, 1)


def test_a_program_makes_the_calls_as_they_are_written() -> None:
    lines = program((parse_call("cd('docs')"), parse_call("ls(a=True)"))).splitlines()

    assert [line.strip() for line in lines if "'returned'" in line] == [
        "answers.append(['returned', cd('docs')])",
        "answers.append(['returned', ls(a=True)])",
    ]
    assert lines[-1] == "answers"


@pytest.mark.parametrize("mode", MODES)
async def test_an_exception_of_a_method_is_an_answer_in_every_mode(mode: str) -> None:
    calls = "compute_exchange_rate('USD', 'ATS', 1.0)", "travel_get_login_status()"
    conversation = Conversation("unknown_rate", ("TravelAPI",), {}, (tuple(map(parse_call, calls)),))

    assert (await replay(FILES[0], mode, [conversation])).differences == ()
    assert run_directly(conversation).answers[0][0] == Raised(
        "ValueError", "No available exchange rate for the given currencies."
    )


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_command_prints_a_score_for_each_mode(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["--limit", "2"])

    lines = capsys.readouterr().out.splitlines()
    assert status == 0
    assert [line.split()[:3] for line in lines[: len(MODES)]] == [[FILES[0], mode, "2/2"] for mode in MODES]


def test_the_command_fails_and_says_what_differs(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["--ids", "173", "--mode", "json", "--as-published"])

    out = capsys.readouterr().out
    assert status == 1
    assert out.split()[:3] == [FILES[0], "json", "0/1"]
    assert "json: multi_turn_base_173, turn 4, close_ticket(ticket_id='ticket_001')" in out


def test_an_unknown_id_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--ids", "7", "999"]) == 2
    assert "no conversation is called 999" in capsys.readouterr().err


def test_a_limit_below_one_is_bad_usage() -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--limit", "0"])
