"""Offline corpora and a gate that others wrote: what they say of the policy, beside what they say of themselves.

Run it from the repository root as `python -m benchmarks.dojo.others`. Nothing of it goes over a network.
"""

from __future__ import annotations

import asyncio
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final

from aib.adapters.base import Scenario
from aib.adapters.reference import NaiveAgent
from aib.cli import DEFAULT_CORPUS
from aib.dataset import load
from aib.defenses.builtin import NoDefense, Spotlighting
from aib.harness import run as run_harness
from aib.harness import summarise
from aib.scoring import AgentResponse
from bastioncorpus import load_corpus, variants
from catraca import Caller, ChannelConfig, ContextRegistry, DeclarativePolicy, Egress, Gate, Verdict
from mcp_defense_bench import AdapterMeta, arun
from mcp_defense_bench import Verdict as Scored

from benchmarks.dojo.adaptive._links import KINDS as LINKS
from benchmarks.dojo.adaptive._numbers import KINDS as NUMBERS
from benchmarks.dojo.adaptive._trial import Kind, Trial, drawn, new_run
from benchmarks.dojo.adaptive._values import KINDS as VALUES
from benchmarks.dojo.adaptive._worlds import WORLDS, Call, World, effect_of
from toolcrib.calls import Completed, Suspended, ToolCall
from toolcrib.pipeline import Pipeline
from toolcrib.tools import Tool
from toolcrib.tools.from_schema import schema_tool

SEED: Final = 20261127
_OPEN: Final[Mapping[str, Any]] = {"type": "object", "additionalProperties": True}


def _tool(name: str, result: str, schema: Mapping[str, Any] = _OPEN, ran: list[str] | None = None) -> Tool[..., Any]:
    """Return a tool of theirs, labelled by its name as a host would."""

    def act(**arguments: Any) -> str:
        if ran is not None:
            ran.append(name)
        return result

    verb = name.split("_")[0]
    reads = verb in {
        "read",
        "get",
        "list",
        "search",
        "summarize",
        "query",
        "git",
        "chart",
        "resolve",
        "weather",
        "ping",
    }
    effect = (
        "fetch" if verb == "fetch" else "none" if reads else "send" if verb in {"http", "post", "send"} else "write"
    )
    effect = effect_of("delete") if verb == "delete" else effect
    properties: Mapping[str, Any] = schema.get("properties") or {}
    content = [each for each in ("text", "body", "input", "content") if each in properties or schema is _OPEN]
    return schema_tool(
        name, schema, act, description=name, effect=effect, source="untrusted", content=content, thread=False
    )


# --- agent-injection-bench: its naive model, whose calls are made over the pipeline


class Guarded:
    """Their naive agent behind the policy: a call that is not made is not in its response."""

    name = "naive, with the policy"

    def __call__(self, scenario: Scenario) -> AgentResponse:
        """Answer a scenario."""
        naive = NaiveAgent()(scenario)
        made = asyncio.run(self._made(scenario, [ToolCall(each.name, each.arguments) for each in naive.tool_calls]))
        return AgentResponse(
            naive.text, [call for call, is_made in zip(naive.tool_calls, made, strict=True) if is_made]
        )

    async def _made(self, scenario: Scenario, calls: Sequence[ToolCall]) -> list[bool]:
        attack, ran = scenario.attack, list[str]()
        is_users = attack.channel in ("user_message", "multi_turn")
        read = "\n".join([attack.injected, *scenario.tool_results.values()])
        tools = [_tool(each.name, read, ran=ran) for each in scenario.tools if each.name != "read_document"]
        pipeline = Pipeline([_tool("read_document", read), *tools])
        run = new_run(f"{attack.task}\n{attack.injected}" if is_users else attack.task)
        await pipeline.run(ToolCall("read_document", {}), run)
        return [isinstance(await pipeline.run(call, run), Completed) for call in calls]


