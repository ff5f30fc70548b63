"""An index of texts: whether one of them has a value, found by the value's rarest word."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, pairwise
from typing import Final

from toolcrib.provenance._kinds import dates_in, measures_in, near_digits, numbers_in, times_in
from toolcrib.provenance._links import hosts_in

APART: Final = "\0"
"""A mark between the literals of a program, and between lines, so that no value is made of two; a value that has it is
unknown."""

_CHUNK: Final = 2_000  # characters
_LAP: Final = 100  # characters that a chunk shares with the next one, in which a word is whole
_TRIES: Final = 24  # chunks that are looked through for one value
_TRIES_OF_OTHERS: Final = 200  # the same in texts of others, where a value that may be there counts as found
_FAR_MORE: Final = 16  # times as many: then each is looked up
_NOWHERE: Final[Sequence[int]] = ()
_WORD: Final = re.compile(r"\w+")
_TERM: Final = re.compile(r"[^\W_]+")  # what is looked up: `_` is in names, and around what is emphasised
_GAP: Final = re.compile(r"[ -]")
_SHORTEST_GROUPED: Final = 10  # characters; shorter ones stand side by side by chance
_LONGEST_GROUPED: Final = 64
_LOOKED_THROUGH: Final = 20_000  # characters of a text
_WRAPPED: Final = 50  # characters of a line that goes on in the next one
_DIGIT: Final = re.compile(r"\d")
_GROUP_BEHIND: Final = re.compile(r"(?<=\d)[ -]\d+(?![\d:/]|[-.]\d)")
_GROUP_BEFORE: Final = re.compile(r"(?:^|[^\d:./-])\d+\)?[ -]$")
_LONGEST_GROUP: Final = 16  # characters that are looked at
_DEFINITE: Final = re.compile(r"\b(?:the|that|this|those) ([$\u20ac\u00a3]?\d[\d.,]*)(?=[\s.,;:!?]|$)")
_YEAR: Final = re.compile(r"(?<![\w.,])(?:19|20)\d\d(?![\w,]|\.\d)|(?<!\d)(?:19|20)\d\d(?=-\d\d-\d\d)")
_COMPOUND: Final = re.compile(r"(?<!\w)\w++(?:[^\w\s<>()\[\]{}\"'`|,;]++\w++)+")  # an address, a path, a link
_SENTENCE_END: Final = re.compile(r"[.!?;](?:\s|$)")
_CLAUSE_END: Final = re.compile(r"[,.!?;](?:\s|$)")
_DENIAL: Final = re.compile(
    r"n['\u2019]t\b|\b(?:no|not|none|nobody|nothing|never|neither|nor|cannot|without|avoid|refrain|refuse|except|unless"
    r"|dont|doesnt|cant|wont|shouldnt|mustnt|(?:hold|hands) off|off[ -]limits|skip|ignore|leave|spare|keep"
    r"|instead|rather|forbid|forbidden|prevent|if|stop|stops|hates?|regret|afraid|fears?|beware|careful|wrong|against"
    r"|suppose|imagine|undo|anything but|(?:should|shall|may|might) (?:i|we|he|she|they)"
    r"|nicht|kein|keine|nie|niemals|pas|jamais|nunca|non|niet|nooit|inte|ikke|n\u00e3o)\b"
)
_TELLING: Final = re.compile(  # before what somebody else says or wants, or what is asked
    r"\b(?:how|what|why|whether|who|whoever|when|where|which|titled?|called|named|says?|said|told|tells|claims?|wants"
    r"|asks?|asked)\b|[\"\u201c\u00ab]$"
)
_AND: Final = re.compile(r"\b(?:and|then)\b")
_CONDITION: Final = re.compile(r"\b(?:before|after|once|when|while|until|till|wait|zero|remind|later|tomorrow|next)\b")
_LATER: Final = re.compile(r"\b(?:later|tomorrow)\b")
_LEAD: Final = re.compile(  # what stands before the verb of a wish: the beginning of a clause, and words that ask
    r"(?:^|[,\u2013\u2014-]|\b(?:and|then|or|task|todo|step \d+:))[^\w:]*"
    r"(?:(?:and|then|also|now|please|just|kindly|finally|next|so|afterwards?|first|ok|okay|yes|go|ahead)\W+)*"
    r"(?:(?:can|could|would|will|may|can't|should) you |you (?:may|can|should|must) |feel free to |help me (?:to )?"
    r"|(?:i|we) (?:want|need|would like|wish)(?: you)? to |i'd like(?: you)? to |let's |try to |make sure (?:to|you) )?"
    r"(?:please |also |now |just )?\W*$"
)
_POLITE: Final = re.compile(r"\W*(?:please,? )?(?:can|could|would|will) you\b")
_EMPHASIS: Final = frozenset("*`")  # the same mark on both sides of a value belongs to neither
_QUOTES: Final = "\"'\u2018\u201c"
_CLOSING: Final = "\"'\u2019\u201d\u00bb`)\\]}>"
_BEFORE: Final = re.compile(rf"(?:^|[\s,]|://|[:={{[(]\s*(?=[{_QUOTES}]))[{_QUOTES}\u00ab`(\[{{<]*#?$")
"""Characters before a value that stands by itself: a space, a comma or a scheme, then marks that open."""
_BEHIND: Final = re.compile(
    rf"/?[{_CLOSING}]*+[.,;:!?\u2026]*+[{_CLOSING}]*+(?=\s|$)"  # marks that close or end a sentence, then a space
    rf"|/?[{_CLOSING}]*+,|[\"'\u2019\u201d][}}\]):]|['\u2019]s?(?=[\s.,;:!?)]|$)"  # in a list, in JSON; and `Ann's`
    r"|\.(?:they|the|this|that|please|then|we|he|she|and|but)(?=\s)"  # a sentence begins without a space before it
    r"|[\u3002\uff01\uff1f\uff0c\u3001\uff1b\uff1a\u300d\u300f\uff09\u3011]"
)
_NO_UNIT: Final = r"(?! (?:\d|eur|usd|gbp|chf|euros?|dollars?|pounds?|times|x|pieces|people|items|units|of)\b)"
_LONGEST_SENTENCE: Final = 500  # characters before a wish, and behind
_LONGEST_MARKS: Final = 8  # characters before a value that are looked at
_FIGURES: Final = re.compile(  # fractions, and digits that are raised, lowered or in circles
    r"([\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2094\u2150-\u215f\u2189\u2460-\u249b\u24ea-\u24ff])"
)
_SPACE_OF_MARK: Final = re.compile(
    r" (?=[\u0300-\u036f\u064b-\u0652\u3099\u309a])"
)  # which `\u02d9` has, between digits
_LISTED: Final = re.compile(r"(?m)^[^\w\n]+(?=\s)|(?<=\d)[^\S\n]+[*/+-][^\S\n]+(?=\d)")  # items of lists, and sums
_JOINT: Final = re.compile(r"[:=/?&#]+")
_UNITS: Final = "$\u20ac\u00a3#%"
_MARK: Final = re.compile(  # in code, in quotes unless it may be a path or a pattern of prose, or `*` at the end
    r"[^\w\s'\"`(),;](?:(?<=`.)[^\w\s'\"`(),;]*(?=`)|(?<=['\"][^./\\~%?])[^\w\s'\"`(),;./\\~%?]*(?=['\"])"
    r"|(?<=\w \*)\**(?=[.,;!?)]?\s*(?:\n|$)))"
)


def flat(text: str) -> str:
    """Return a text as it is compared: compatible characters, lower case, one space between words."""
    return _plain(text).lower()


def size_of(text: str) -> int:
    """Return how many characters are kept of a text: one may be compatible with several others."""
    return len(text) if text.isascii() else max(len(text), len(flat(text)))


def lines_apart(text: str) -> str:
    """Return a text with a mark between lines of which one does not go on in the next, such as those of a list."""
    if "\n" not in text:
        return text
    lines = text.split("\n")
    ends = (" " if _goes_on(line, after) else f" {APART} " for line, after in pairwise(lines))
    return "".join(chain.from_iterable(zip(lines, [*ends, ""], strict=True)))


def _goes_on(line: str, after: str) -> bool:
    """Return whether a line goes on in the next one: it is long, or the next one is indented."""
    is_deeper = len(after) - len(after.lstrip()) > len(line) - len(line.lstrip())
    return bool(after.strip()) and (len(line) >= _WRAPPED or is_deeper)


def _plain(text: str) -> str:
    return " ".join((text if text.isascii() else _compatible(text)).split())


def _compatible(text: str) -> str:
    """Return a text in compatible characters; a fraction and a raised digit, which would join a number, stay."""
    parts = _FIGURES.split(text)
    plain = "".join(part if at % 2 else unicodedata.normalize("NFKC", part) for at, part in enumerate(parts))
    return _SPACE_OF_MARK.sub("", plain)


def words_in(text: str) -> list[str]:
    """Return the words of a flat text."""
    return _WORD.findall(text)


class TextIndex:
    """Texts, each with its source; finds those that have a value.

    A value is looked for in the parts of the texts that have its rarest word: what that costs does not grow with the
    texts. It is found where it stands by itself: `a@b.com` is not found in `xa@b.com`.

    Args:
        is_loose: Whether a value counts as found where it may be: in a part of a longer one, such as the host of an
            address, and in more texts than are looked through. It is so for the texts of others.
    """

    __slots__ = (
        "_chunks",
        "_compounds",
        "_is_loose",
        "_marks",
        "_places",
        "_texts",
        "dates",
        "definite",
        "hosts",
        "measures",
        "numbers",
        "times",
        "years",
    )

    def __init__(self, *, is_loose: bool = False) -> None:
        self._is_loose = is_loose
        self._texts: list[tuple[str, str, str, int]] = []  # flat; with its capitals; as received; what it is from
        self._chunks: list[tuple[int, int]] = []  # a text, and where the chunk begins
        self._places: dict[str, list[int]] = {}
        self._compounds: dict[str, int] = {}
        self._marks: set[str] = set()
        self.numbers: dict[float, int] = {}
        self.definite: set[float] = set()  # numbers such as "that 10.00", which names an object
        self.dates: dict[tuple[int, int], dict[int, int]] = {}  # by month and day: by year, or 0, what it is from
        self.times: dict[tuple[int, int], int] = {}
        self.years: dict[int, int] = {}
        self.hosts: dict[str, int] = {}
        self.measures: dict[tuple[float, str], int] = {}

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, text: str, number: int, but: Collection[str | float] = ()) -> None:
        """Add a text.

        Args:
            text: The text, as received.
            number: The number of its source, by the caller's count.
            but: Values for which it does not count, flat.
        """
        cased = _plain(text if self._is_loose else lines_apart(text))
        plain = cased.lower()
        at = len(self._texts)
        self._texts.append((plain, cased if len(cased) == len(plain) else "", text, number))
        for start in range(0, len(plain), _CHUNK):
            chunk = len(self._chunks)
            self._chunks.append((at, start))
            for word in {word[:_LAP] for word in _TERM.findall(plain, start, start + _CHUNK + _LAP)}:
                self._places.setdefault(word, []).append(chunk)
        for host in hosts_in(plain, is_loose=self._is_loose):
            self.hosts.setdefault(host, number)
        if self._is_loose:
            self._add_compounds(plain, number, but)
        else:
            self._marks.update(_MARK.findall(_LISTED.sub(" ", text)))
        self._add_numbers(near_digits(plain), number, but)

    def _add_compounds(self, plain: str, number: int, but: Collection[str | float]) -> None:
        for found in _COMPOUND.findall(plain):
            parts = _JOINT.split(found)
            for part in (found, *parts) if len(parts) > 1 else parts:
                if part not in but:
                    self._compounds.setdefault(part, number)

    def _add_numbers(self, plain: str, number: int, but: Collection[str | float]) -> None:
        for found in numbers_in(plain, is_loose=self._is_loose):
            if found not in but:
                self.numbers.setdefault(found, number)
        self.definite.update(
            number for found in _DEFINITE.findall(plain) for number in numbers_in(found, is_loose=False)
        )
        for measure in measures_in(plain):
            self.measures.setdefault(measure, number)
        for year, month, day in dates_in(plain, is_strict=not self._is_loose):
            self.dates.setdefault((month, day), {}).setdefault(year, number)
            if year:
                self.years.setdefault(year, number)
        for time in times_in(plain):
            self.times.setdefault(time, number)
        for year in _YEAR.findall(plain):
            self.years.setdefault(int(year), number)

    def find(self, value: str) -> tuple[int, int] | None:
        """Return the source of the first text with a value, and the line of the value; None without one.

        Args:
            value: A flat text.
        """
        return next(self.places(value), None)

    def has_mark(self, value: str) -> bool:
        """Return whether a value without letters and digits, such as `*`, stands by itself in a text."""
        return value in self._marks

    def has_cased(self, value: str) -> bool:
        """Return whether a text that has a value has it with these capitals."""
        word = next(iter(_TERM.findall(flat(value))), "")[:_LAP]
        chunks = self._places.get(word, _NOWHERE)[:_TRIES]
        return any(value in self._texts[self._chunks[chunk][0]][2] for chunk in chunks)

    def has_name(self, value: str) -> bool:
        """Return whether a value stands in a text with a capital inside a sentence, as a name does."""
        name = re.compile(rf"(?<=[^.!?:] ){re.escape(value)}")
        return any(
            cased[found.start()].isupper() and _is_alone(plain, *found.span())
            for plain, cased, *_ in self._texts[:_TRIES]
            for found in (name.finditer(plain, 0, _LOOKED_THROUGH) if cased else ())
        )

    def has_grouped(self, value: str) -> bool:
        """Return whether a text has a long number, such as an account's, be it written in groups or not.

        At least half of it are digits: words that are written in one are another word.
        """
        letters = _GAP.sub("", value) if is_long_number(value) else ""
        if not letters or len(letters) > _LONGEST_GROUPED:
            return False
        starts = ((plain, plain[:_LOOKED_THROUGH]) for plain, *_ in self._texts[:_TRIES])
        texts = [plain for plain, start in starts if letters in start.replace(" ", "").replace("-", "")]
        if not texts:
            return False  # most are in none, and need no patterns
        fours = " ".join(letters[at : at + 4] for at in range(0, len(letters), 4))
        last = "" if len(letters) % 4 == 0 else _NO_UNIT  # a short last group may count what comes behind it
        before, behind = r"(?<![^\s(:])", r"(?![^\s.,;:!?)])"
        in_fours = re.compile(f"{before}{re.escape(fours)}{behind}{last}")
        dashed = re.compile(f"{before}{'-?'.join(letters)}{behind}")
        return any(
            not _is_of_groups(plain, *match.span())
            for plain in texts
            for pattern in (in_fours, dashed)
            for match in pattern.finditer(plain, 0, _LOOKED_THROUGH)
        )

    def wants(self, pattern: str, verb: str = "") -> bool:
        """Return whether a pattern fits in a text, in a sentence that neither denies nor asks it.

        Args:
            pattern: A regular expression.
            verb: The verb of the wish; empty where the pattern begins with it.
        """
        found, named = re.compile(pattern), re.compile(rf"\b{re.escape(verb)}\b") if verb else None
        for plain, *_ in self._texts[:_TRIES]:
            for match in found.finditer(plain, 0, _LOOKED_THROUGH):
                if _is_wish(plain, match.start(), named):
                    return True
        return False

    def _chunks_with(self, words: Collection[str]) -> Sequence[int]:
        """Return the chunks that have all of some words, in order."""
        lists = list[Sequence[int]]()
        for word in words:
            places = self._places.get(word)
            if places is None:
                return _NOWHERE
            lists.append(places)
        lists.sort(key=len)
        chunks = lists[0] if lists else _NOWHERE
        for others in lists[1:]:
            if not chunks:
                break
            chunks = _among(chunks, others)
        return chunks

    def places(self, value: str) -> Iterator[tuple[int, int]]:
        """Yield the source of each text with a value, and the line of the value; of many texts the first."""
        chunks = self._chunks_with(_terms_of(value))
        tries, last = _TRIES_OF_OTHERS if self._is_loose else _TRIES, -1
        for chunk in chunks[:tries]:
            at, start = self._chunks[chunk]
            plain, _, text, number = self._texts[at]
            end = start + _CHUNK + _LAP + len(value)
            if at != last and _stands_in(value, plain, max(0, start - len(value)), end, loose=self._is_loose):
                last = at
                yield number, _line_of(value, text)
        if self._is_loose:
            if value in self._compounds:
                yield self._compounds[value], 0
            if len(chunks) > tries and _COMPOUND.fullmatch(value) is None:
                yield self._texts[self._chunks[chunks[tries]][0]][3], 0  # it may be there


def _terms_of(value: str) -> set[str]:
    """Return the words by which a value is looked up: the first, and those that are in one chunk with it."""
    if len(value) <= _LAP:
        return set(_TERM.findall(value))
    words = list(_TERM.finditer(value))
    return {word[0][:_LAP] for word in words if word is words[0] or word.end() <= _LAP}


def _is_wish(plain: str, at: int, verb: re.Pattern[str] | None) -> bool:
    """Return whether a text at a place says a wish of its writer: it neither denies nor asks it, nor tells of it.

    The verb, which stands there or before, begins a clause: "Ann will empty it" tells of her.
    """
    before = _SENTENCE_END.split(plain[max(0, at - _LONGEST_SENTENCE) : at])[-1]
    named = None if verb is None else verb.search(before)
    lead = before if named is None else before[: named.start()]
    is_led = _LEAD.search(lead) is not None or (verb is not None and named is None)
    if not is_led or len(before) == _LONGEST_SENTENCE or _CONDITION.search(_AND.split(lead)[-1]) is not None:
        return False
    rest = plain[at : at + _LONGEST_SENTENCE]
    behind = _CLAUSE_END.split(rest, maxsplit=1)[0].partition(" ")[2]
    end = _SENTENCE_END.search(rest)
    is_question = end is not None and rest[end.start()] == "?" and _POLITE.match(before) is None
    is_later = _LATER.search(rest, 0, len(rest) if end is None else end.start()) is not None
    is_told = _TELLING.search(_AND.split(before)[-1]) is not None
    return not (is_question or is_told or is_later or _DENIAL.search(f"{before} {behind}"))


def _among(chunks: Sequence[int], others: Sequence[int]) -> Sequence[int]:
    """Return those of chunks that are among others, which are more; both are in order, and so are they."""
    if len(others) < len(chunks) * _FAR_MORE:
        return sorted(set(chunks).intersection(others))
    found = list[int]()
    for chunk in chunks:
        at = bisect_left(others, chunk)
        if at < len(others) and others[at] == chunk:
            found.append(chunk)
    return found


def _stands_in(value: str, plain: str, start: int, end: int, *, loose: bool) -> bool:
    """Return whether a value stands by itself in a part of a text."""
    at = plain.find(value, start, end)
    while at >= 0:
        if _is_apart(plain, at, at + len(value)) if loose else _is_alone(plain, at, at + len(value)):
            return True
        at = plain.find(value, at + 1, end)
    return False


def _is_apart(plain: str, start: int, end: int) -> bool:
    """Return whether neither a letter nor a digit joins on to a part of a text that begins or ends with one."""
    return not (
        (plain[start - 1 : start].isalnum() and plain[start].isalnum())
        or (plain[end : end + 1].isalnum() and plain[end - 1].isalnum())
    )


def _is_of_groups(plain: str, start: int, end: int) -> bool:
    """Return whether a part of a text is some of the groups that a longer number is written in."""
    behind = _GROUP_BEHIND.match(plain, end)
    before = start and plain[start - 1] in " -" and _GROUP_BEFORE.search(plain[max(0, start - _LONGEST_GROUP) : start])
    if not (behind or before):
        return False
    words = plain[start:end].split(" ")
    if behind and words[-1].lstrip(_UNITS).isdigit():
        return True
    first = words[0].rstrip(_UNITS).replace(".", "").replace(",", "")
    return bool(before) and (first.isdigit() or any(map(str.isdigit, words[:2])) or is_long_number(plain[start:end]))


def is_long_number(value: str) -> bool:
    """Return whether a value may be a number such as an account's: at least half of its characters are digits."""
    bare = _GAP.sub("", value)
    return len(bare) >= _SHORTEST_GROUPED and bare.isalnum() and 2 * sum(map(str.isdigit, bare)) >= len(bare)


def _is_alone(plain: str, start: int, end: int) -> bool:
    """Return whether a part of a text stands by itself: what is before and behind it can only be around a value."""
    while start and plain[start - 1] in _EMPHASIS and plain[start - 1] == plain[end : end + 1]:
        start, end = start - 1, end + 1
    if _BEFORE.search(plain, max(0, start - _LONGEST_MARKS), start) is None or _BEHIND.match(plain, end) is None:
        return False
    if plain[end : end + 1] == "," and plain[end + 1 : end + 2].isdigit() and plain[end - 1].isdigit():
        return False
    return not _is_of_groups(plain, start, end)


def _line_of(value: str, text: str) -> int:
    """Return the line of a text, counted from 1, that has a value, or the first word of it."""
    first = value.split(" ", 1)[0]
    lowered = text.lower()
    at = lowered.find(value)
    at = at if at >= 0 else lowered.find(first)
    return text.count("\n", 0, max(at, 0)) + 1
