"""Memory of a run: the texts and results that it has read, with their sources, and the questions for a person."""

from __future__ import annotations

import ast
import json
import logging
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import PurePosixPath
from threading import Lock
from typing import Any, Final, cast

from toolcrib.calls import Media
from toolcrib.provenance._kinds import number_of, without_moments
from toolcrib.provenance._links import links_in, pieces_of
from toolcrib.provenance._origins import (
    APART,
    PROGRAM,
    WORDS_OF_USER,
    Origins,
    Piece,
    Reading,
    key_of,
    number_text,
    value_of,
    words_named,
)
from toolcrib.provenance._private import PrivateValues
from toolcrib.provenance._question import (
    ASKED,
    ASKED_INSIDE,
    Origin,
    OriginKind,
    Question,
    argument_of,
    cut,
    digest_of,
    path_of,
)
from toolcrib.provenance._texts import TextIndex, flat, words_in
from toolcrib.provenance._writings import Binding, Moment, moments_in
from toolcrib.tools import INSIDE, Effect, Labels, Place, Source, labelled

_log = logging.getLogger("toolcrib.provenance")
_WORDS: Final = 200  # characters of what the user wrote that a question repeats
_MOST_VALUES: Final = 2_000  # of one call
_LONGEST_VALUE: Final = 200  # characters of what names a record
_MOST_NAMED: Final = 8  # of what was read, in a question
_ANY: Final[tuple[OriginKind, ...]] = ("untrusted", "model", "private")  # what values may be that are not looked up
_MOST_WRITTEN: Final = 100  # addresses, links and numbers in one argument
_MOST_LINKS: Final = 200  # in one text
_SHORTEST: Final = 2  # letters of words such as "to", which name nothing
_NAMING: Final = re.compile(r"\d|\w[@./:]\w")
_VALUES: Final = re.compile(r"[<>()\[\]{}=:,;|\n\"']+|[^\s<>()=:,;|\"']*(?:\d|\w[@./]\w)[^\s<>()=:,;|\"']*")
"""The text between the names of a text that has values as well."""
_LONE_MARK: Final = re.compile(
    r"(?<![^\s'\"`(])[^\w\s]+(?![^\s'\"`),;])"
)  # such as `*`, which a program has for itself
_OF_USER: Final = re.compile(r"[^\W\d_]{4,}")  # a word that shows the user's will


