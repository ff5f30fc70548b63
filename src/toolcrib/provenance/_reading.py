"""Readings of a run: the user's words, results with the labels of their tools, and what the run itself wrote."""

from __future__ import annotations

import ast
import logging
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from itertools import chain, islice
from pathlib import PurePosixPath
from threading import Lock
from typing import Any, Final, TypeVar

from toolcrib.calls import Media
from toolcrib.provenance._kinds import number_of, without_moments
from toolcrib.provenance._links import links_in, pieces_of, shown_words
from toolcrib.provenance._origins import Origins
from toolcrib.provenance._pieces import Piece, Reading, key_of, number_text, value_of
from toolcrib.provenance._private import PrivateValues
from toolcrib.provenance._question import ASKED, Origin, OriginKind, argument_of, cut, digest_of
from toolcrib.provenance._records import numbers_named
from toolcrib.provenance._shapes import COST_OF_VALUE, UNREAD, text_of
from toolcrib.provenance._spoken import dates_said, numbers_said, times_said
from toolcrib.provenance._texts import APART, TextIndex, flat, size_of, words_in
from toolcrib.provenance._values import MOST_VALUES, has_words, keys_of, leaves_of, shown_value
from toolcrib.provenance._writings import Binding, Moment, moments_in
from toolcrib.tools import INSIDE, Effect, Labels, Place, Source, labelled

Checked = TypeVar("Checked")

WORDS_OF_USER: Final = 0
"""The writer of a text of the user's: the user."""
PROGRAM: Final = 1
"""The writer of a text that counts as the user's: the model, in a program, before any text of others was read."""

_log = logging.getLogger("toolcrib.provenance")
_WORDS: Final = 200  # characters of what the user wrote that a question repeats
_LONGEST_VALUE: Final = 200  # characters of what names a record
_MOST_NAMED: Final = 1_000  # objects with a value
_MOST_WRITTEN: Final = 100  # addresses, links and numbers in one argument
_SHORTEST: Final = 2  # letters of words such as "to", which name nothing
_NAMING: Final = re.compile(r"\d|\w[@./:]\w")
_OF_PARTS: Final = re.compile(r"[<(\[{=:\d]|\w[@./]\w")
_FOLDER: Final = re.compile(r"[/\\]")
_VALUES: Final = re.compile(r"[<>()\[\]{}=:,;|\n\"']+|[^\s<>()=:,;|\"']*(?:\d|\w[@./]\w)[^\s<>()=:,;|\"']*")
"""The text between the names of a text that has values as well."""
_LONE_MARK: Final = re.compile(
    r"(?<![^\s'\"`(])[^\w\s]+(?![^\s'\"`),;])"
)  # such as `*`, which a program has for itself


