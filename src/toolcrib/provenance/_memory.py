"""Memory of a run: what it has read and from whom, and what a person has to be asked."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from threading import Lock
from typing import Any, Final, cast

from toolcrib.provenance._flow import Flow, fields_of
from toolcrib.provenance._links import links_in, pieces_of
from toolcrib.provenance._origins import PROGRAM, WORDS_OF_USER, Origins, key_of
from toolcrib.provenance._private import PrivateValues
from toolcrib.provenance._question import ASKED, Origin, OriginKind, Question, argument_of
from toolcrib.provenance._texts import dates_in, flat, words_in
from toolcrib.tools import Effect, Source, labelled

__all__ = ["Memory"]

_OUTWARD: Final = frozenset({"send", "spend"})
_SHOWN: Final = 80
_WORDS: Final = 200  # characters of what the user wrote that a question repeats
_MOST_VALUES: Final = 2_000  # of one call
_MOST_NAMED: Final = 8  # of what was read, in a question
_ANY: Final[tuple[OriginKind, ...]] = ("untrusted", "model", "private")  # what values may be that are not looked up
_MOST_WRITTEN: Final = 100  # addresses, links and numbers in one argument
_NAMING: Final = re.compile(r"\d|\w[@./:]\w")
_NO_FLOWS: Final[Mapping[str, Flow]] = {}


class Memory(Origins):
    """What one run has read, and from whom.

    Attributes:
        last_words: What the user wrote last, cut.
        is_whole: Whether all that it has read is results of the run's own calls, and words of the user.
    """

    def __init__(self) -> None:
        super().__init__()
        self.last_words, self.is_whole = "", True
        self._early: set[str] = set()  # programs that count as the user's
        self._has_written = False  # what others wrote, or may have, to where it may be read again
        self._private = PrivateValues()
        self._approved: set[str] = set()  # marks
        self._read_from: dict[str, None] = {}  # where it has read text of others, for a person
        self._heard: set[str] = set()
        self._expected: set[str] = set()
        self._warned: dict[str, tuple[bool, bool]] = {}
        self._waiting: deque[Callable[[], None]] = deque()
        self._lock = Lock()

    # --- what it has read

    def hear(self, text: str) -> None:
        """Keep the user's words; those that it has heard before are kept once."""
        self.last_words = _cut(text, _WORDS)
        if text not in self._heard:
            self._heard.add(text)
            self._user.add(text, WORDS_OF_USER)

    def intend(self, program: str) -> bool:
        """Keep the text of a program, if it was written before any text of others was read: it counts as the user's.

        Return whether it was; one that goes on after a pause was, if it was at first.
        """
        if program not in self._early and not self.reads_others:
            self._early.add(program)
            self._user.add(program, PROGRAM)
        return program in self._early

    def expect(self, call_id: str) -> bool:
        """Note that the result of a call is read where the call is made, or was read; False when that was known."""
        is_new = call_id not in self._expected
        self._expected.add(call_id)
        return is_new

    def expects(self, call_id: str) -> bool:
        """Return whether the result of a call is read where the call is made, or was read."""
        return call_id in self._expected

    def warn(self, call_id: str, *, untrusted: bool, private: bool) -> None:
        """Note that the result of a call, before it is read, is untrusted or private, beyond what its tool declares."""
        if untrusted or private:
            self.is_whole = False
            before = self._warned.get(call_id, (False, False))
            self._warned[call_id] = untrusted or before[0], private or before[1]

    def wait(self, work: Callable[[], None]) -> None:
        """Have something read later, by `settle`, which has to come before any question of origin."""
        self._waiting.append(work)

    @property
    def is_settled(self) -> bool:
        """Whether nothing waits to be read."""
        return not self._waiting

    def settle(self) -> None:
        """Read what waits, in its order; may be called from several threads."""
        with self._lock:
            while self._waiting:
                self._waiting[0]()
                self._waiting.popleft()

    def read(
        self,
        tool: str,
        call_id: str,
        arguments: Mapping[str, Any],
        result: Any,
        source: Source,
        readers: Collection[str] | None = None,
        flows: Mapping[str, Flow] = _NO_FLOWS,
        *,
        echoes: bool = False,
    ) -> None:
        """Keep a result, as JSON shapes, with what its tool declares of it.

        What was looked up by a stranger's words is the stranger's choice: it is untrusted, also where the tool
        declares otherwise.

        Args:
            tool: The tool's name.
            call_id: The call.
            arguments: What it looked up, as JSON shapes.
            result: Its result, as JSON shapes.
            source: How far the result can be trusted.
            readers: To whom it may be sent, by the values of deciding arguments; None for all.
            flows: What may come into the arguments, as far as the text of a program says it.
            echoes: Whether values that the tool was given, and that it says again, stay whose they were.
        """
        labels = source(arguments, result) if callable(source) else source
        given = [(value, self.origin(value, flows.get(argument_of(path)))) for path, value in _leaves(arguments)]
        if any(origin.kind in ASKED for _, origin in given):
            labels = "untrusted"
        own = {key_of(value) for value, origin in given if echoes and origin.kind not in ASKED}
        untrusted, private = self._warned.pop(call_id, (False, False))
        labels, readers = "untrusted" if untrusted else labels, () if private else readers
        about = next((_cut(value) for _, value in _leaves(arguments) if isinstance(value, str)), "")
        place = f"`{tool}`{f' ({about})' if about else ''}"
        for path, held, trust in labelled(result, labels):
            text = held if isinstance(held, str) else str(held)
            self._left -= len(text)
            if self._left < 0:
                return
            number = len(self._sources)
            self._sources.append((Origin(trust, tool, call_id, about, path), text))
            if trust == "trusted":
                self._trusted.add(text, number)
            else:
                self._untrusted.add(text, number)
                self._read_from[place] = None
                if own:
                    self._echoes[number] = own
                for key in own:
                    if self._untrusted.numbers.get(cast("float", key)) == number:
                        del self._untrusted.numbers[cast("float", key)]
            if trust != "trusted" or self._has_written:
                self.note_others(tool, fields_of(path))
            if readers is not None:
                self._private.add(flat(text), number, frozenset(map(flat, readers)))

    def write(self, origin: Origin, arguments: Mapping[str, Any], content: frozenset[str]) -> None:
        """Note what a call with an effect writes: where it is read again, it is no more trusted than it is now.

        Addresses, links and numbers in what it says that only the model knows from where are kept as a stranger's.

        Args:
            origin: The call, as the origin of what it writes.
            arguments: The final arguments as JSON shapes.
            content: The arguments that say something, and decide nothing.
        """
        for path, value in islice(_leaves(arguments), _MOST_VALUES) if self._reads_others else ():
            if self.origin(value).kind not in ASKED:
                continue
            self._has_written = True
            is_said = isinstance(value, str) and argument_of(path) in content
            named = pieces_of(value) if is_said else ()
            for word in islice((word for word in named if _NAMING.search(word) is not None), _MOST_WRITTEN):
                if self.origin(word).kind == "model":
                    self._untrusted.add(word, len(self._sources))
                    self._sources.append((replace(origin, path=path), word))

    def note_others(self, tool: str, fields: str = "") -> None:
        """Note that others may have written in these fields of a tool's results, and so in all that they are in."""
        while (tool, fields) not in self._of_others:
            self._of_others.add((tool, fields))
            fields = fields.rpartition(".")[0]

    def lose(self) -> None:
        """Note that it read text of others which is not here: from now on no result counts as trusted."""
        self._left, self.is_whole = -1, False

    @property
    def reads_others(self) -> bool:
        """Whether it has read text that a stranger may have written, or has such text to read."""
        return bool(self._waiting) or self._reads_others

    # --- what a person has to be asked

    def judge(
        self,
        tool: str,
        effect: Effect,
        arguments: Mapping[str, Any],
        content: frozenset[str] = frozenset(),
        flows: Mapping[str, Flow] = _NO_FLOWS,
        settled: list[Question] | None = None,
    ) -> list[Question]:
        """Return what a person has to be asked before a tool with an effect runs.

        Args:
            tool: The tool's name.
            effect: What it does.
            arguments: The final arguments as JSON shapes.
            content: The arguments that say something, and decide nothing.
            flows: What may come into the arguments, as far as the text of a program says it.
            settled: Gets where the other values come from that decide something.
        """
        leaves = list(islice(_leaves(arguments), _MOST_VALUES + 1))
        if len(leaves) > _MOST_VALUES:
            return _too_many(tool)
        deciding = [each for each in leaves if argument_of(each[0]) not in content]
        said = [each for each in leaves if argument_of(each[0]) in content]
        questions: list[Question] = []
        is_anchored = not (deciding or said) or not self._reads_others
        for path, value in deciding:
            origin = self._origin_for(effect, value, flows.get(argument_of(path)))
            mark = origin.mark(tool, argument_of(path), str(value)) if origin.kind in ASKED else ""
            if not mark or mark in self._approved:
                is_anchored = True
                if settled is not None:
                    settled.append(Question.of(path, _cut(str(value)), origin, mark))
            else:
                questions.append(Question.of(path, _cut(str(value)), origin, mark))
        receivers = {flat(str(value)) for _, value in deciding}
        for path, value in said if effect in _OUTWARD else ():
            questions += self._asked_of_content(tool, path, str(value), receivers)
        if not questions and not is_anchored and all(self._is_of_others(value) for _, value in said):
            mark = Origin("model").mark(tool, "", json.dumps(arguments, sort_keys=True))
            if mark not in self._approved:
                why = f"nothing that `{tool}` is given is the user's, or of a trusted source"
                questions.append(Question("", "", why, "model", mark))
        return questions

    def judge_keys(self, tool: str, arguments: Mapping[str, Any], fields: Collection[str]) -> Iterator[Question]:
        """Yield what a person has to be asked about keys of objects that a stranger wrote.

        Args:
            tool: The tool's name.
            arguments: The final arguments as JSON shapes.
            fields: The keys that the tool's schema names.
        """
        keys = list(islice(_keys(arguments), _MOST_VALUES + 1))
        if len(keys) > _MOST_VALUES:
            yield from _too_many(tool)
            return
        for path, key in keys:
            origin = self.origin(key) if key not in fields and words_in(flat(key)) else None
            if origin is not None and origin.kind == "untrusted":
                yield from self._asked_unless_approved(tool, path, key, origin)

    def judge_programs(self, arguments: Mapping[str, Any], content: frozenset[str] = frozenset()) -> list[Question]:
        """Return what a person has to be asked before a tool runs programs that were written late.

        A program is late when text of others was read before it came for the first time.
        """
        if not self._reads_others:
            return []
        programs = {path: str(each) for path, each in _leaves(arguments) if argument_of(path) not in content}
        late = {path: program for path, program in programs.items() if program not in self._early}
        marks = {path: Origin("untrusted").mark("", "", program) for path, program in late.items()}
        return [
            Question(path, _cut(program), self._why_late(), "untrusted", marks[path])
            for path, program in late.items()
            if marks[path] not in self._approved
        ]

    def _why_late(self) -> str:
        named = [*islice(self._read_from, _MOST_NAMED)]
        more = len(self._read_from) - len(named)
        read = ", ".join([*named, *([f"{more} more"] if more else [])]) or "in another process"
        return f"was written after text of others had been read: {read}"

    def _origin_for(self, effect: Effect, value: Any, flow: Flow | None) -> Origin:
        """Return where a deciding value comes from; one that is paid for may not be chosen by others either."""
        origin = self.origin(value, flow)
        is_choice = effect == "spend" and origin.kind == "trusted" and isinstance(value, str) and self._reads_others
        return replace(origin, kind="chosen") if is_choice and not self._is_meant(value) else origin

    def _is_of_others(self, value: Any) -> bool:
        """Return whether a value that decides nothing shows no sign of the user's will; a date is none."""
        if not isinstance(value, str) or (value[:1].isdigit() and any(dates_in(value))):
            return True
        return self.origin(value).kind in ASKED

    def _asked_of_content(self, tool: str, path: str, text: str, receivers: set[str]) -> Iterator[Question]:
        """Yield links and addresses that a stranger wrote, and private values that go to others than their readers."""
        for link in links_in(text):
            found = self._untrusted.find(flat(link)) or self._host_of_others(flat(link))
            if found is not None and self._user.find(flat(link)) is None:
                yield from self._asked_unless_approved(tool, path, link, self._source(*found))
        for held, number, readers in self._private.within(flat(text)):
            if not receivers <= readers:
                origin = replace(self._source(number), kind="private")
                yield from self._asked_unless_approved(tool, path, held, origin, receivers - readers)

    def _asked_unless_approved(
        self, tool: str, path: str, value: str, origin: Origin, to: Collection[str] = ()
    ) -> Iterator[Question]:
        mark = origin.mark(tool, argument_of(path), value, to)
        if mark not in self._approved:
            yield Question.of(path, _cut(value), origin, mark)

    # --- what was approved

    def approve(self, tool: str, questions: Sequence[Question], arguments: Mapping[str, Any]) -> None:
        """Keep that a person approved these values of a tool's arguments: they are not asked about again.

        Nor are they in a run that was restored from JSON, where it is not known any more where they come from.
        """
        marked = [each for each in questions if each.mark]
        self._approved.update(each.mark for each in marked)
        paths = {each.path for each in marked}
        for path, value in islice(_leaves(arguments), _MOST_VALUES):
            if path in paths:
                self._approved.add(Origin("model").mark(tool, argument_of(path), str(value)))


def _too_many(tool: str) -> list[Question]:
    why = f"`{tool}` is given more values than can be looked up ({_MOST_VALUES:,})"
    return [Question("", "", why, kind) for kind in _ANY]


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the texts and numbers of a JSON value, with their paths; true, false and nothing have no source."""
    if isinstance(value, Mapping):
        for key, held in cast("Mapping[str, Any]", value).items():
            yield from _leaves(held, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for number, held in enumerate(cast("list[Any]", value)):
            yield from _leaves(held, f"{path}[{number}]")
    elif value is not None and not isinstance(value, bool) and (not isinstance(value, str) or words_in(flat(value))):
        yield path, value


def _keys(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the keys of objects inside a JSON value, with the paths of the objects."""
    items = cast("Mapping[str, Any]", value).items() if isinstance(value, Mapping) else ()
    for key, held in items:
        if path:
            yield path, str(key)
        yield from _keys(held, f"{path}.{key}" if path else str(key))
    for number, held in enumerate(cast("list[Any]", value) if isinstance(value, list) else ()):
        yield from _keys(held, f"{path}[{number}]")


def _cut(text: str, most: int = _SHOWN) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"
