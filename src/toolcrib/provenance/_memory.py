"""Memory of a run: what it has read, and the questions for a person about the arguments of a call."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import islice
from typing import Any, Final, cast

from toolcrib.provenance._kinds import number_of, without_moments
from toolcrib.provenance._links import links_in
from toolcrib.provenance._pieces import key_of, value_of
from toolcrib.provenance._question import ASKED, ASKED_INSIDE, Origin, OriginKind, Question, argument_of, cut
from toolcrib.provenance._reading import Readings
from toolcrib.provenance._records import is_named_alike, is_number_of_object, numbers_named, things_of, words_named
from toolcrib.provenance._texts import flat
from toolcrib.provenance._values import MOST_VALUES, has_words, keys_of, leaves_of, shown_value, texts_that_leave
from toolcrib.provenance._writings import GIVING, Binding
from toolcrib.tools import INSIDE, Effect

_MOST_NAMED: Final = 8  # of what was read, in a question
_ANY: Final[tuple[OriginKind, ...]] = ("untrusted", "model", "private")  # what values may be that are not looked up
_MOST_WRITTEN: Final = 100  # addresses, links and numbers in one argument
_MOST_LINKS: Final = 200  # in one text
_SHORTEST: Final = 2  # letters of words such as "to", which name nothing
_NAMING: Final = re.compile(r"\d|\w[@./:]\w")
_FILE: Final = re.compile(
    r"[^@*?\[\]{},;|\n]*\w\.(?!(?:zip|tar|t?gz|tbz|bz2|xz|zst|7z|rar|ics|vcf|mbox)$)[a-z][a-z0-9]{0,4}", re.IGNORECASE
)
"""The name of a single file; an archive, a calendar and a mailbox have many things in them."""
_OF_USER: Final = re.compile(r"[^\W\d_]{4,}")  # a word that shows the user's will


class Memory(Readings):
    """The texts and results that one run has read, with their sources.

    Attributes:
        last_words: The last text of the user, cut.
        is_whole: Whether it has read only results of the run's own calls, and words of the user.
        handles: The handles of kept results that it has read.
        is_told: Whether the model has said something before, from an unknown source.
        today: The day, by which the user's words have dates; None where it is not known.
    """

    def __init__(self) -> None:
        super().__init__()
        self._approved: set[str] = set()  # marks

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
        leaves = list(islice(leaves_of(arguments, with_flags=True), MOST_VALUES + 1))
        if len(leaves) > MOST_VALUES:
            return _too_many(tool)
        deciding, statements = list[tuple[str, Any]](), list[tuple[str, str]]()
        for path, value in leaves:
            if argument_of(path) not in content:
                deciding.append((path, value))
            elif has_words(value):
                statements.append((path, str(value)))
        is_named = not leaves[1:] and all(value is True for _, value in leaves) and self._names_tool(tool)
        wanted = arguments if is_named else self._whole_lists(effect, arguments)
        questions, is_anchored = self._asked_of_values(tool, effect, deciding, wanted, settled)
        is_anchored = is_anchored or not self._reads_others or (is_named and not leaves)
        if effect not in INSIDE:
            says_nothing = not statements and not any(has_words(value) for _, value in deciding)
            questions += self._asked_of_links(tool, arguments, content)
            questions += self._asked_of_private_values(tool, arguments, deciding)
            questions += self._asked_of_private_names(tool, effect, deciding, is_whole=says_nothing)
            if says_nothing or effect == "execute":
                questions += self._asked_of_all_writings(tool, effect, deciding)
        if not questions and not is_anchored and not self._has_users(statements, is_inside=effect in INSIDE):
            mark = Origin("model").mark(tool, "", json.dumps(arguments, sort_keys=True))
            if mark not in self._approved:
                why = f"nothing that `{tool}` is given is the user's, or of a trusted source"
                questions.append(Question("", "", why, "model", mark))
        return questions

    def _asked_of_values(
        self,
        tool: str,
        effect: Effect,
        deciding: Sequence[tuple[str, Any]],
        wanted: Collection[str],
        settled: list[Question] | None,
    ) -> tuple[list[Question], bool]:
        """Return the questions about deciding values, and whether one of them is not asked about whatever the effect.

        Args:
            tool: The tool's name.
            effect: The effect of the tool.
            deciding: The values, with their paths.
            wanted: The arguments that the user wants as a whole.
            settled: Gets where the other values come from.
        """
        questions, is_anchored, asked = list[Question](), False, self._asked_for(effect)
        for path, value in deciding:
            shown, passed = shown_value(value), list[Origin]()
            is_wanted = argument_of(path) in wanted
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
        return questions, is_anchored

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
        keys = list(islice(keys_of(arguments), MOST_VALUES + 1))
        if len(keys) > MOST_VALUES:
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
        programs = {path: str(value) for path, value in leaves_of(arguments) if argument_of(path) not in content}
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
            return [Origin("derived")] if not has_words(value) else self.cover(value)
        if not isinstance(value, str | int | float) or isinstance(value, bool) or value == "":
            return [Origin("user" if value is True and self._names_flag(tool, path) else "flag")]
        found = self.cover(value)
        does = tool.partition("_")[0]
        if tool and len(found) == 1 and found[0].kind in ("chosen", "untrusted", "model"):
            is_wanted = key_of(value) not in self._untrusted.numbers or self._names_tool(does)
            found = [(self._find_named_number(tool, path, value) if is_wanted else None) or found[0]]
        if tool and effect != "spend" and found[0].kind == "chosen" and self._is_record_number(value, path):
            return [replace(found[0], kind="trusted")] if self._names_tool(does) else found
        if effect not in INSIDE:
            found = [*self._named_by_run(effect, str(value), found[0], self._numbers_of_run(tool, path, value)), *found]
        return self._cover_paid(value, found) if effect == "spend" else found

    def _named_by_run(
        self, effect: Effect, value: str, found: Origin | None = None, numbered: Sequence[Binding] = ()
    ) -> list[Origin]:
        """Return the origins of a value that names values of the run which are asked about for an effect.

        Args:
            effect: The effect.
            value: The value as text.
            found: The origin of it.
            numbered: The bindings of the object that the value is the number of.
        """
        if not self._writings.made_by:
            return []
        texts = [value, *(self._texts_of_object(value) if effect in GIVING and number_of(value) is not None else ())]
        bindings = dict.fromkeys([*numbered, *(bound for text in texts for bound in self._writings.named_in(text))])
        source = None if found is None else self._writings.made_by.get((found.tool, found.call_id))
        if source is not None:
            bindings[source] = None
        asked = ((bound, bound.values_for(effect, self._approved)) for bound in bindings)
        return [
            Origin("bound", bound.tool, bound.call_id, ", ".join(values), source=bound.digests)
            for bound, values in asked
            if values
        ]

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
            if places[0] >= self._writings.first and self._pointer_to(at) is None:
                found += (bound for bound in made_by.values() if not about.isdisjoint(things_of(bound.tool)))
        return found

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
            if not 1 < len(texts) == len(items):
                continue
            number, _ = next(self._places(min(texts)), (-1, 0))
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

    def _asked_of_links(self, tool: str, arguments: Mapping[str, Any], content: Collection[str]) -> Iterator[Question]:
        """Yield questions about links and addresses of others in texts and keys of a call's content."""
        statements = {name: value for name, value in arguments.items() if name in content}
        for path, text in islice(leaves_of(statements, with_keys=True), 2 * MOST_VALUES) if statements else ():
            for number, link in enumerate(dict.fromkeys(links_in(str(text)))):
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
        receivers = {flat(str(value)) for _, value in deciding if has_words(value)} - self._private.names
        found = set[str]()
        for path, text, is_joined in texts_that_leave(arguments):
            for piece, number, readers in self._private.within(text, receivers):
                if not (is_joined and piece in found):
                    origin = replace(self._sources[number].located(), kind="private")
                    yield from self._asked_unless_approved(tool, path, piece, origin, receivers - readers)
                found.add(piece)

    def _asked_of_private_names(
        self, tool: str, effect: Effect, deciding: Sequence[tuple[str, Any]], *, is_whole: bool
    ) -> Iterator[Question]:
        """Yield questions about what has private values that the run wrote, where others than their readers get it.

        What is the only value of a `send` is the receiver, unless it is the name of a file with such values. A call
        that gives others what is stored, and names none of it, may give all of it: but for one file.

        Args:
            tool: The tool's name.
            effect: The effect of the tool.
            deciding: The values, with their paths.
            is_whole: Whether the call has neither a text nor a number.
        """
        if not self._private:
            return
        under = {path: self._private_under(tool, path, value) for path, value in deciding if has_words(value)}
        receivers = {flat(str(value)) for path, value in deciding if has_words(value) and not under[path]}
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
            why = f"may give others what `{self._writings.writer_of_private}` wrote in this run, which is private"
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

    def _texts_of_object(self, value: str) -> Iterator[str]:
        """Yield the texts of the objects that a trusted result has with a value."""
        objects = self._values.get(value_of(value), ())[:_MOST_NAMED]
        yield from (sibling.text for at in objects for sibling in self._siblings(at))

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
        if written:
            verb, shown = "run" if effect == "execute" else "take", f" (`{value}`)" if value else ""
            why = f"may {verb} what `{writer}` wrote in this run{shown}, which is not known"
            yield from self._asked_of_writings(tool, "bound", written, why)

    def _asked_of_writings(
        self, tool: str, kind: OriginKind, written: Collection[str], why: str, to: Collection[str] = ()
    ) -> Iterator[Question]:
        """Yield a question about a call that may run, or give others, what the run wrote, whatever the call names."""
        mark = Origin(kind, source=(*sorted(written),)).mark(tool, "", "", to)
        if mark not in self._approved:
            yield Question("", "", f"`{tool}` {why}", kind, mark)

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
        for path, value in islice(leaves_of(arguments, with_flags=True), MOST_VALUES):
            for origin in self._origins_for("send", path, value) if path in paths else ():
                unknown = Origin("model", part=origin.part)
                self._approved.add(unknown.mark(tool, path, shown_value(value)))


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


def _mark(origin: Origin, tool: str, path: str, shown: str) -> str:
    """Return the mark of a value in an argument; empty where its origin is not asked about."""
    return origin.mark(tool, path, shown) if origin.kind in ASKED else ""


def _too_many(tool: str) -> list[Question]:
    why = f"`{tool}` is given more values than can be looked up ({MOST_VALUES:,})"
    return [Question("", "", why, kind) for kind in _ANY]