class Readings(Origins):
    """The texts and results that a run reads, and the values that it writes."""

    def __init__(self) -> None:
        super().__init__()
        self.last_words, self.is_whole = "", True
        self._early: set[str] = set()  # programs that count as the user's
        self._will = TextIndex()  # what the user wrote, and no program
        self._private = PrivateValues()
        self._read_from: dict[str, None] = {}  # where it has read text of others, for a person
        self._heard: set[str] = set()
        self.handles: set[str] = set()  # of kept results that it has read
        self._expected: set[str] = set()
        self._results: dict[tuple[str, str], str] = {}
        self._warned: dict[str, tuple[bool, bool]] = {}
        self._waiting: deque[tuple[Callable[[], None], bool]] = deque()  # whether text is read by it
        self._lock = Lock()

    def hear(self, text: str) -> None:
        """Keep the user's words; those that it has heard before are kept once."""
        self.last_words = cut(text, _WORDS)
        if text not in self._heard:
            self._heard.add(text)
            self._user.add(text, WORDS_OF_USER)
            self._will.add(text, WORDS_OF_USER)
            plain = flat(text)
            self._user.numbers.update(dict.fromkeys(numbers_said(plain), WORDS_OF_USER))
            self._user.times.update(dict.fromkeys(times_said(plain), WORDS_OF_USER))
            for year, month, day in dates_said(plain, self.today):
                self._user.dates.setdefault((month, day), {}).setdefault(year, WORDS_OF_USER)

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
        self._waiting.append((work, True))

    def wait_for_check(self, check: Callable[[], Checked]) -> Future[Checked]:
        """Defer a check to `settle`: it comes after what waits to be read by now, and before what is read later."""
        checked = Future[Checked]()

        def work() -> None:
            try:
                checked.set_result(check())
            except Exception as error:  # the call is checked by whoever settles, and fails by itself
                checked.set_exception(error)

        self._waiting.append((work, False))
        return checked

    @property
    def is_settled(self) -> bool:
        """True if nothing waits to be read or checked; nothing else may be read or checked meanwhile."""
        return not self._waiting

    def settle(self) -> None:
        """Read the waiting texts, and check the waiting calls, in order; may be called from several threads."""
        with self._lock:
            while self._waiting:
                self._waiting[0][0]()
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
        fields: Collection[str] | None = None,
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
            fields: The keys that the tool's schema names; other keys look it up as values do. None where no key does.
        """
        self._begin()
        labels = _labels_of(source, tool, arguments, result)
        keys = ((path, key) for path, key in keys_of(arguments) if fields is not None and key not in fields)
        asked = islice(chain(leaves_of(arguments), keys), MOST_VALUES + 1)
        lookups = [(value, self._least_trusted(value)) for _, value in asked]
        unknown = [flat(str(value)) for value, origin in lookups if origin.kind in ASKED]
        if (unknown or len(lookups) > MOST_VALUES) and not echoes:
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
            flags = (value for _, value in leaves_of(result, with_flags=True) if not has_words(value))
            self._bits += sum(1 for _ in islice(flags, MOST_VALUES))
        allowed = None if readers is None else frozenset(map(flat, readers))
        for leaf in labelled(result, labels, place):
            value, trust = leaf.value, leaf.trust
            if value == UNREAD:
                if trust != "trusted":
                    self.lose()
                continue
            text = value if isinstance(value, str) else number_text(value) if isinstance(value, float) else str(value)
            is_washed = bool(written) and not written.isdisjoint(words_in(flat(text)))
            if is_washed or (trust == "name" and without_moments(flat(text)) != flat(text)):
                trust = "untrusted"
            if not self._keep(Piece(reading, leaf.place, text, trust, leaf.is_beside, leaf.is_key), echoed, allowed):
                return

    def _keep(self, piece: Piece, echoed: set[str | float], allowed: frozenset[str] | None) -> bool:
        """Keep a text of a result, and return whether there is room for another one.

        Args:
            piece: The text, with its source.
            echoed: The values that the call was given, and that are not of others.
            allowed: To whom it may be sent; None for all.
        """
        text, number = piece.text, len(self._sources)
        self._left -= COST_OF_VALUE + size_of(text)
        if self._left < 0 and (allowed is None or self._private.is_full):
            return False
        self._sources.append(piece)
        if not piece.is_key:
            self._writings.read(piece.place, text)
        if allowed is not None:
            self._private.add(text, number, allowed)
        if self._left < 0:
            return True  # what may not be sent is found all the same
        if piece.trust == "untrusted":
            self._add_of_others(text, number, echoed)
            shown = shown_words(text)
            if shown:
                self._left -= size_of(shown)
                self._add_of_others(shown, number, echoed)
            self._read_from[piece.reading.source] = None
            if echoed:
                self._echoes[number] = echoed
            return True
        self._has_chosen = self._has_chosen or piece.trust == "name" or piece.is_beside
        if piece.trust != "name":
            self._trusted.add(text, number)
        if len(text) <= _LONGEST_VALUE:
            self._values.setdefault(value_of(text), []).append(number)
        return True

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
            text = text_of(file)
            if text != UNREAD:
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
        count, values = len(self._sources), list(islice(leaves_of(arguments), MOST_VALUES))
        keys = keys_of(arguments) if fields is not None else ()
        values += ((path, key) for path, key in islice(keys, MOST_VALUES) if key not in (fields or ()))
        if effect in INSIDE:
            self._bind(origin, values, content)
        if not self._reads_others:
            return
        self._writings.add((str(value) for _, value in values), count)
        if self._writings.is_full:
            self.lose()
        for path, value in values:
            self._write_value(origin, path, value, count, is_said=argument_of(path) in content)

    def write_again(
        self,
        origin: Origin,
        arguments: Mapping[str, Any],
        content: frozenset[str],
        effect: Effect,
        fields: Collection[str],
    ) -> None:
        """Record the values that a call wrote which another run made, such as one in a transcript; as for `write`."""
        self._begin()
        self.write(origin, arguments, content, effect, fields)

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
                marks.append(least.mark(origin.tool, path, shown_value(value)))
                unknown.append(text)
            elif any(found.kind == "chosen" for found in self._cover_paid(value, self.cover(value))):
                chosen.append(text)
            known.append(text)
            names += self._names_in(text, is_unknown=is_unknown) if isinstance(value, str) else ()
        private = tuple(dict.fromkeys(self._private_in(values)))
        earlier = dict.fromkeys(bound for text in (*known, *names) for bound in self._writings.named_in(text))
        binding = Binding(
            *(origin.tool, origin.call_id),
            unknown=tuple(map(cut, unknown)),
            marks=frozenset(marks),
            stated=frozenset(digest_of([text]) for text in stated),
            links=tuple(map(cut, links)),
            chosen=tuple(map(cut, chosen)),
            private=private,
        ).with_earlier(earlier)
        if binding:
            self._writings.bind(
                binding, names, [*unknown, *(text for bound in earlier for text in bound.unknown)], stated
            )
            numbers = {name for path, value in values for name in numbers_named(origin.tool, path, value)}
            self._writings.bind_places(binding, known, numbers)
        digests = dict[str, frozenset[str]]()
        for at, readers in private:
            digest = digest_of(self._sources[at].located().source)
            digests[digest] = readers & digests.get(digest, readers)
        self._writings.add_private(origin.tool, digests)

    def _unknown_links_in(self, text: str) -> Iterator[str]:
        """Yield the links and addresses in a text that are a stranger's or unknown; of many, those behind may be."""
        for number, link in enumerate(dict.fromkeys(links_in(text))):
            if number >= _MOST_WRITTEN or any(origin.kind in ASKED for origin in self.cover(link)):
                yield link

    def _private_in(self, values: Sequence[tuple[str, Any]]) -> Iterator[tuple[int, frozenset[str]]]:
        """Yield the private values in the arguments of a call: what each is from, and who may read it."""
        if self._private:
            text = " ".join(str(value) for _, value in values)
            yield from ((number, readers) for _, number, readers in self._private.within(text, frozenset()))

    def _names_in(self, text: str, *, is_unknown: bool) -> Iterator[str]:
        """Yield the known names in a value, that of a file without its folder, and other names of the same object."""
        is_made_of_parts = is_unknown and _OF_PARTS.search(text) is not None
        for part in [*(_VALUES.split(text) if is_made_of_parts else [text]), _FOLDER.split(text.rstrip("/\\"))[-1]]:
            if not is_name(part) or self._least_trusted(part).kind in ASKED:
                continue
            yield part
            objects = self._values.get(value_of(part), ())[:_MOST_NAMED]
            others = (piece for at in objects for piece in self._siblings(at))
            yield from (piece.text for piece in others if is_name(piece.text) and self._is_single(piece))

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
            self._left -= size_of(text)
            reading = Reading(origin.tool, origin.call_id, {}, "", Place())
            self._add_of_others(text, len(self._sources))
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
        """True if it has read text that a stranger may have written, or has such text to read."""
        return any(reads for _, reads in tuple(self._waiting)) or self._reads_others


def is_name(text: str) -> bool:
    """Return whether a text may name an object; an address, a link, a number and a date are values by themselves."""
    plain = without_moments(flat(text))
    return bool(words_in(plain)) and number_of(plain) is None and "@" not in plain and "://" not in plain


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
