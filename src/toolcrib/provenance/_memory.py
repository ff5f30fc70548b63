"""Memory of a run: what it has read, and the questions for a person about the arguments of a call."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final, cast

from toolcrib.provenance._kinds import without_moments
from toolcrib.provenance._links import links_in
from toolcrib.provenance._pieces import key_of
from toolcrib.provenance._question import ASKED, ASKED_INSIDE, Origin, OriginKind, Question, argument_of, cut
from toolcrib.provenance._records import words_named
from toolcrib.provenance._taken_values import TakenValues
from toolcrib.provenance._texts import flat
from toolcrib.provenance._values import MOST_VALUES, has_words, keys_of, leaves_of, shown_value
from toolcrib.tools import INSIDE, Effect

_MOST_NAMED: Final = 8  # of what was read, in a question
_ANY: Final[tuple[OriginKind, ...]] = ("untrusted", "model", "private")  # what values may be that are not looked up
_MOST_WRITTEN: Final = 100  # addresses, links and numbers in one argument
_MOST_LINKS: Final = 200  # in one text
_SHORTEST: Final = 2  # letters of words such as "to", which name nothing
_OF_USER: Final = re.compile(r"[^\W\d_]{4,}")  # a word that shows the user's will


class Memory(TakenValues):
    """The texts and results that one run has read, with their sources.

    Attributes:
        last_words: The last text of the user, cut.
        is_whole: Whether it has read only results of the run's own calls, and words of the user.
        handles: The handles of kept results that it has read.
        is_told: Whether the model has said something before, from an unknown source.
        today: The day, by which the user's words have dates; None where it is not known.
    """

    # --- what a person has to be asked

    def judge(
        self,
        tool: str,
        effect: Effect,
        arguments: Mapping[str, Any],
        content: frozenset[str] = frozenset(),
        settled: list[Question] | None = None,
        *,
        receivers: Collection[str] = (),
    ) -> list[Question]:
        """Return the questions for a person before a tool with an effect runs.

        Args:
            tool: The tool's name.
            effect: The effect of the tool.
            arguments: The final arguments as JSON shapes.
            content: The arguments that say something, and decide nothing.
            settled: Gets where the other values come from that decide something.
            receivers: Those to whom it goes besides the values: keys, and what the tool takes by itself.
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
            others = frozenset(map(flat, receivers))
            questions += self._asked_of_private_values(tool, arguments, deciding, others)
            questions += self._asked_of_private_names(tool, effect, deciding, others, is_whole=says_nothing)
            if says_nothing or effect == "execute":
                questions += self._asked_of_all_writings(tool, effect, deciding)
        elif self._budget < 0:
            questions += _too_many(tool, "")
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
        unasked: list[Question] | None,
    ) -> tuple[list[Question], bool]:
        """Return the questions about deciding values, and whether one of them is not asked about whatever the effect.

        Args:
            tool: The tool's name.
            effect: The effect of the tool.
            deciding: The values, with their paths.
            wanted: The arguments that the user wants as a whole.
            unasked: Gets where the other values come from.
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
            if unasked is not None and passed and (not questions or questions[-1].path != path):
                least = max(passed, key=lambda origin: origin.kind in ASKED)
                unasked.append(Question.of(path, cut(shown), least, _mark(least, tool, path, shown)))
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

    @property
    def has_private(self) -> bool:
        """True if the run has read private values."""
        return self._private.readers is not None

    # --- what another process has to know

    def to_dict(self) -> dict[str, Any]:
        """Return as JSON shapes what the run has read and written, without the texts."""
        self.settle()
        readers, tool = self._private.readers, self._writings.last_tool
        private = {} if readers is None else {"private_readers": sorted(readers)}
        return {
            **({"reads_others": True} if self.reads_others else {}),
            **private,
            **({"unknown_writer": tool} if tool else {}),
        }

    def restore(self, data: Mapping[str, Any], *, is_same_run: bool) -> None:
        """Record that a run has read and written what is not here; of the same run, what it has read again is."""
        known = self.to_dict() if is_same_run else {}
        if "reads_others" in data and "reads_others" not in known:
            self.lose()
        if "private_readers" in data and "private_readers" not in known:
            self._private.lose(frozenset(data["private_readers"]))
        if "unknown_writer" in data and "unknown_writer" not in known:
            self._writings.lost = data["unknown_writer"]

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


def _mark(origin: Origin, tool: str, path: str, shown: str) -> str:
    """Return the mark of a value in an argument; empty where its origin is not asked about."""
    return origin.mark(tool, path, shown) if origin.kind in ASKED else ""


def _too_many(tool: str, most: str = f" ({MOST_VALUES:,})") -> list[Question]:
    why = f"`{tool}` is given more values than can be looked up{most}"
    return [Question("", "", why, kind) for kind in _ANY]
