"""Files and artifacts of a toolkit's programs: in a session, paused and resumed, and as what a model is shown."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from toolcrib.calls import Completed, Media, ToolCall, render
from toolcrib.code import PausedProgram, ProgramDone, Toolkit
from toolcrib.errors import SandboxError
from toolcrib.pipeline import Pipeline
from toolcrib.sandbox import ProcessSandbox, SandboxLimits
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="its processes need Linux")
_KEY = b"a key of the tests"


@ez_tool(requires_approval=True)
def pay(amount: int) -> int:
    """Pay."""
    return amount


@pytest.fixture(scope="module")
def kit() -> Iterator[Toolkit]:
    with ProcessSandbox() as sandbox:
        yield Toolkit([pay], sandbox=sandbox)


def test_a_program_is_given_a_file_by_its_path(kit: Toolkit, tmp_path: Path) -> None:
    (tmp_path / "first.csv").write_text("a,b\n")

    result = kit.execute("open('sales.csv').read()", files={"sales.csv": tmp_path / "first.csv"})

    assert result.return_value == "a,b\n"


async def test_a_streamed_program_has_files_and_artifacts(kit: Toolkit) -> None:
    async with aclosing(kit.stream("open('artifacts/b', 'w').write(open('a').read())", files={"a": b"1"})) as events:
        found = [event async for event in events]

    assert isinstance(found[-1], ProgramDone)
    assert [(each.name, each.data) for each in found[-1].result.artifacts] == [("b", b"1")]


async def test_files_and_artifacts_stay_in_a_session(kit: Toolkit) -> None:
    with kit.session() as session:
        await session.execute_async("1", files={"a": b"1", "b": b"2"})
        first = await session.execute_async("open('artifacts/c', 'w').write(open('a').read())", files={"b": b"3"})
        second = await session.execute_async("[open(name).read() for name in ('a', 'b', 'artifacts/c')]")

    assert [each.name for each in first.artifacts] == ["c"]
    assert second.return_value == ["1", "3", "1"]
    assert second.artifacts == ()


async def test_a_file_of_a_session_does_not_become_a_folder(kit: Toolkit) -> None:
    with kit.session() as session:
        await session.execute_async("1", files={"a": b"1"})

        with pytest.raises(ValueError, match="'a' is a file, and the folder of 'a/b'"):
            await session.execute_async("2", files={"a/b": b"2"})
        again = await session.execute_async("open('a').read()", files={"a": b"3"})

    assert again.return_value == "3"


def test_files_of_a_tool_are_checked_when_it_is_made(kit: Toolkit) -> None:
    with pytest.raises(TypeError, match=r"files is \['sales.csv'\]; give values by name"):
        kit.as_tool(files=["sales.csv"])  # type: ignore[call-overload]


async def test_a_file_that_cannot_be_given_does_not_stay_in_a_session(kit: Toolkit) -> None:
    with kit.session() as session:
        with pytest.raises(ValueError, match="is not a name for a file"):
            await session.execute_async("1", files={"../a": b"1"})

        assert (await session.execute_async("1")).return_value == 1


async def test_a_paused_program_goes_on_with_its_files_and_makes_its_artifacts_again(kit: Toolkit) -> None:
    code = "kept = open('a').read()\nopen('artifacts/b', 'w').write(kept)\npay(1)\nkept + open('a').read()"
    result = await kit.execute_async(code, files={"a": b"1"})
    assert result.paused is not None
    paused = PausedProgram.from_bytes(result.paused.to_bytes(_KEY), _KEY)

    resumed = await kit.resume_async(paused, grants=[call.grant() for call in paused.suspended_calls])

    assert result.artifacts == ()
    assert resumed.return_value == "11"
    assert [(each.name, each.data) for each in resumed.artifacts] == [("b", b"1")]


def test_a_paused_program_of_before_there_were_files_is_read() -> None:
    stored = PausedProgram("1", "process-3.11").to_dict()
    del stored["files"]

    assert PausedProgram.from_dict(stored).files == {}


def test_a_sandbox_without_files_says_so() -> None:
    with pytest.raises(SandboxError, match=r"MontySandbox shows programs no files\. ProcessSandbox does, on Linux"):
        Toolkit([pay], sandbox="monty").execute("1", files={"a": b"1"})


async def test_artifacts_are_media_of_the_tool_that_runs_programs(kit: Toolkit) -> None:
    tool = ez_tool(kit.as_tool())
    code = "print('done')\nopen('artifacts/a.png', 'wb').write(b'PNG')\nopen('artifacts/b.csv', 'w').write('1')"

    outcome = await Pipeline(Toolset([tool])).run(ToolCall("run_python", {"code": code}))

    assert isinstance(outcome, Completed)
    shown = render(outcome)
    assert shown.parts == (
        "done",
        Media("image/png", b"PNG", name="a.png"),
        Media("text/csv", b"1", name="b.csv"),
    )
    assert shown.text == "done\n[image/png: a.png, 3 bytes]\n[text/csv: b.csv, 1 byte]"


async def at_once(kit: Toolkit, code: str) -> str:
    return str((await kit.execute_async(code)).error)


async def streamed(kit: Toolkit, code: str) -> str:
    async with aclosing(kit.stream(code)) as events:
        *_, done = [event async for event in events]
    assert isinstance(done, ProgramDone)
    return str(done.result.error)


async def in_a_session(kit: Toolkit, code: str) -> str:
    with kit.session() as session:
        await session.execute_async("open('artifacts/z', 'w').write('z')")
        return str((await session.execute_async(code)).error)


async def by_a_model(kit: Toolkit, code: str) -> str:
    return (await Pipeline(Toolset([ez_tool(kit.as_tool())])).run(ToolCall("run_python", {"code": code}))).text()


async def after_a_pause(kit: Toolkit, code: str) -> str:
    paused = (await kit.execute_async(f"pay(5)\n{code}")).paused
    assert paused is not None
    grants = [call.grant() for call in paused.suspended_calls]
    return str((await kit.resume_async(paused, grants=grants)).error)


WAYS = {
    "once": at_once,
    "stream": streamed,
    "session": in_a_session,
    "model": by_a_model,
    "pause": after_a_pause,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("for n in range(3): open(f'artifacts/{n}', 'w')", "write 2 artifacts, and this is one more"),
        ("for n in range(3): pathlib.Path(f'artifacts/{n}').write_text('')", "write 2 artifacts, and this is one more"),
        ("with open('artifacts/a', 'w') as file: file.write('x' * 200)", "take 100 bytes together, and this is more"),
        ("shutil.copy(big, 'artifacts/a')", "take 100 bytes together, and this is more"),
        ("open('artifacts/' + 'n' * 300, 'w')", "File name too long"),
        ("open('artifacts/a\\n', 'w')", "the name of an artifact is text that can be shown"),
    ],
)
async def test_artifacts_past_a_limit_end_with_a_text_that_says_so(way: str, code: str, says: str) -> None:
    start = "import pathlib, shutil\nbig = '/tmp/big'\nopen(big, 'w').write('x' * 200)\n"

    with ProcessSandbox() as sandbox:
        kit = Toolkit([pay], sandbox=sandbox, limits=SandboxLimits(artifacts=2, bytes_out=100))
        text = await WAYS[way](kit, start + code)

    assert says in text
    assert "protocol" not in text


async def test_a_text_for_a_model_names_the_artifacts(kit: Toolkit) -> None:
    result = await kit.execute_async("print('x' * 500)\nopen('artifacts/a.png', 'wb').write(b'PNG')")

    assert result.text(100).endswith("\n[image/png: a.png, 3 bytes]")


async def test_each_program_of_a_tool_is_given_its_files(kit: Toolkit) -> None:
    run = kit.as_tool(files={"a.csv": b"1"})

    assert "- `open`, and everything that uses it, finds these files: `a.csv`." in (run.__doc__ or "")
    assert await run("print(open('a.csv').read())") == "1"
