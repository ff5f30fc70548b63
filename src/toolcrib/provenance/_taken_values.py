"""Questions about values that a call may take or give without arguments: private ones, and those that the run wrote."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from toolcrib.provenance._kinds import number_of
from toolcrib.provenance._pieces import key_of, value_of
from toolcrib.provenance._private import HIDDEN
from toolcrib.provenance._question import Origin, OriginKind, Question, argument_of, cut, digest_of
from toolcrib.provenance._reading import Readings, is_name
from toolcrib.provenance._records import is_named_alike, is_number_of_object, numbers_named, things_of
from toolcrib.provenance._texts import flat
from toolcrib.provenance._values import MOST_VALUES, has_words, leaves_of, texts_that_leave
from toolcrib.provenance._writings import GIVING, Binding
from toolcrib.tools import INSIDE, Effect

_MOST_NAMED: Final = 1_000  # objects with a value
_MOST_UNDER_WAY: Final = 1_000  # calls
_ONE_OF_MANY: Final = ("one of many calls", "")  # in the place of those that are not kept
_MOST_PIECES: Final = 16  # of private values in one text that are named one by one
_NAMING: Final = re.compile(r"\d|\w[@./:]\w")
_FILE: Final = re.compile(
    r"[^@*?\[\]{},;|\n]*\w\.(?!(?:zip|tar|t?gz|tbz|bz2|xz|zst|7z|rar|ics|vcf|mbox)$)[a-z][a-z0-9]{0,4}", re.IGNORECASE
)
"""The name of a single file; an archive, a calendar and a mailbox have many things in them."""


class TakenValues(Readings):
    """The values that a call may take, or give to others, without having them as arguments."""

    def __init__(self) -> None:
        super().__init__()
        self._approved: set[str] = set()  # marks
        self._under_way: dict[tuple[str, str], tuple[Effect, Sequence[tuple[str, Any]]]] = {}  # calls that leave

    def _named_by_run(
        self, effect: Effect, value: str, found: Origin | None = None, numbered: Sequence[Binding] = ()
    ) -> Iterator[Origin]:
        """Yield the origins of a value that names values of the run which are asked about for an effect.

        After a restart each name may be one.

        Args:
            effect: The effect.
            value: The value as text.
            found: The origin of it.
            numbered: The bindings of the object that the value is the number of.
        """
        if self._writings.lost and is_name(value):
            yield Origin("bound", self._writings.lost)
        if not self._writings.made_by:
            return
        texts = [value, *(self._texts_of_object(value) if effect in GIVING and number_of(value) is not None else ())]
        bindings = dict.fromkeys([*numbered, *(bound for text in texts for bound in self._writings.named_in(text))])
        source = None if found is None else self._writings.made_by.get((found.tool, found.call_id))
        if source is not None:
            bindings[source] = None
        for bound in bindings:
            values = bound.values_for(effect, self._approved)
            if values:
                yield Origin("bound", bound.tool, bound.call_id, ", ".join(values), source=bound.digests)

    def _numbers_of_run(self, tool: str, path: str, value: Any) -> Sequence[Binding]:
        """Return the bindings of the object with a number: by the number, or by the call that returned it.

        A number that came with such things afterwards, in an object that says nothing else, may be that of each.
        """
        made_by = self._writings.made_by
        if not made_by or not is_number_of_object(tool, path):
            return ()
        found = [*self._writings.numbered(numbers_named(tool, path, value))]
        places = self._values.get(key_of(value), [])[:_MOST_NAMED]
        for at in places:
            piece = self._sources[at]
            call, about = (piece.reading.tool, piece.reading.call_id), things_of(piece.reading.tool)
            if call in made_by and is_named_alike(path, piece):
                found.append(made_by[call])
            alike = [bound for bound in made_by.values() if not about.isdisjoint(things_of(bound.tool))]
            if alike and places[0] >= self._writings.first and self._pointer_to(at) is None:
                found += alike
        return found

    def _texts_of_object(self, value: str) -> Iterator[str]:
        """Yield the texts of the objects that a trusted result has with a value."""
        objects = self._values.get(value_of(value), ())[:_MOST_NAMED]
        yield from (sibling.text for at in objects for sibling in self._siblings(at))

    def _asked_of_private_values(
        self, tool: str, arguments: Mapping[str, Any], deciding: Sequence[tuple[str, Any]], others: Set[str]
    ) -> Iterator[Question]:
        """Yield questions about private values for others than their readers, in a value, a key or several values.

        Args:
            tool: The tool's name.
            arguments: The arguments as JSON shapes.
            deciding: The values, with their paths.
            others: Further receivers, flat.
        """
        if not (self._private or self._private.is_full):
            return
        receivers = {flat(str(value)) for _, value in deciding if has_words(value)}.union(others) - self._private.names
        if self._private.is_full and not _may_read(receivers, self._private.readers or frozenset()):
            yield Question("", "", f"`{tool}` may be given private values: more were read than are kept", "private")
        if not self._private:
            return
        found = set[str]()
        for path, text, is_joined in texts_that_leave(arguments):
            pieces = self._private.within(text, receivers)
            pieces = [piece for piece in pieces if not (is_joined and piece[0] in found)]
            found.update(piece for piece, *_ in pieces)
            yield from self._asked_of_pieces(tool, path, pieces, receivers)

    def _asked_of_pieces(
        self, tool: str, path: str, pieces: Sequence[tuple[str, int, frozenset[str]]], receivers: Set[str]
    ) -> Iterator[Question]:
        """Yield questions about the private pieces of a text: about the first ones, each with others behind it.

        Of the pieces of a value that are not the text of words, one is named. An approval holds for all in a question.
        """
        groups, by_source = list[list[tuple[str, int, frozenset[str]]]](), dict[int, int]()
        for piece in pieces:
            text, number, _ = piece
            most = _MOST_PIECES if number in by_source else 2 * _MOST_PIECES
            if len(groups) < most and (text[0] not in HIDDEN or number not in by_source):
                by_source[number] = len(groups)
                groups.append([piece])
            else:
                groups[by_source.get(number, -1)].append(piece)
        for group in groups:
            others = receivers - group[0][2].intersection(*(readers for *_, readers in group))
            origin, shown = replace(self._sources[group[0][1]].located(), kind="private"), group[0][0].lstrip(HIDDEN)
            mark = origin.mark(tool, path, shown, others)
            if len(group) > 1:
                numbers = dict.fromkeys(number for _, number, _ in group)
                sources = [self._sources[number].located().source for number in numbers]
                mark = digest_of([mark, sources, sorted(text for text, *_ in group)])
            words = sum(text[0] not in HIDDEN for text, *_ in group[1:])
            if mark not in self._approved:
                yield Question.of(path, cut(shown) + (f" and {words} more" if words else ""), origin, mark)

    def _asked_of_private_names(
        self, tool: str, effect: Effect, deciding: Sequence[tuple[str, Any]], others: Set[str], *, is_whole: bool
    ) -> Iterator[Question]:
        """Yield questions about what has private values that the run wrote, where others than their readers get it.

        What is the only value of a `send` is the receiver, unless it is the name of a file with such values. A call
        that gives others what is stored, and names none of it, may give all of it: but for one file.

        Args:
            tool: The tool's name.
            effect: The effect of the tool.
            deciding: The values, with their paths.
            others: Further receivers, flat.
            is_whole: Whether the call has neither a text nor a number.
        """
        if not self._private:
            return
        under = {path: self._private_under(tool, path, value) for path, value in deciding if has_words(value)}
        receivers = {flat(str(value)) for path, value in deciding if has_words(value) and not under[path]}
        receivers |= others
        for path, value in deciding:
            text = str(value)
            is_file = _NAMING.search(text) is not None and any(self._writings.named_in(text))
            is_receiver = effect == "send" and not receivers and not is_file
            for number, readers in under.get(path, ()) if not is_receiver else ():
                if not _may_read(receivers, readers):
                    origin = replace(self._sources[number].located(), kind="private")
                    yield from self._asked_unless_approved(tool, path, text, origin, receivers - readers)
        readers = self._writings.readers
        is_whole = is_whole or effect == "execute" or (effect == "share" and not _is_of_files(deciding))
        if is_whole and readers is not None and not (any(under.values()) or _may_read(receivers, readers)):
            writer = self._writings.writer_of_private
            why = f"`{tool}` may give others what `{writer}` wrote in this run, which is private"
            yield from self._asked_of_writings(tool, "private", self._writings.private, why, receivers - readers)

    def _private_under(self, tool: str, path: str, value: Any) -> Sequence[tuple[int, frozenset[str]]]:
        """Return the private values that the run wrote under a name, into its object, or where a call gave a handle."""
        texts = (str(value), *self._texts_of_object(str(value)))
        bindings = [bound for text in texts for bound in self._writings.named_in(text)]
        if is_number_of_object(tool, path):
            bindings += self._writings.numbered(numbers_named(tool, path, value))
        calls = ((origin.tool, origin.call_id) for origin in self.cover(value))
        bindings += (self._writings.made_by[call] for call in calls if call in self._writings.made_by)
        return tuple(dict.fromkeys(piece for bound in bindings for piece in bound.private))

    def _asked_of_all_writings(
        self, tool: str, effect: Effect, deciding: Sequence[tuple[str, Any]]
    ) -> Iterator[Question]:
        """Yield a question about a call that may take whatever the run wrote: it runs it, or says nothing of it.

        What it names is asked about by its name.
        """
        bindings = self._writings.made_by.values()
        texts = (str(value) for _, value in deciding if has_words(value)) if bindings else ()
        named = {digest for text in texts for bound in self._writings.named_in(text) for digest in bound.digests}
        unknown = {
            (bound.tool, value): bound.digests
            for bound in bindings
            for value in (bound.values_for(effect, self._approved) if not named.issuperset(bound.digests) else ())
        }
        written = {digest for digests in unknown.values() for digest in digests}
        writer, value = next(reversed(unknown), (self._writings.writer, ""))
        if effect == "execute":
            written |= self._writings.stated
        if self._writings.lost:
            written.add(self._writings.lost)
            writer = self._writings.last_tool
        if written:
            verb, shown = "run" if effect == "execute" else "take", f" (`{value}`)" if value else ""
            why = f"`{tool}` may {verb} what `{writer}` wrote in this run{shown}, which is not known"
            yield from self._asked_of_writings(tool, "bound", written, why)

    def _asked_of_writings(
        self, tool: str, kind: OriginKind, written: Collection[str], why: str, to: Collection[str] = ()
    ) -> Iterator[Question]:
        """Yield a question about a call that may run, or give others, what the run wrote, whatever the call names."""
        mark = Origin(kind, source=(*sorted(written),)).mark(tool, "", "", to)
        if mark not in self._approved:
            yield Question("", "", why, kind, mark)

    def _asked_unless_approved(
        self, tool: str, path: str, value: str, origin: Origin, to: Collection[str] = ()
    ) -> Iterator[Question]:
        mark = origin.mark(tool, path, value, to)
        if mark not in self._approved:
            yield Question.of(path, cut(value), origin, mark)

    # --- calls that are under way

    def begin(self, tool: str, call_id: str, effect: Effect, deciding: Mapping[str, Any]) -> None:
        """Record that a call that leaves may run from now on, or waits for an approval: it may take what is written."""
        if effect in INSIDE:
            return
        if len(self._under_way) < _MOST_UNDER_WAY:
            self._under_way[tool, call_id] = effect, [*islice(leaves_of(deciding, with_flags=True), MOST_VALUES)]
        else:
            self._under_way[_ONE_OF_MANY] = "execute", ()  # it may take whatever is written

    def end(self, tool: str, call_id: str) -> None:
        """Record that a call has ended, and takes nothing any more."""
        self._under_way.pop((tool, call_id), None)

    def judge_under_way(self, tool: str, call_id: str) -> Iterator[Question]:
        """Yield questions about a call that wrote unknown values where a call that has not ended may take them.

        Args:
            tool: The tool that writes.
            call_id: The call.
        """
        binding = self._writings.made_by.get((tool, call_id))
        if binding is None:
            return
        for (taker, _), (effect, leaves) in tuple(self._under_way.items()):
            values = self._taken_of(binding, taker, effect, leaves)
            if values:
                shown = f" (`{values[-1]}`)" if values[-1] else ""
                why = f"`{tool}` writes what is not known{shown}, and `{taker}`, which has not ended, may take it"
                yield from self._asked_of_writings(taker, "bound", binding.digests, why, (tool,))

    def _taken_of(
        self, binding: Binding, tool: str, effect: Effect, leaves: Sequence[tuple[str, Any]]
    ) -> Sequence[str]:
        """Return the values of a binding that a call may take, as texts for a question; an empty text for said ones."""
        values = binding.values_for(effect, self._approved)
        if effect == "execute" or not any(has_words(value) for _, value in leaves):
            return values or ([""] if effect == "execute" and binding.stated else ())
        texts = [(path, value) for path, value in leaves if has_words(value)]
        numbered = (bound for path, value in texts for bound in self._numbers_of_run(tool, path, value))
        named = (bound for _, value in texts for bound in self._writings.named_in(str(value)))
        is_named = any((bound.tool, bound.call_id) == (binding.tool, binding.call_id) for bound in (*numbered, *named))
        return values if is_named else ()


def _may_read(receivers: Set[str], readers: Set[str]) -> bool:
    """Return whether all receivers of a call may read something; where there are none, it goes to everybody."""
    return bool(receivers) and receivers <= readers


def _is_of_files(deciding: Sequence[tuple[str, Any]]) -> bool:
    """Return whether an argument of a call is the name of a file, or a list of nothing else."""
    arguments = dict[str, bool]()
    for path, value in deciding:
        name = argument_of(path)
        arguments[name] = arguments.get(name, True) and _FILE.fullmatch(str(value)) is not None
    return any(arguments.values())
