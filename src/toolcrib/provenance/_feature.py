"""Provenance as a feature of a run: its gate before a tool with an effect, and its reading of what a model reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakSet

from toolcrib.calls import Ask, DecisionNote, Media, Rejected, lenient, revived
from toolcrib.clock import WALL_CLOCK, time_of
from toolcrib.errors import message_of
from toolcrib.hooks import FeatureParts, FeatureState, GateStep, ModelInput
from toolcrib.pipeline import Call, Run
from toolcrib.provenance._declared import declared_labels, other_receivers, without_defaults
from toolcrib.provenance._memory import Memory
from toolcrib.provenance._policy import ToolLabels
from toolcrib.provenance._question import Origin, Question, path_of
from toolcrib.provenance._shapes import is_small, json_in, media_in, shapes_of
from toolcrib.schema import REDACTED
from toolcrib.tools import Instruction, Place, Source
from toolcrib.toolsets import ToolEntry, Toolset

if TYPE_CHECKING:
    from toolcrib.provenance._policy import Provenance

_NAME: Final = "provenance"
_REFUSAL: Final = "the policy does not allow it"
_MOST_ORIGINS: Final = 50  # of one call, in its record
_SMALL: Final = 5_000  # characters, about, of arguments that are looked up on the event loop
_READING: Final = frozenset({"none", "fetch"})
_ENDS: Final = frozenset({"result", "error", "hook", "refusal"})  # what a call that has ended gives


class RunProvenance(FeatureState):
    """The policy of a run, and the memory of the texts and results that the run has read.

    Attributes:
        policy: The policy.
        memory: The texts and results that the run has read, with their sources.
    """

    def __init__(self, policy: Provenance) -> None:
        self.policy, self.memory = policy, Memory()
        self.memory.today = time_of(WALL_CLOCK).astimezone().date()
        self._listed: WeakSet[Toolset] = WeakSet()  # whose descriptions it has read
        self._streamed: dict[Call, tuple[Place, list[Any]]] = {}  # what it has read of their values
        self._is_first = True  # whether the transcript that it reads is the first one

    def labels_of(self, call: Call) -> ToolLabels:
        """Return the labels of a call under the policy."""
        return self._labels(call.name, call.entry, call.run)

    def _labels(self, name: str, entry: ToolEntry | None, run: Run) -> ToolLabels:
        """Return the labels of a tool, as the rules of the policy change them."""
        declared, toolsets = (ToolLabels(), ()) if entry is None else (declared_labels(entry.tool), entry.toolsets)
        return self.policy.labels(declared, name, toolsets, run.principal)

    # --- what the run reads

    def read_descriptions(self, toolset: Toolset, run: Run) -> None:
        """Read the tool descriptions of servers that the host does not trust into a run; of the same tools, once."""
        if toolset in self._listed:
            return
        self._listed.add(toolset)
        toolset.listen_for_renewal(self)
        for entry in toolset.entries.values():
            source = entry.tool.source
            if source is None or entry.tool.options.source != "untrusted":
                continue
            definition, listing = source.get_definition(), source.get_listing()
            if definition is None and listing is None:
                continue  # the host's own code
            listing, instruction = listing or {}, source.get_instruction(run.context())
            about = {
                "name": entry.name,
                "description": entry.description,
                "parameters": entry.parameters,
                "title": listing.get("title"),
                "returns": listing.get("outputSchema"),
                "instructions": instruction.content if isinstance(instruction, Instruction) else None,
            }
            run.read_input(ModelInput("description", about, entry=entry, key=f"description {about}"))

    def renewed(self) -> None:
        """Forget the toolsets whose descriptions it has read: a server has other tools now."""
        self._listed.clear()

    def read_input(self, given: ModelInput, run: Run) -> None:
        memory, request = self.memory, given.request
        call = given.call
        if call is not None:
            self.read_descriptions(call.toolset, run)
        if given.origin in _ENDS and request is not None:
            memory.end(request.name, request.id)
            memory.expect_result(request.id, request.name)
        match given.origin:
            case "result" | "error" | "hook":
                self._read_result(given.call, given)
            case "value":
                self._read_value(given.call, given.value)
            case "refusal" if given.call is not None and _is_of_hook(given.call.outcome):
                self._read_untrusted(given, given.value)
            case "description":
                self._read_untrusted(given, {"description": given.value})
            case "artifacts":
                self._do(lambda: memory.keep_files("artifacts", "", given.value, None))
            case "user":
                memory.hear(given.value)
            case "program":
                memory.intend(given.value)
            case "client":
                self._read_answer(given)
            case "tools":
                self.read_descriptions(given.value, run)
            case "transcript":
                self._is_first = memory.expect("transcript")
            case "model":
                memory.is_told = memory.is_told or self._is_first
            case "warning" if request is not None:
                memory.warn(request.id, untrusted="untrusted" in given.value, private="private" in given.value)
            case "restored":
                if given.is_text and request is not None and memory.is_expected(request.id, request.name, given.key):
                    return
                if given.key and not memory.expect(given.key):
                    return
                if given.is_lost:
                    memory.lose()
                else:
                    self._read_restored(given, run)
            case _:
                return

    def _read_result(self, call: Call, given: ModelInput) -> None:
        """Read the result of a call, or its error, by the labels of its tool; also a result that a hook gave.

        A long result is read when the next call is checked, off the event loop.
        """
        memory, labels = self.memory, self.labels_of(call)
        value, source = given.value, labels.source
        handle = call.shown_arguments.get("handle") if call.received.origin == "model" else None
        kept_result = getattr(call.outcome, "kept", None)
        if kept_result is not None:
            memory.handles.add(kept_result.handle)
        if self._has_streamed(call, value):
            return
        if given.origin == "error":
            value, source = {"error": "" if call.error is None else message_of(call.error)}, "untrusted"
        elif given.origin == "hook":
            source = "untrusted"  # it may be a copy of anybody's words
        if source is None and labels.effect == "program":
            source = "untrusted" if memory.reads_others else None  # it may have made something else of what it read
        elif source is None and handle not in (None, *memory.handles):
            source = "untrusted"  # an earlier run has read it, and this one has not
            labels = replace(labels, readers=() if self._has_private(call) else None)
        if source is not None:
            self._keep(call, value, source, labels)

    def _read_value(self, call: Call, value: Any) -> None:
        """Read a value of a stream before its result is known: by the labels of the tool, unless they need that."""
        labels, (root, streamed) = self.labels_of(call), self._streamed.setdefault(call, (Place(), []))
        if labels.effect == "program" and labels.source is None:
            return  # the calls of the program are read as they are made
        source: Source = "untrusted" if labels.source is None or callable(labels.source) else labels.source
        self._keep(call, value, source, labels, Place(root, len(streamed)))
        streamed.append(value)

    def _has_streamed(self, call: Call, value: Any) -> bool:
        """Return whether a result is the values of a stream, which were read one by one."""
        _, read = self._streamed.pop(call, (None, list[Any]()))
        items = cast("list[Any]", value) if isinstance(value, list) else []
        return bool(read) and len(read) == len(items) and all(a is b for a, b in zip(read, items, strict=True))

    def _has_private(self, call: Call) -> bool:
        """Return whether a tool of the call's toolset has results that few may read."""
        entries = call.toolset.entries
        return any(self._labels(name, entry, call.run).readers is not None for name, entry in entries.items())

    def _keep(self, call: Call, value: Any, source: Source, labels: ToolLabels, at: Place | None = None) -> None:
        """Keep a result of a call, or a value of a stream at its place."""
        memory, echoes = self.memory, labels.effect not in _READING
        arguments: Mapping[str, Any] = call.shown_arguments if call.received.origin == "model" else {}
        kept_result = getattr(call.outcome, "kept", None)
        handles = [] if kept_result is None else [Media("text/plain", b"", name=kept_result.handle)]
        read = partial(
            memory.read, call.name, call.id, arguments, source=source, readers=labels.readers, fields=labels.fields
        )

        def keep(shapes: Any) -> None:
            if labels.readers is not None:
                files = media_in(revived(lenient(value, media=True)))
                memory.keep_files(call.name, call.id, [*files, *handles], labels.readers)
            read(result=shapes, echoes=echoes, at=at)

        self._read_shapes(value, keep, with_files=labels.effect != "program")  # a program draws what was read before

    def _read_untrusted(self, given: ModelInput, value: Any) -> None:
        """Read an unlabelled value: it is a stranger's."""
        request = given.request
        name, id = (given.origin, "") if request is None else (request.name, request.id)
        if not given.key or self.memory.expect(given.key):
            self._read_shapes(value, lambda shapes: self.memory.read(name, id, {}, shapes, "untrusted"))

    def _read_shapes(self, value: Any, keep: Callable[[Any], None], *, with_files: bool = True) -> None:
        """Keep a value as JSON shapes: at once, or before the next call is checked when it is long.

        Args:
            value: The value.
            keep: Keeps the shapes.
            with_files: Whether the texts of files are among them.
        """
        memory = self.memory

        def read() -> None:
            shapes, is_whole = shapes_of(value, with_files=with_files)
            keep(shapes)
            if not is_whole:
                memory.lose()  # what is not looked at

        self._do(read, is_small=is_small(value))

    def _do(self, work: Callable[[], None], *, is_small: bool = True) -> None:
        """Run work on the memory: at once, or in its turn where it is long or other work waits."""
        if self.memory.is_settled and is_small:
            work()
        else:
            self.memory.wait(work)

    def _read_answer(self, given: ModelInput) -> None:
        """Read the answer of a call's client: it may be a stranger's, and so may be the result of the call."""
        memory, request, shapes = self.memory, given.request, lenient(given.value)
        name, id = ("", "") if request is None else (request.name, request.id)
        memory.warn(id, untrusted=True, private=False)
        memory.wait(lambda: memory.read(f"{name}: client", f"{id}: client", {}, shapes, "untrusted"))

    def _read_restored(self, given: ModelInput, run: Run) -> None:
        """Read a result that the run did not get by a call of its own, before its next call is checked.

        The result of a tool that is not known is untrusted, unless a rule names it. Labels by field hold for what a
        model was shown where it is whole JSON.
        """
        memory, request, entry, value = self.memory, given.request, cast("ToolEntry | None", given.entry), given.value
        name, id = ("", "") if request is None else (request.name, request.id)
        ruled = self._labels(name, entry, run)
        source: Source = "untrusted" if given.is_error or ruled.source is None else ruled.source
        found = {"error": value} if given.is_error else json_in(value) if given.is_text else value

        def read() -> None:
            raw: Any = None if request is None else json_in(request.arguments)
            named: dict[str, Any] = {} if raw in (None, "", "null") else {"input": raw}
            arguments = cast("Mapping[str, Any]", raw) if isinstance(raw, Mapping) else named
            labels: Source = source
            if given.is_text and found is value and not isinstance(source, str):
                labels = "untrusted"
            try:
                labels = labels(arguments, found) if callable(labels) else labels
            except Exception:  # a function of the host's, which may not know a result by what a model was shown of it
                labels = "untrusted"
            echoes = entry is not None and ruled.effect not in _READING
            fields = None if entry is None else ruled.fields
            if entry is not None and ruled.effect not in ("none", "program"):
                content = ruled.content_of(arguments)
                memory.write_again(Origin("untrusted", name, id), arguments, content, ruled.effect, ruled.fields)
            memory.read(name, id, arguments, found, labels, ruled.readers, echoes=echoes, fields=fields)

        memory.is_whole = False
        memory.wait(read)

    # --- what is kept of it

    async def asks_about_program(self, code: str) -> bool:
        if not self.policy.frozen:
            return False
        while not self.memory.is_settled:
            await asyncio.to_thread(self.memory.settle)
        return bool(self.memory.judge_programs({"code": code}))

    def approve(self, call: Call, origins: Sequence[Mapping[str, str]]) -> None:
        arguments = call.canonical_arguments
        work = partial(self.memory.approve, call.name, _questions(origins), arguments)
        self._do(work, is_small=is_small(arguments, _SMALL))

    def describe(self, call: Call) -> Mapping[str, Any]:
        return {"weighed": self.memory.is_whole}

    def to_dict(self) -> Mapping[str, Any]:
        return self.memory.to_dict()

    def restore(self, data: Mapping[str, Any], *, is_same_run: bool) -> None:
        self.memory.restore(data, is_same_run=is_same_run)


