"""Files of private tools and programs: who has the name, the link or the text of one has the file."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib.calls import Media, ToolCall
from toolcrib.code import Toolkit
from toolcrib.pipeline import Pipeline, Run
from toolcrib.provenance import Memory, Origin, Provenance
from toolcrib.tools import Tool
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
