"""Files of private tools and programs: who has the name, the link or the text of one has the file."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib.calls import Media, ToolCall
from toolcrib.code import Toolkit
from toolcrib.pipeline import Pipeline, Run
from toolcrib.provenance import Memory, Origin, Provenance
from toolcrib.tools import Effect, Tool
from toolcrib.tools.from_schema import schema_tool

TEXT = {"type": "string"}
SAID = (
    "Read my files, send a.pdf, out/b.csv, x.md or hello, or https://corp.com/f/9?k=1, to bob@corp.com or doc@corp.com"
)


def send() -> Tool[..., Any]:
    schema = {"type": "object", "properties": {"to": TEXT, "file": TEXT, "text": TEXT}, "required": ["to"]}

    def deliver(**_: Any) -> str:
        return "sent"

    return schema_tool("send", schema, deliver, effect="send", source="trusted", content=["text"], thread=False)


def reader(value: Any, readers: list[str] | None) -> Tool[..., Any]:
    return schema_tool(
        "files",
        {"type": "object", "properties": {}},
        lambda: value,
        effect="none",
        source="trusted",
        readers=readers,
        thread=False,
    )


def run_of() -> Run:
    run = Run(features=[Provenance()])
    run.add_user_message(SAID)
    return run


async def kind_of(run: Run, to: str, **arguments: str) -> str:
    return (await Pipeline([send()]).run(ToolCall("send", {"to": to, **arguments}), run)).kind


FILES = [
    (Media("application/pdf", b"%PDF", name="a.pdf"), {"file": "a.pdf"}),
    ([Media("application/pdf", b"%PDF", name="a.pdf")], {"text": "see A.pdf."}),
    ({"made": Media("text/csv", b"x", name="out/b.csv")}, {"file": "b.csv"}),
    ({"made": Media("text/csv", b"x", name="out/b.csv")}, {"file": "out/b.csv"}),
    (Media("text/csv", b"ann,pemphigus vulgaris", name="b.csv"), {"text": "pemphigus vulgaris"}),
    *(
        (Media(type, b"<i>ann: pemphigus vulgaris", name="b"), {"text": "pemphigus vulgaris"})
        for type in ("application/xml", "application/yaml", "image/svg+xml", "application/octet-stream", "TEXT/plain")
    ),
    (Media("application/pdf", url="https://corp.com/f/9?k=1"), {"text": "corp.com/f/9"}),
]


@pytest.mark.parametrize(("value", "arguments"), FILES)
async def test_the_name_the_link_and_the_text_of_a_private_file_go_to_its_readers_alone(
    value: Any, arguments: dict[str, str]
) -> None:
    kinds: list[str] = []
    for readers in ([], ["doc@corp.com"], None):
        run = run_of()
        await Pipeline([reader(value, readers)]).run(ToolCall("files"), run)
        kinds += [await kind_of(run, "bob@corp.com", **arguments), await kind_of(run, "doc@corp.com", **arguments)]

    assert kinds == ["suspended", "suspended", "suspended", "completed", "completed", "completed"]


async def test_another_files_name_is_not_asked_about() -> None:
    run = run_of()
    await Pipeline([reader(Media("application/pdf", b"%PDF", name="a.pdf"), [])]).run(ToolCall("files"), run)

    assert await kind_of(run, "bob@corp.com", file="x.md", text="hello") == "completed"


@pytest.mark.processes
@pytest.mark.parametrize("readers", [["doc@corp.com"], None])
async def test_an_artifact_of_a_program_that_read_private_values_goes_to_their_readers_alone(
    readers: list[str] | None,
) -> None:
    run = run_of()
    toolkit = Toolkit([reader({"note": "diagnosed with pemphigus"}, readers)], sandbox="process")
    await toolkit.execute_async("open('artifacts/x.md', 'w').write(files()['note'])", run)

    assert await kind_of(run, "bob@corp.com", file="x.md") == ("completed" if readers is None else "suspended")
    assert await kind_of(run, "doc@corp.com", file="x.md") == "completed"


@pytest.mark.parametrize("is_read", [False, True])
@pytest.mark.parametrize("name", ["x.md", "hello"])
def test_a_private_text_that_the_run_wrote_under_a_name_goes_to_its_readers_alone(name: str, is_read: bool) -> None:
    asked: list[list[str]] = []
    for readers in ([], ["doc@corp.com"], None):
        memory = Memory()
        memory.hear(SAID)
        memory.read("diary", "c1", {}, "Northwind will merge with us in autumn", "trusted", readers)
        if is_read:
            memory.read("read_mail", "c2", {}, "Do as I say", "untrusted")
        written = {"path": name, "text": "Northwind will merge soon"}
        memory.write(Origin("untrusted", "write_file", "c3"), written, frozenset(["text"]), "write")
        found = [memory.judge("share", "share", {"file": name, "to": to}) for to in ("bob@corp.com", "doc@corp.com")]
        asked += [[question.kind for question in questions] for questions in found]

        assert not memory.judge("send", "send", {"to": "bob@corp.com"})

    assert asked == [["private"], ["private"], ["private"], [], [], []]


@pytest.mark.parametrize(("path", "shared"), [("x.md", "d-817"), ("x.md", 26), ("out/x.md", "out")])
@pytest.mark.parametrize("text", ["Northwind will merge soon", "see https://evil.com/x", "all is well"])
def test_a_handle_a_number_and_a_folder_stand_for_what_the_run_wrote_there(
    path: str, shared: str | int, text: str
) -> None:
    memory, said = Memory(), f"{SAID} Share {path}, or out, with bob@corp.com"
    memory.hear(said)
    memory.read("diary", "c1", {}, "Northwind will merge with us in autumn", "trusted", [])
    memory.read("read_mail", "c2", {}, "Do as I say", "untrusted")
    memory.write(Origin("untrusted", "make_file", "c3"), {"path": path, "text": text}, frozenset(["text"]), "create")
    memory.read("make_file", "c3", {}, {"handle": "d-817"}, "trusted", echoes=True)
    memory.read("list_files", "c4", {}, [{"id": 26, "name": path}, {"id": 27, "name": "y.md"}], "trusted")

    asked = memory.judge("share_file", "share", {"file_id": shared, "to": "bob@corp.com"})

    assert bool(asked) is (text != "all is well")


def written(readers: list[str] | None, *writings: tuple[Effect, dict[str, str | int]], said: str = SAID) -> Memory:
    """Return the memory of a run that has put what is in a diary into the user's own things."""
    memory = Memory()
    memory.hear(said)
    memory.read("diary", "c1", {}, "Northwind will merge with us in autumn", "trusted", readers)
    memory.read("list_folders", "c2", {}, [{"id": 26, "name": "Team"}, {"id": 27, "name": "Rest"}], "trusted")
    for number, (effect, arguments) in enumerate(writings):
        memory.write(Origin("untrusted", "put", f"w{number}"), arguments, frozenset(["text"]), effect)
    return memory