def _state_of(run: Run) -> RunProvenance | None:
    """Return the policy of a run with its memory; None for a run without a policy."""
    state = run.feature(_NAME)
    return state if isinstance(state, RunProvenance) else None


def memory_of(run: Run) -> Memory:
    """Return the memory of a run with a policy: the texts and results that it has read, with their sources.

    Raises:
        LookupError: The run has no policy.
    """
    state = _state_of(run)
    if state is None:
        raise LookupError("the run has no policy of provenance; give it one: Run(features=[Provenance()])")
    return state.memory


# --- the gate


async def check_origins(call: Call) -> Ask | Rejected | None:
    """Ask for approval because of the origins of a call's arguments, or refuse the call as a rule says.

    Tools that do nothing but read are not asked about, and a host's own arguments neither.
    """
    state = _state_of(call.run)
    if state is None or call.received.origin == "host":
        return None
    labels, policy, memory = state.labels_of(call), state.policy, state.memory
    is_program = labels.effect == "program"
    state.read_descriptions(call.toolset, call.run)
    if labels.effect == "none" or (is_program and not policy.frozen):
        return None
    while not memory.is_settled:
        await asyncio.to_thread(memory.settle)
    unasked: list[Question] | None = [] if call.is_recorded else None
    check = partial(_found, call, memory, labels, unasked)
    if is_small(call.canonical_arguments, _SMALL):
        found = check()
    else:
        checked = memory.wait_for_check(check)
        await asyncio.to_thread(memory.settle)
        found = checked.result()
    questions = tuple(_shown(call, question) for question in found if labels.verdict(question.kind) != "allow")
    if questions and questions == _questions(call.asked_origins(_NAME)):
        return None
    known = [_shown(call, question) for question in (*found, *(unasked or ())) if question.path][:_MOST_ORIGINS]
    origins = [question.origin() for question in known]
    if not questions:
        if call.is_recorded and origins:
            call.add_note(DecisionNote(_NAME, "run", "", origins))
        return None
    refused = [question for question in questions if labels.verdict(question.kind) == "deny"]
    reason = "; ".join(dict.fromkeys(question.text() for question in refused or questions))
    if memory.last_words:
        reason = f"{reason}; you wrote: {memory.last_words}"
    if policy.dry_run:
        would = "refuse" if refused else "ask"
        call.add_note(DecisionNote(_NAME, "run", f"dry run, it would {would}: {reason}", origins))
        return None
    call.add_note(DecisionNote(_NAME, "reject" if refused else "ask", reason, origins))
    if refused:
        return Rejected(call.name, call.id, f"{_REFUSAL}: {reason}")
    lines: dict[str, Any] = {}
    if is_program:  # an argument is shown as one line
        shown = {question.argument: call.shown_arguments[question.argument] for question in questions}
        lines = {name: text for name, text in shown.items() if "\n" in str(text)}
    return Ask(reason, lines, tuple(question.to_dict() for question in questions))