class Memory(Origins):
    """The texts and results that one run has read, with their sources.

    Attributes:
        last_words: The last text of the user, cut.
        is_whole: Whether it has read only results of the run's own calls, and words of the user.
        handles: The handles of kept results that it has read.
        is_told: Whether the model has said something before, from an unknown source.
    """

    def __init__(self) -> None:
        super().__init__()
        self.last_words, self.is_whole = "", True
        self._early: set[str] = set()  # programs that count as the user's
        self._will = TextIndex()  # what the user wrote, and no program
        self._private = PrivateValues()
        self._approved: set[str] = set()  # marks
        self._read_from: dict[str, None] = {}  # where it has read text of others, for a person
        self._heard: set[str] = set()
        self.handles: set[str] = set()  # of kept results that it has read
        self._expected: set[str] = set()
        self._results: dict[tuple[str, str], str] = {}
        self._warned: dict[str, tuple[bool, bool]] = {}
        self._waiting: deque[Callable[[], None]] = deque()
        self._lock = Lock()

    # --- what it has read

    def hear(self, text: str) -> None:
        """Keep the user's words; those that it has heard before are kept once."""
        self.last_words = cut(text, _WORDS)
        if text not in self._heard:
            self._heard.add(text)
            self._user.add(text, WORDS_OF_USER)
            self._will.add(text, WORDS_OF_USER)

    def intend(self, program: str) -> bool:
        """Keep the literals of a program that was written before any text of others was read: they count as the user's.

        They say nothing of what the user wants. Return whether it was; one that goes on after a pause was, if it was at
        first.
        """
        if program not in self._early and not self.reads_others:
            self._early.add(program)
            literals = (_LONE_MARK.sub(APART, literal) for literal in _literals(program))
            self._user.add(f" {APART} ".join(literals), PROGRAM)
        return program in self._early

    def expect(self, key: str) -> bool:
        """Record that the value with this key is read now, or is not to be read; False when that was known."""
        is_new = key not in self._expected
        self._expected.add(key)
        return is_new

    def expect_result(self, call_id: str, tool: str) -> None:
        """Record that the result of a call is read where the call is made."""
        self._results.setdefault((call_id, tool), "")

    def is_expected(self, call_id: str, tool: str, key: str) -> bool:
        """Return whether a result in a transcript is that of a call whose result is read where it is made.

        The first result with the id and the tool of a call is; another one under the same id is somebody else's.

        Args:
            call_id: The call's id.
            tool: The tool.
            key: Names the result.
        """
        known = self._results.get((call_id, tool)) if call_id else None
        if known == "":
            self._results[call_id, tool] = key
        return known in ("", key)

    def warn(self, call_id: str, *, untrusted: bool, private: bool) -> None:
        """Mark the result of a call, before it is read, as untrusted or private, beyond what its tool declares."""
        if untrusted or private:
            self.is_whole = False
            before = self._warned.get(call_id, (False, False))
            self._warned[call_id] = untrusted or before[0], private or before[1]

    def wait(self, work: Callable[[], None]) -> None:
        """Defer a reading to `settle`, which has to come before any question of origin."""
        self._waiting.append(work)

    @property
    def is_settled(self) -> bool:
        """Whether nothing waits to be read."""
        return not self._waiting

    def settle(self) -> None:
        """Read the waiting texts, in order; may be called from several threads."""
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
        *,
        echoes: bool = False,
        at: Place | None = None,
    ) -> None:
        """Keep a result, as JSON shapes, with the labels that its tool declares.

        A result that was looked up by a stranger's words is the stranger's choice: it is untrusted, also where the tool
        declares otherwise.

        Args:
            tool: The tool's name.
            call_id: The call.
            arguments: The arguments of the call, as JSON shapes.
            result: Its result, as JSON shapes.
            source: How far the result can be trusted.
            readers: Those to whom it may be sent, by the values of deciding arguments; None for all.
            echoes: Whether values of the arguments that the result repeats keep their origins.
            at: The place in the result of a value of a stream.
        """
        self._begin()
        labels = _labels_of(source, tool, arguments, result)
        lookups = [(value, self._least_trusted(value)) for _, value in islice(_leaves(arguments), _MOST_VALUES)]
        unknown = [flat(str(value)) for value, origin in lookups if origin.kind in ASKED]
        if unknown and not echoes:
            labels = "untrusted"
        written = {word for text in unknown for word in words_in(text)}  # which an effect may say again
        echoed = {key_of(value) for value, origin in lookups if echoes and origin.kind not in ASKED}
        untrusted, private = self._warned.get(call_id, (False, False))
        labels, readers = "untrusted" if untrusted else labels, () if private else readers
        about = next((cut(str(value)) for value, _ in lookups), "")
        place = Place() if at is None else at
        reading = Reading(tool, call_id, arguments, about, place if place.parent is None else place.parent)
        self._writings.read_all(tool, call_id, (str(value) for value, _ in lookups), reading.root)
        if labels != "trusted":
            flags = (value for _, value in _leaves(result, with_flags=True) if not _has_words(value))
            self._bits += sum(1 for _ in islice(flags, _MOST_VALUES))
        read_from = f"`{tool}`{f' ({about})' if about else ''}"
        allowed = None if readers is None else frozenset(map(flat, readers))
        for leaf in labelled(result, labels, place):
            value, trust = leaf.value, leaf.trust
            text = value if isinstance(value, str) else number_text(value) if isinstance(value, float) else str(value)
            is_washed = bool(written) and not written.isdisjoint(words_in(flat(text)))
            if is_washed or (trust == "name" and without_moments(flat(text)) != flat(text)):
                trust = "untrusted"
            self._left -= len(text)
            if self._left < 0 and (allowed is None or self._private.is_full):
                return
            number = len(self._sources)
            self._sources.append(Piece(reading, leaf.place, text, trust, leaf.is_beside, leaf.is_key))
            if not leaf.is_key:
                self._writings.read(leaf.place, text)
            if allowed is not None:
                self._private.add(text, number, allowed)
            if self._left < 0:
                continue  # what may not be sent is found all the same
            if trust != "untrusted":
                self._has_chosen = self._has_chosen or trust == "name" or leaf.is_beside
                if trust != "name":
                    self._trusted.add(text, number)
                if len(text) <= _LONGEST_VALUE:
                    self._values.setdefault(value_of(text), []).append(number)
            else:
                self._untrusted.add(text, number, echoed)
                self._read_from[read_from] = None
                if echoed:
                    self._echoes[number] = echoed

    def keep_files(self, tool: str, call_id: str, files: Iterable[Media], readers: Collection[str] | None) -> None:
        """Keep the names, links and texts of files as private: who has the name of a file may open it.

        Args:
            tool: The tool that returned them, or what ran the program that left them.
            call_id: The call.
            files: The files.
            readers: To whom they may be sent; None for those who may read all private values that the run has read.
        """
        allowed = self._private.readers if readers is None else frozenset(map(flat, readers))
        if allowed is None:
            return
        for file in files:
            root, number = Place(), len(self._sources)
            reading = Reading(tool, call_id, {}, file.name, root)
            self._sources.append(Piece(reading, Place(root, file.name or "link"), file.name or file.url or ""))
            for name in {file.name, PurePosixPath(file.name).name, file.url or ""}:
                self._private.add_name(name, number, allowed)
            text = (file.data or b"").decode("utf-8", "replace")
            if file.mime_type.lower().startswith("text/") or "\ufffd" not in text:
                self._private.add(text, number, allowed)

    def write(
        self,
        origin: Origin,
        arguments: Mapping[str, Any],
        content: frozenset[str],
        effect: Effect = "execute",
        fields: Collection[str] | None = None,
    ) -> None:
        """Record the values that a call with an effect writes: read again, they are no more trusted than now.

        Addresses, links and numbers that only the model knows from where are kept as a stranger's; so is each word of
        a deciding value. The words of content are unknown where they come back, in whatever spelling. An object that is
        made in the user's own space of an unknown value has names, which stand for that value.

        Args:
            origin: The call, as the origin of the values that it writes.
            arguments: The final arguments as JSON shapes.
            content: The arguments that say something, and decide nothing.
            effect: The effect of the tool.
            fields: The keys that the tool's schema names; other keys are values. None where no key is.
        """
        if not (self._reads_others or self._private):
            return
        count, values = len(self._sources), list(islice(_leaves(arguments), _MOST_VALUES))
        keys = _keys(arguments) if fields is not None else ()
        values += ((path, key) for path, key in islice(keys, _MOST_VALUES) if key not in (fields or ()))
        if effect in INSIDE:
            self._bind(origin, values, content)
        if not self._reads_others:
            return
        self._writings.add((str(value) for _, value in values), count)
        if self._writings.is_full:
            self.lose()
        for path, value in values:
            self._write_value(origin, path, value, count, is_said=argument_of(path) in content)

    def _bind(self, origin: Origin, values: Sequence[tuple[str, Any]], content: frozenset[str]) -> None:
        """Keep the known names that a call gives to an unknown value, or to one that has such a name."""
        known, names, unknown, stated, marks = list[str](), list[str](), list[str](), list[str](), list[str]()
        chosen, links = list[str](), list[str]()
        for path, value in values:
            text, least = str(value), self._least_trusted(value)
            is_unknown = least.kind in ASKED
            if argument_of(path) in content:
                stated += [text] if is_unknown else []
                links += self._unknown_links_in(text) if is_unknown else ()
                continue
            if is_unknown:
                marks.append(least.mark(origin.tool, path, _shown(value)))
                unknown.append(text)
            elif any(found.kind == "chosen" for found in self._origins_for("spend", path, value)):
                chosen.append(text)
            known.append(text)
            names += self._names_in(text, is_unknown=is_unknown) if isinstance(value, str) else ()
        earlier = dict.fromkeys(bound for text in (*known, *names) for bound in self._writings.named_in(text))
        binding = Binding(
            *(origin.tool, origin.call_id),
            unknown=tuple(map(cut, unknown)),
            marks=frozenset(marks),
            stated=frozenset(digest_of([text]) for text in stated),
            links=tuple(map(cut, links)),
            chosen=tuple(map(cut, chosen)),
            private=tuple(self._private_in(values)),
        ).with_earlier(earlier)
        if binding:
            self._writings.bind(
                binding, names, [*unknown, *(text for bound in earlier for text in bound.unknown)], stated
            )

    def _unknown_links_in(self, text: str) -> Iterator[str]:
        """Yield the links and addresses in a text that are a stranger's or unknown."""
        for link in islice(dict.fromkeys(links_in(text)), _MOST_WRITTEN):
            if any(origin.kind in ASKED for origin in self.cover(link)):
                yield link

    def _private_in(self, values: Sequence[tuple[str, Any]]) -> Iterator[tuple[int, frozenset[str]]]:
        """Yield the private values in the arguments of a call: what each is from, and who may read it."""
        if self._private:
            text = " ".join(str(value) for _, value in values)
            yield from ((number, readers) for _, number, readers in self._private.within(text, frozenset()))

    def _names_in(self, text: str, *, is_unknown: bool) -> Iterator[str]:
        """Yield the known names in a value, that of a file without its folder, and other names of the same object."""
        is_made_of_parts = is_unknown and _NAMING.search(text) is not None
        for part in [*(_VALUES.split(text) if is_made_of_parts else [text]), text.rstrip("/").rpartition("/")[2]]:
            if not _is_name(part) or self._least_trusted(part).kind in ASKED:
                continue
            yield part
            objects = self._values.get(value_of(part), ())[:_MOST_NAMED]
            others = (piece for at in objects for piece in self._siblings(at))
            yield from (piece.text for piece in others if _is_name(piece.text) and self._is_single(piece))

    def _write_value(self, origin: Origin, path: str, value: Any, count: int, *, is_said: bool) -> None:
        """Keep the parts of a written value that only the model knows as a stranger's."""
        if self._left < 0 or (not is_said and self._least_trusted(value).kind not in ASKED):
            return  # what is known as a whole has no part that only the model knows
        moments = list(moments_in(str(value)))
        for moment in moments[:_MOST_WRITTEN]:
            if self._origin_of_moment(moment) == "model":
                self._writings.add_moment(moment, count)
        if len(moments) > _MOST_WRITTEN:
            self.lose()
        if not isinstance(value, str):
            named, unknown = 0, [str(value)] if self._least_trusted(value).kind == "model" else list[str]()
        else:
            words = list(dict.fromkeys(word for word in pieces_of(value) if not is_said or _NAMING.search(word)))
            named = len(words)
            unknown = [word for word in words[:_MOST_WRITTEN] if word and self._least_trusted(word).kind == "model"]
        text = str(value) if named > _MOST_WRITTEN else "\n".join(unknown)
        if text:
            self._left -= len(text)
            reading = Reading(origin.tool, origin.call_id, {}, "", Place())
            self._untrusted.add(text, len(self._sources))
            self._sources.append(Piece(reading, Place(reading.root, path), text))

    def _origin_of_moment(self, moment: Moment) -> OriginKind:
        """Return the kind of origin of a date, or of a time of day, which has two parts."""
        is_date = len(moment) > _SHORTEST
        return (self._origin_of_date(moment) if is_date else self._origin_of_key("times", moment, "")).kind

    def lose(self) -> None:
        """Record that the run read text of others that is not here: from now on no result counts as trusted."""
        self._is_lost, self.is_whole = True, False

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
        settled: list[Question] | None = None,
    ) -> list[Question]:
        """Return the questions for a person before a tool with an effect runs.

        Args:
            tool: The tool's name.
            effect: The effect of the tool.
            arguments: The final arguments as JSON shapes.
            content: The arguments that say something, and decide nothing.
            settled: Gets where the other values come from that decide something.
        """
        self._begin()
        leaves = list(islice(_leaves(arguments, with_flags=True), _MOST_VALUES + 1))
        if len(leaves) > _MOST_VALUES:
            return _too_many(tool)
        deciding = [leaf for leaf in leaves if argument_of(leaf[0]) not in content]
        statements = [
            (path, str(value)) for path, value in leaves if argument_of(path) in content and _has_words(value)
        ]
        questions: list[Question] = []
        is_named = [value for _, value in leaves] in ([], [True]) and self._names_tool(tool)
        is_anchored = not self._reads_others or (is_named and not leaves)
        whole, asked = self._whole_lists(effect, arguments), self._asked_for(effect)
        for path, value in deciding:
            shown, passed = _shown(value), list[Origin]()
            is_wanted = argument_of(path) in whole or (is_named and value is True)
            for origin in [Origin("user")] if is_wanted else self._origins_for(effect, path, value, tool):
                mark = _mark(origin, tool, path, shown)
                is_passed = not mark or mark in self._approved
                is_anchored = is_anchored or is_passed
                if is_passed or origin.kind not in asked:
                    passed.append(origin)
                else:
                    questions.append(Question.of(path, cut(shown), origin, mark))
            if settled is not None and passed and (not questions or questions[-1].path != path):
                least = max(passed, key=lambda each: each.kind in ASKED)
                settled.append(Question.of(path, cut(shown), least, _mark(least, tool, path, shown)))
        if effect not in INSIDE:
            texts = islice(_leaves(arguments, with_keys=True), 2 * _MOST_VALUES)
            questions += self._asked_of_links(
                tool, [(at, str(text)) for at, text in texts if argument_of(at) in content]
            )
            questions += self._asked_of_private_values(tool, arguments, deciding)
            questions += self._asked_of_private_names(tool, effect, deciding)
        if effect == "execute" and self._writings.stated:
            questions += self._asked_of_writings(tool)
        if not questions and not is_anchored and not self._has_users(statements, is_inside=effect in INSIDE):
            mark = Origin("model").mark(tool, "", json.dumps(arguments, sort_keys=True))
            if mark not in self._approved:
                why = f"nothing that `{tool}` is given is the user's, or of a trusted source"
                questions.append(Question("", "", why, "model", mark))
        return questions

    def judge_keys(
        self, tool: str, arguments: Mapping[str, Any], fields: Collection[str], effect: Effect = "execute"
    ) -> Iterator[Question]:
        """Yield the questions about keys of objects, which are values unless the schema names them.

        Args:
            tool: The tool's name.
            arguments: The final arguments as JSON shapes.
            fields: The keys that the tool's schema names.
            effect: The effect of the tool.
        """
        keys = list(islice(_keys(arguments), _MOST_VALUES + 1))
        if len(keys) > _MOST_VALUES:
            yield from _too_many(tool)
            return
        for path, key in keys:
            found = [] if key in fields else [*self.cover(key)]
            if key not in fields and effect not in INSIDE:
                found += self._named_by_run(effect, key)
            for origin in found:
                if origin.kind in self._asked_for(effect):
                    yield from self._asked_unless_approved(tool, path, key, origin)

    def _asked_for(self, effect: Effect) -> Collection[str]:
        """Return the kinds that are asked about; where text of others is lost, an unknown value may be a stranger's."""
        return ASKED if effect not in INSIDE or self.is_full else ASKED_INSIDE

    def judge_programs(self, arguments: Mapping[str, Any], content: frozenset[str] = frozenset()) -> list[Question]:
        """Return the questions for a person before a tool runs programs that were written late.

        A program is late when text of others was read before it came for the first time.
        """
        if not self._reads_others:
            return []
        programs = {path: str(value) for path, value in _leaves(arguments) if argument_of(path) not in content}
        late = {path: program for path, program in programs.items() if program not in self._early}
        marks = {path: Origin("untrusted").mark("", "", program) for path, program in late.items()}
        return [
            Question(path, cut(program), self._why_late(), "untrusted", marks[path])
            for path, program in late.items()
            if marks[path] not in self._approved
        ]

    def _why_late(self) -> str:
        named = [*islice(self._read_from, _MOST_NAMED)]
        more = len(self._read_from) - len(named)
        read = ", ".join([*named, *([f"{more} more"] if more else [])]) or "in another process"
        return f"was written after text of others had been read: {read}"

    def _origins_for(self, effect: Effect, path: str, value: Any, tool: str = "") -> Sequence[Origin]:
        """Return where the components of a deciding value come from; what is paid may not be chosen by others.

        The number of a record is chosen by nobody else where the user wrote what the tool does, such as "delete".
        """
        if not self._reads_others:
            return [Origin("derived")] if not _has_words(value) else self.cover(value)
        if not isinstance(value, str | int | float) or isinstance(value, bool) or value == "":
            return [Origin("user" if value is True and self._names_flag(tool, path) else "flag")]
        found = self.cover(value)
        does = tool.partition("_")[0]
        if tool and len(found) == 1 and found[0].kind in ("chosen", "untrusted"):
            is_wanted = key_of(value) not in self._untrusted.numbers or self._names_tool(does)
            found = [(self._find_named_number(tool, path, value) if is_wanted else None) or found[0]]
        if tool and effect != "spend" and found[0].kind == "chosen" and self._is_record_number(value, path):
            return [replace(found[0], kind="trusted")] if self._names_tool(does) else found
        if effect not in INSIDE:
            found = [*self._named_by_run(effect, str(value), found[0]), *found]
        if effect != "spend":
            return found
        return [
            self._chosen(origin, value) if origin.kind == "trusted" and not origin.is_meant else origin
            for origin in found
        ]

    def _named_by_run(self, effect: Effect, value: str, found: Origin | None = None) -> list[Origin]:
        """Return the origins of a value that names values of the run which are asked about for an effect."""
        bindings = dict.fromkeys(self._writings.named_in(value))
        source = None if found is None else self._writings.made_by.get((found.tool, found.call_id))
        if source is not None:
            bindings[source] = None
        asked = ((bound, bound.values_for(effect, self._approved)) for bound in bindings)
        return [
            Origin("bound", bound.tool, bound.call_id, ", ".join(values), source=bound.digests)
            for bound, values in asked
            if values
        ]

    def _chosen(self, origin: Origin, value: Any) -> Origin:
        """Return the origin of a trusted amount or payee: chosen, unless the user named its record."""
        key = origin.part or key_of(value)
        number = number_of(key) if isinstance(key, str) else key
        meant = self._find_meant(str(key)) if number is None else self._find_meant_number(number)
        return meant if meant is not None and meant.is_meant else replace(origin, kind="chosen")

    def _names_tool(self, name: str) -> bool:
        """Return whether the user wrote, and did not forbid, what a tool does: `empty_inbox`, "empty my inbox"."""
        verb, *rest = words_named(name) or [""]
        if len(verb) < 2 or any(self._will.find(word) is None for word in rest):
            return False
        object = r"[^\w.?!]+(?:\w+[^\w.?!]+){0,3}".join(map(re.escape, ["", *rest]))
        it = rf"(?:{object}|[^\w.?!]+(?:it|them))" if rest else ""
        return self._will.wants(rf"\b{re.escape(verb)}{it}\b")

    def _whole_lists(self, effect: Effect, arguments: Mapping[str, Any]) -> set[str]:
        """Return the arguments that are all the values of a field of a trusted result: nobody has chosen among them."""
        found: set[str] = set()
        for name, value in arguments.items() if effect != "spend" and self._reads_others and not self.is_full else ():
            items = cast("list[Any]", value) if isinstance(value, list) else []
            texts = {flat(item) for item in items if isinstance(item, str)}
            if len(texts) < len(items):
                continue
            number, _ = next(self._places(min(texts)), (-1, 0)) if len(texts) > 1 else (-1, 0)
            if number >= 0 and not self._sources[number].is_beside and self._is_column(number, texts):
                found.add(name)
        return found

    def _names_flag(self, tool: str, path: str) -> bool:
        """Return whether the user wrote, and did not deny, the name of an argument that is true."""
        words, verb = words_named(path), next(iter(words_named(tool)), "")
        is_telling = any(len(word) > _SHORTEST for word in words)
        return is_telling and all(len(word) > 1 and self._will.wants(rf"\b{re.escape(word)}\b", verb) for word in words)

    def _has_users(self, statements: Sequence[tuple[str, str]], *, is_inside: bool) -> bool:
        """Return whether texts of a call's content show the user's will, which a date or a number alone does not.

        All its words are the user's or of trusted results; inside the user's own space, one longer word is.
        """
        for _, text in statements:
            words = _OF_USER.findall(without_moments(flat(text)))
            if words and self._is_put_together(flat(text)):
                return True
            if is_inside and any(self._user.find(word) for word in islice(dict.fromkeys(words), _MOST_WRITTEN)):
                return True
        return False

    def _asked_of_links(self, tool: str, statements: Sequence[tuple[str, str]]) -> Iterator[Question]:
        """Yield questions about links and addresses of others in texts of a call's content."""
        for path, text in statements:
            for number, link in enumerate(dict.fromkeys(links_in(text))):
                if number == _MOST_LINKS:
                    yield from _too_many(tool)
                    break
                for origin in self.cover(link):
                    if origin.kind in ASKED:
                        yield from self._asked_unless_approved(tool, path, link, origin)

    def _asked_of_private_values(
        self, tool: str, arguments: Mapping[str, Any], deciding: Sequence[tuple[str, Any]]
    ) -> Iterator[Question]:
        """Yield questions about private values for others than their readers, in a value, a key or several values."""
        if self._private.is_full:
            yield Question("", "", f"`{tool}` may be given private values: more were read than are kept", "private")
        if not self._private:
            return
        receivers = {flat(str(value)) for _, value in deciding if _has_words(value)} - self._private.names
        found = set[str]()
        for path, text, is_joined in _texts_that_leave(arguments):
            for piece, number, readers in self._private.within(text, receivers):
                if not (is_joined and piece in found):
                    origin = replace(self._sources[number].located(), kind="private")
                    yield from self._asked_unless_approved(tool, path, piece, origin, receivers - readers)
                found.add(piece)

    def _asked_of_private_names(
        self, tool: str, effect: Effect, deciding: Sequence[tuple[str, Any]]
    ) -> Iterator[Question]:
        """Yield questions about names under which the run wrote private values, where others than their readers get it.

        A name that is the only value of a `send` is that of the receiver, unless it looks like a file's.
        """
        named = {path: [*self._writings.named_in(str(value))] for path, value in deciding if _has_words(value)}
        receivers = {flat(str(value)) for path, value in deciding if _has_words(value) and not named[path]}
        for path, value in deciding:
            is_receiver = effect == "send" and not receivers and _NAMING.search(str(value)) is None
            private = [piece for bound in named.get(path, ()) for piece in bound.private]
            for number, readers in dict.fromkeys(private) if not is_receiver else ():
                if not receivers or not receivers <= readers:
                    origin = replace(self._sources[number].located(), kind="private")
                    yield from self._asked_unless_approved(tool, path, str(value), origin, receivers - readers)

    def _asked_of_writings(self, tool: str) -> Iterator[Question]:
        """Yield a question about a call that may run an unknown text which the run wrote, whatever the call names."""
        mark = Origin("bound", source=(*sorted(self._writings.stated),)).mark(tool, "", "")
        if mark not in self._approved:
            why = f"`{tool}` may run what `{self._writings.writer}` wrote in this run, which is not known"
            yield Question("", "", why, "bound", mark)

    def _asked_unless_approved(
        self, tool: str, path: str, value: str, origin: Origin, to: Collection[str] = ()
    ) -> Iterator[Question]:
        mark = origin.mark(tool, path, value, to)
        if mark not in self._approved:
            yield Question.of(path, cut(value), origin, mark)

    # --- what was approved

    def approve(self, tool: str, questions: Sequence[Question], arguments: Mapping[str, Any]) -> None:
        """Record that a person approved these values of a tool's arguments: they are not asked about again.

        Nor are they in a run that was restored from JSON, where it is not known any more where they come from.
        """
        marked = [question for question in questions if question.mark]
        self._approved.update(question.mark for question in marked)
        paths = {question.path for question in marked}
        for path, value in islice(_leaves(arguments, with_flags=True), _MOST_VALUES):
            for origin in self._origins_for("send", path, value) if path in paths else ():
                unknown = Origin("model", part=origin.part)
                self._approved.add(unknown.mark(tool, path, _shown(value)))


