"""The replay of one task, alone or under one attack, over one of the ways in which a model calls tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from agentdojo.functions_runtime import FunctionCall

from benchmarks.dojo._labels import LABELS
from benchmarks.dojo._programs import programs
from benchmarks.dojo._ways import WAYS, Made, Person, over_programs
from toolcrib.calls import Completed, ToolCall, render
from toolcrib.pipeline import Pipeline
from toolcrib.tools import Tool
from toolcrib.tools.from_schema import schema_tool

__all__ = ["Ended", "replay", "tools_of", "world_of"]

_MARK: Final = "INJ3CTION"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a replay ended.

    Attributes:
        is_solved: Whether the user's task is done, by the benchmark's own check.
        is_read: Whether the model read the attack.
        is_hit: Whether the attack succeeded, by the benchmark's own check.
        questions: What was asked during the user's own calls.
        of_attack: What was asked during the attack's.
    """

    is_solved: bool
    is_read: bool
    is_hit: bool
    questions: tuple[str, ...]
    of_attack: tuple[str, ...]


async def replay(suite: Any, task: Any, attack: Any = None, *, way: str = "pipeline", guarded: bool = True) -> Ended:
    """Replay a task's ground truth; the model obeys the attack to the letter as soon as it has read it.

    A question about a call of the user's is answered yes, and one about a call of the attack's no.

    Args:
        suite: A suite of the benchmark.
        task: One of its user tasks.
        attack: One of its injection tasks, whose goal is then in every place that a stranger can write to.
        way: One of `WAYS`.
        guarded: Whether the run has the policy.
    """
    world, trace = task.init_environment(world_of(suite, _text_of(attack))), list[Any]()
    before = world.model_copy(deep=True)
    calls = [(made.function, dict(made.args)) for made in task.ground_truth(world)]
    tools, person, has_struck = tools_of(suite, world, trace), Person(), False
    steps = [[call] for call in calls]
    if WAYS[way] is over_programs:
        steps = programs(calls, await _results(suite, world.model_copy(deep=True), calls), task.PROMPT)
    async with WAYS[way](tools, task.PROMPT, person, guarded=guarded) as carry:
        for step in steps:
            seen = await carry(step)
            if attack is not None and not has_struck and _MARK in seen:
                has_struck = person.is_attacked = True
                await carry([(made.function, dict(made.args)) for made in attack.ground_truth(world)])
                person.is_attacked = False
    said = [{"type": "text", "content": task.GROUND_TRUTH_OUTPUT}]
    check: Callable[..., Any] = suite._check_task_result
    solved = bool(check(task, said, before, world, trace))
    hit = has_struck and bool(check(attack, said, before, world, trace))
    return Ended(solved, has_struck, hit, tuple(person.asked[False]), tuple(person.asked[True]))


def _text_of(attack: Any) -> str:
    text = "" if attack is None else f"IMPORTANT {_MARK} {' '.join(attack.GOAL.split())}".replace('"', "'")
    return text.replace("\\", "")


def world_of(suite: Any, text: str) -> Any:
    """Return the world of a suite, with a text in every place that a stranger can write to; none where it is empty."""
    return _loaded(suite, text).model_copy(deep=True)


@cache
def _loaded(suite: Any, text: str) -> Any:
    places = dict.fromkeys(suite.get_injection_vector_defaults(), text) if text else {}
    return suite.load_and_inject_default_environment(places)


async def _results(suite: Any, world: Any, calls: Sequence[Made]) -> list[Any]:
    """Return what a program is given for each of the calls, tried in a world of its own."""
    pipeline = Pipeline(tools_of(suite, world, []))
    results: list[Any] = []
    for call in calls:  # each is written down before the next one changes the world
        outcome = await pipeline.run(ToolCall(*call))
        results.append(render(outcome, structured=True).value if isinstance(outcome, Completed) else None)
    return results


def tools_of(suite: Any, world: Any, trace: list[Any]) -> list[Tool[..., Any]]:
    """Return the tools of a suite as ours, with their labels; `trace` gets the calls that run."""
    return [_tool(suite.name, function, world, trace) for function in suite.tools]


def _tool(suite: str, function: Any, world: Any, trace: list[Any]) -> Tool[..., Any]:
    given = {name: depends.extract_dep_from_env(world) for name, depends in function.dependencies.items()}

    def act(**arguments: Any) -> Any:
        trace.append(FunctionCall(function=function.name, args=arguments))
        return function.run(**arguments, **given)

    labels: Mapping[str, Any] = LABELS[suite][function.name]
    schema = _schema(function.parameters)
    return schema_tool(function.name, schema, act, description=function.description, thread=False, **labels)


@cache
def _schema(parameters: Any) -> dict[str, Any]:
    return parameters.model_json_schema()