_GATE: Final = GateStep(_NAME, "authorize", check_origins, frozenset({"new", "edited"}), reads_host_arguments=False)


def parts_of(policy: Provenance) -> FeatureParts:
    """Return the parts that a policy registers with a run."""
    names = tuple(dict.fromkeys(rule.tool for rule in policy.rules if rule.tool != "*"))
    return FeatureParts(_NAME, lambda run: RunProvenance(policy), (replace(_GATE, tool_names=names),))


def _found(call: Call, memory: Memory, labels: ToolLabels, unasked: list[Question] | None) -> list[Question]:
    """Return the possible questions about the arguments, by the rules, and record the values that the call would write.

    Args:
        call: The call.
        memory: The memory of the run.
        labels: The labels of the tool.
        unasked: Gets the origins of the other values that decide something.
    """
    values = call.canonical_arguments
    content = labels.content_of(values)
    if labels.effect == "program":
        return memory.judge_programs(values, content)
    arguments = without_defaults(call.tool, values)
    receivers = [*other_receivers(call.tool, arguments, content, labels)] if memory.has_private else ()
    found = memory.judge(call.name, labels.effect, arguments, content, unasked, receivers=receivers)
    keys = memory.judge_keys(call.name, arguments, labels.fields, labels.effect)
    found += [key for key in keys if key.argument not in content]
    memory.write(Origin("untrusted", call.name, call.id), values, content, labels.effect, labels.fields)
    deciding = {name: value for name, value in values.items() if name not in content}
    memory.begin(call.name, call.id, labels.effect, deciding)
    return [*found, *memory.judge_under_way(call.name, call.id)]


def _questions(origins: Iterable[Mapping[str, str]]) -> tuple[Question, ...]:
    return tuple(Question(**cast("dict[str, Any]", origin)) for origin in origins)


def _shown(call: Call, question: Question) -> Question:
    """Return a question of an argument alone, without what could be guessed from, where the argument has a secret."""
    values, shown, name = call.canonical_arguments, call.shown_arguments, question.argument
    is_secret = shown is not values and shown.get(name) != values.get(name)
    if question.path and is_secret:  # its keys are secret too
        return replace(question, path=path_of("", name), value=REDACTED, part="", mark="")
    if question.path:
        return question
    return replace(question, mark="") if shown is not values else question  # a mark of all the arguments


# --- values


def _is_of_hook(outcome: Any) -> bool:
    """Return whether an outcome has the words of a hook, which may be anybody's, and is not a refusal of a policy."""
    is_rejected = isinstance(outcome, Rejected) and outcome.source == "hook"
    return is_rejected and not outcome.reason.startswith(_REFUSAL)
