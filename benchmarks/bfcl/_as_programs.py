"""The conversations as model-written Python: one program for each turn, in a sandbox."""

from __future__ import annotations

from benchmarks.bfcl._as_calls import toolset_of
from benchmarks.bfcl._calls import Call
from benchmarks.bfcl._data import Conversation, build_apis
from benchmarks.bfcl._runs import Answer, Raised, Replay, Returned, states_of
from benchmarks.bfcl._snapshots import snapshot
from toolcrib import Toolkit
from toolcrib.sandbox import SandboxName

__all__ = ["program", "run_as_programs"]


async def run_as_programs(conversation: Conversation, *, sandbox: SandboxName, as_published: bool = False) -> Replay:
    """Return what the calls do as model-written Python: one program for each turn, in the sandbox of that name."""
    apis = build_apis(conversation, as_published=as_published)
    toolkit = Toolkit(toolset_of(apis), sandbox=sandbox)
    answers = [await _answers(toolkit, turn) for turn in conversation.turns]
    return Replay(tuple(answers), states_of(apis))


async def _answers(toolkit: Toolkit, turn: tuple[Call, ...]) -> tuple[Answer, ...]:
    result = await toolkit.execute_async(program(turn))
    if not result.success:
        return tuple(Raised("ProgramFailed", str(result.error)) for _ in turn)
    return tuple(
        Returned(snapshot(value)) if kind == "returned" else Raised(*value) for kind, value in result.return_value
    )


def program(turn: tuple[Call, ...]) -> str:
    """Return a program that makes the turn's calls as they are written, and ends with what each of them gave."""
    lines = ["answers = []"]
    for call in turn:
        lines += [
            "try:",
            f"    answers.append(['returned', {call.text}])",
            "except Exception as error:",
            "    answers.append(['raised', [type(error).__name__, str(error)]])",
        ]
    return "\n".join([*lines, "answers"])