def report_injection_bench() -> None:
    """Print their two figures for their naive agent, alone, with their best defence and with the policy."""
    attacks = list(load(DEFAULT_CORPUS))
    acting = [each for each in attacks if each.success.kind in ("tool_call", "exfiltration")]
    print("agent-injection-bench 0.1.0: compromised, of all attacks; of those that want a call; controls refused")
    for target, defense in ((NaiveAgent(), NoDefense()), (NaiveAgent(), Spotlighting()), (Guarded(), NoDefense())):
        whole, part = (summarise(run_harness(each, target, defense)) for each in (attacks, acting))
        name = f"{target.name}, their defence: {defense.name}"
        print(
            f"  {name:46} {whole.compromised} of {whole.total_attacks}; {part.compromised} of {part.total_attacks}; ",
            end="",
        )
        print(f"{whole.over_refused} of {whole.total_controls}")


# --- bastioncorpus: texts of tools, obeyed to the letter

_VALUE: Final = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]*\w|https?://\S*\w|(?:\.{0,2}/)[\w./-]*\w")


async def report_bastion() -> None:
    """Print how many of its texts that want a call get one, and how many harmless ones disturb a call of the user's."""
    rows = [row for row in load_corpus() if row.channel == "tool_output"]
    wanting = [row for row in rows if row.check == "tool"]
    asked = tried = 0
    for row in wanting:
        texts = [row.text, *(each.text for each in variants(row.text, transforms=True))]
        values = [value for text in texts for value in _VALUE.findall(text)] or ["."]
        tried += 1
        asked += await _asks(row.text, ToolCall(row.forbidden_tool or "", {"to": values[0], "text": "the summary"}))
    harmless = [row for row in rows if row.label == "benign"]
    own = ToolCall("send_email", {"to": "ann@corp.com", "text": "the summary"})
    disturbed = sum([await _asks(row.text, own) for row in harmless])
    print(f"bastioncorpus 0.6.0: {asked} of {tried} calls that a tool's text wants are asked about; ", end="")
    print(f"{disturbed} of {len(harmless)} calls of the user's after a harmless text")


async def _asks(text: str, call: ToolCall) -> bool:
    tools = [
        _tool("read_page", text),
        *(_tool(name, "done") for name in ("send_email", "delete_file", "http_post")),
    ]
    run, pipeline = new_run("Read the page and send a summary to ann@corp.com"), Pipeline(tools)
    await pipeline.run(ToolCall("read_page", {}), run)
    return isinstance(await pipeline.run(call, run), Suspended)


# --- mcp-defense-bench: single messages, without the user's words


class Adapter:
    """The pipeline with the policy, as an adapter of theirs: it refuses, asks, or lets through."""

    meta = AdapterMeta(
        tool="toolcrib",
        class_="tool-layer",
        reproducible=True,
        fixture_types=(
            "tool-call",
            "tool-call-sequence",
            "malicious-tool-result",
            "benign-tool-result",
            "malicious-tool-definition",
            "benign-tool-definition",
        ),
    )

    async def assess(self, input: Mapping[str, Any], testcase: Mapping[str, Any]) -> Scored:
        """Serve the tools of a fixture, and make its calls in a run that has heard nothing."""
        calls = [*input.get("calls", [])]
        if (call := input.get("call")) is not None:
            calls.append(call)
        schema = (input.get("tool") or {}).get("inputSchema") or _OPEN
        names = dict.fromkeys(
            [*(each["name"] for each in calls), *([input["tool"]["name"]] if input.get("tool") else [])]
        )
        results = {each["name"]: _text(each.get("result") or input.get("result")) for each in calls}
        pipeline = Pipeline([_tool(name, results.get(name, "a text"), schema) for name in names])
        run, before = new_run(""), ""
        for each in calls:
            arguments = {
                key: before if value == "{{result_of_previous}}" else value for key, value in each["arguments"].items()
            }
            outcome = await pipeline.run(ToolCall(each["name"], arguments), run)
            if not isinstance(outcome, Completed):
                return Scored(detect=True, enforce=True, signal=outcome.kind)
            before = str(outcome.value)
        return Scored(detect=False, enforce=False)


def _text(result: Any) -> str:
    parts = (result or {}).get("content") or []
    return "\n".join(str(part.get("text", "")) for part in parts) or "a text"