def _mark(origin: Origin, tool: str, path: str, shown: str) -> str:
    """Return the mark of a value in an argument; empty where its origin is not asked about."""
    return origin.mark(tool, path, shown) if origin.kind in ASKED else ""


def _is_name(text: str) -> bool:
    """Return whether a text may name an object; an address, a link, a number and a date are values by themselves."""
    plain = without_moments(flat(text))
    return bool(words_in(plain)) and number_of(plain) is None and "@" not in plain and "://" not in plain


def _too_many(tool: str) -> list[Question]:
    why = f"`{tool}` is given more values than can be looked up ({_MOST_VALUES:,})"
    return [Question("", "", why, kind) for kind in _ANY]


def _literals(program: str) -> Iterator[str]:
    """Yield the texts and numbers that stand in a program; nothing of a program that is not valid Python."""
    try:
        tree = ast.parse(program)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        sign = "-" if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else ""
        value = node.operand if isinstance(node, ast.UnaryOp) else node
        constant = value.value if isinstance(value, ast.Constant) else None
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, int | float) and not isinstance(constant, bool):
            yield sign + (number_text(constant) if isinstance(constant, float) else str(constant))


def _labels_of(source: Source, tool: str, arguments: Mapping[str, Any], result: Any) -> Labels:
    """Return the labels of a result; where the host's function of them raises, all of it is a stranger's."""
    try:
        return source(arguments, result) if callable(source) else source
    except Exception:  # of the host's code, by what a stranger wrote
        _log.exception("the labels of `%s` raised: all of its result counts as a stranger's", tool)
        return "untrusted"