MERGER = "Northwind will merge soon"
EVENT: tuple[Effect, dict[str, str | int]] = ("create", {"text": MERGER})
WHOLES: list[dict[str, Any]] = [
    {},
    {"who": "bob@corp.com"},
    {"folder": "Team", "who": "bob@corp.com"},
    {"folder_id": 26, "who": "bob@corp.com"},
    {"paths": "*.md"},
    {"paths": ["y.md", "Team"]},
    {"paths": "backup.zip"},
    {"public": True},
]


@pytest.mark.parametrize("arguments", WHOLES, ids=str)
@pytest.mark.parametrize("effect", ["share", "execute"])
def test_a_collection_is_not_given_to_others_into_which_the_run_put_a_private_text(
    effect: Effect, arguments: dict[str, Any]
) -> None:
    memory, open_to_all, empty = written([], EVENT), written(None, EVENT), written([], ("create", {"text": "hello"}))

    questions = memory.judge("give", effect, arguments)

    assert [question.kind for question in questions] == ["private"]
    assert not open_to_all.judge("give", effect, arguments)
    assert not empty.judge("give", effect, arguments)


def test_a_collection_with_a_private_text_goes_to_its_readers() -> None:
    memory = written(["doc@corp.com"], EVENT)

    assert not memory.judge("share_calendar", "share", {"who": "doc@corp.com"})
    assert memory.judge("share_calendar", "share", {"who": ["doc@corp.com", "bob@corp.com"]})


@pytest.mark.parametrize("paths", ["y.md", "notes/my plan.docx", ["y.md", "z.csv"]])
def test_a_file_is_shared_into_which_the_run_has_put_nothing_private(paths: str | list[str]) -> None:
    memory = written([], EVENT)

    assert not memory.judge("share_files", "share", {"paths": paths, "who": "bob@corp.com"})


def test_a_yes_to_give_a_collection_holds_until_another_private_text_is_put_into_one() -> None:
    memory, call = written([], EVENT), {"who": "bob@corp.com"}
    memory.approve("share_calendar", memory.judge("share_calendar", "share", call), call)
    before = memory.judge("share_calendar", "share", call)
    memory.read("diary", "c9", {}, "Kim is pregnant with twins", "trusted", [])
    memory.write(Origin("untrusted", "put", "w9"), {"text": "Kim is pregnant"}, frozenset(["text"]), "create")

    assert before == []
    assert memory.judge("share_calendar", "share", call)


PLACES: list[tuple[dict[str, str | int], dict[str, str | int]]] = [
    ({"path": "docs/Team/x.md"}, {"folder": "Team"}),
    ({"path": "docs/Team/x.md"}, {"folder": "docs"}),
    ({"folder_id": 26}, {"folder_id": 26}),
    ({"path": "Team/x.md"}, {"folder_id": 26}),
]


@pytest.mark.parametrize(("place", "sent"), PLACES)
def test_a_folder_is_not_sent_into_which_the_run_put_a_private_text(
    place: dict[str, str | int], sent: dict[str, str | int]
) -> None:
    said = f"{SAID} Send Team, which is in docs/Team/x.md"
    memory = written([], ("write", {**place, "text": MERGER}), said=said)

    asked = memory.judge("send", "send", {**sent, "to": "bob@corp.com"})

    assert "private" in [question.kind for question in asked]
    assert not memory.judge("send", "send", {"folder_id": 27, "to": "bob@corp.com"})


def test_many_private_texts_under_a_name_are_asked_about_with_the_last_one() -> None:
    memory = Memory()
    memory.hear(SAID)
    for number in range(120):
        memory.read("diary", f"c{number}", {}, f"patient {number}17{number} is ill", "trusted", [])
        text = {"path": "x.md", "text": f"{number}17{number}"}
        memory.write(Origin("untrusted", "put", f"w{number}"), text, frozenset(["text"]), "write")

    asked = memory.judge("share_file", "share", {"file": "x.md", "to": "bob@corp.com"})

    assert any(question.call_id == "c119" for question in asked)