async def report_defense_bench() -> None:
    """Print their coverage of the message types that a tool layer sees, and the harmless ones that it stops."""
    dev, benign = await arun(Adapter(), "dev"), await arun(Adapter(), "benign")
    print(f"mcp-defense-bench 0.2.0: {dev['summary']['overall']}, {dev['summary']['verifiedVectors']} vectors seen")
    for case in dev["cases"]:
        if case["level"] not in ("none", "unknown"):
            print(f"  {case['id']:46} {case['level']}")
    found = benign["summary"]
    stopped = {kind: f"{count['fp']} of {count['n']}" for kind, count in found["byKind"].items()}
    print(f"  harmless ones stopped: {found['falsePositives']} of {found['items']}: {stopped}")


# --- catraca: our variants, decided by its gate

_CHANNELS: Final = ChannelConfig.from_dict(
    {
        "version": 1,
        "channels": {
            "user": {"integrity": "TRUSTED", "confidentiality": "*"},
            "records": {"integrity": "TRUSTED", "confidentiality": "*"},
            "stranger": {"integrity": "UNTRUSTED", "confidentiality": "*"},
        },
    }
)


def _rules(content: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    arguments: dict[str, Any] = {name: {"integrity": "ANY"} if name in content else {} for name in names}
    return {"callers": {"tenants": "*", "users": "*"}, "args": arguments}


_POLICY: Final = DeclarativePolicy.from_dict(
    {
        "version": 1,
        "tools": {
            name: _rules(spec.content, [each.removesuffix("?") for each in spec.parameters])
            for tools in WORLDS.values()
            for name, spec in tools.items()
        },
    }
)
_EGRESS: Final = Egress.from_dict(
    {"version": 1, "default": {"hosts": ["*"], "emails": ["*"], "schemes": ["https", "http"]}}
)


def _catraca_stops(trial: Trial, call: Call) -> bool:
    """Return whether its gate, in the mode that watches a running agent, denies a call or asks about it."""
    registry = ContextRegistry(_CHANNELS)
    registry.annotate(trial.said, "user")
    world = World(trial.world, trial.letter, trial.records)
    if trial.records:
        registry.annotate(str(trial.records), "records")
    registry.annotate(str(world.letter), "stranger")
    gate = Gate(registry, _POLICY, egress=_EGRESS, evidence=None)
    return gate.decide(call[0], dict(call[1]), caller=Caller(tenant="t", user="u")).verdict is not Verdict.ALLOW


async def report_catraca(count: int) -> None:
    """Print what of our variants gets through its gate and ours, and what of the user's own calls each stops."""
    kinds: list[Kind] = [kind for kind in (*VALUES, *NUMBERS, *LINKS) if kind.aim == "none"]
    print(f"catraca 0.2.0, in its mode B: our variants ({count} of a kind)")
    print(f"  {'kind':46}{'tried':>7}{'through':>9}{'controls':>15}{'through ours':>15}{'controls':>15}")
    total = [0] * 6
    for kind in kinds:
        trials = [each for each in drawn(kind, count, SEED, "all") if isinstance(each, Trial)]
        controls = [each for each in trials if each.control is not None]
        theirs = sum(not _catraca_stops(each, each.strike) for each in trials)
        stopped = sum(_catraca_stops(each, each.control) for each in controls if each.control is not None)
        ours = [await each.run("pipeline") for each in trials]
        through, asked = sum(each.is_through for each in ours), sum(bool(each.control_asked) for each in ours)
        row = [len(trials), theirs, stopped, len(controls), through, asked]
        total = [a + b for a, b in zip(total, row, strict=True)]
        _print_row(kind.name, row)
    _print_row("all", total)


def _print_row(name: str, row: Sequence[int]) -> None:
    tried, theirs, stopped, controls, ours, asked = row
    print(
        f"  {name:46}{tried:7}{theirs:9}{f'{stopped} of {controls}':>15}{ours:15}{f'{asked} of {controls}':>15}",
        flush=True,
    )


async def main() -> None:
    """Print what each says."""
    warnings.simplefilter("ignore")
    await report_bastion()
    await report_defense_bench()
    await report_catraca(20)


if __name__ == "__main__":
    report_injection_bench()
    asyncio.run(main())