def _leaves(
    value: Any, path: str = "", *, with_flags: bool = False, with_keys: bool = False
) -> Iterator[tuple[str, Any]]:
    """Yield the texts and numbers of a JSON value, with their paths.

    Args:
        value: The value.
        path: Where it is.
        with_flags: Whether true, false, nothing and what is empty are among them; they have no source.
        with_keys: Whether the keys of objects are among them, each with the path of its object.
    """
    if isinstance(value, Mapping) and (value or not with_flags or not path):
        for key, item in cast("Mapping[str, Any]", value).items():
            if with_keys and path:
                yield path, str(key)
            below = path_of(path, str(key))
            yield from _leaves(item, below, with_flags=with_flags, with_keys=with_keys)
    elif isinstance(value, list) and (value or not with_flags):
        for number, item in enumerate(cast("list[Any]", value)):
            yield from _leaves(item, f"{path}[{number}]", with_flags=with_flags, with_keys=with_keys)
    elif with_flags or _has_words(value):
        yield path, value


def _texts_that_leave(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """Yield the values and keys of arguments as texts, each with its path; then all of them joined, and all values."""
    texts = [(path, str(value)) for path, value in _leaves(arguments, with_keys=True)]
    yield from ((path, text, False) for path, text in texts)
    if len(texts) > 1:
        yield texts[-1][0], " ".join(text for _, text in texts), True
        yield texts[-1][0], " ".join(str(value) for _, value in _leaves(arguments)), True


def _has_words(value: Any) -> bool:
    if isinstance(value, str):
        return bool(words_in(flat(value)))
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    """Return a value as a question shows it."""
    return (
        value if isinstance(value, str) and value else json.dumps(value) if not isinstance(value, float) else str(value)
    )


def _keys(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the keys of the objects in a JSON value, with the paths of the objects."""
    items = cast("Mapping[str, Any]", value).items() if isinstance(value, Mapping) else ()
    for key, item in items:
        below = path_of(path, str(key))
        yield path or below, str(key)
        yield from _keys(item, below)
    for number, item in enumerate(cast("list[Any]", value) if isinstance(value, list) else ()):
        yield from _keys(item, f"{path}[{number}]")
