"""Components of a value: each has to have an origin of its own.

The readers are strict. What can be read in two ways, by us or by the program that gets the value, is `unclear`, and an
unclear component has no known origin.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["word", "name", "number", "measure", "date", "time", "host", "unclear"]
"""Kinds of component: a word of letters, a name that stands as a whole (an address, an identifier, a file), a number,
a number with a unit, a date, a time of day, the host of a link, or a text that cannot be read with certainty."""

_MOST: Final = 64  # components of one value
_LONG: Final = 2_000  # characters of a value that is taken apart
_MOST_CENTS: Final = 3  # characters of a comma with the decimals behind it
_EXACT: Final = 15  # digits that a float holds
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs"})

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH: Final = (
    "(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY: Final = r"(\d{1,2})(?:st|nd|rd|th)?"
_TO: Final = r" ?(?:-|\u2013|to|until|and) ?(?:the )?"
_NO_NOUN: Final = r"(?:at|of|from|in|for|with|and|or|on|to|please|if|when|is|was|then|the|that|by|until|we|i|it)\b"
_NO_COUNT: Final = (  # behind the end of a span, which may count what follows: `May 5 to 14 guests`
    rf"(?![\d:]|[.,]\d| ?[ap]\.?m\b| (?!{_NO_NOUN})[a-z])"
)
_NAMES: Final = "(?:jan|march|april|may|june|august)"  # months that are also people, or verbs
_COUNTED: Final = re.compile(  # such a name, and how many of something: `ask April 5 questions`
    r"\b(?!(?:on|by|until|till|from|before|after|since|between|is|was|the|this|next|last|my|our|your|due|date|\w*day)\b)"
    rf"[^\W\d_]+ (?:{_NAMES} \d{{1,2}}|\d{{1,2}} {_NAMES})(?= (?!{_NO_NOUN})[a-z])"
)
_YEAR: Final = r"(?:,? (\d{4})\b)?"
_START: Final = r"(?<![\w@/.:+\-])"
_END: Final = r"(?![\w@/]|[.:+\-][\w@/])"
_ISO: Final = re.compile(rf"{_START}(\d{{4}})-(\d\d)-(\d\d)(?:(?=[t ]\d\d:)[t ]?|{_END})")
_MONTH_FIRST: Final = re.compile(rf"\b{_MONTH} {_DAY}{_YEAR}(?:{_TO}(?:{_MONTH} )?{_DAY}{_YEAR}\b{_NO_COUNT})?\b")
_MAY_BE_DATE: Final = re.compile(rf"\b{_MONTH} {_DAY}{_YEAR}(?:{_TO}(?:{_MONTH} )?{_DAY}{_YEAR})?\b")  # of no number
_DAY_FIRST: Final = re.compile(rf"\b(?:{_DAY}{_TO})?{_DAY}(?: of)? {_MONTH}{_YEAR}")
_MAY_BE_DAY: Final = re.compile(rf"\d(?:st|nd|rd|th)?(?: of)? (?:{'|'.join(_MONTHS)})")
_MAY_BE_CLOCK: Final = re.compile(r":(?<=\d:)\d\d")
_MAY_BE_HALF_DAY: Final = re.compile(r"\d ?[ap]\.?m\b")
_CLOCK: Final = re.compile(
    r"(?<![\w:.,+\-/])t?(\d{1,2}):(\d\d)(?::00(?:\.0+)?)?(z)?(?! ?[ap]\.?m\b)(?![\w:+/@]|[.\-]\w)"
)
_HALF_DAY: Final = re.compile(r"(?<![\w:.,+\-/])(\d{1,2})(?::(\d\d))? ?([ap])\.?m\b")
_MOMENTS: Final = (_ISO, _MAY_BE_DATE, _DAY_FIRST, _HALF_DAY, _CLOCK)

_DIGIT: Final = re.compile(r"\d")
_NUMBER: Final = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
# around a number: nothing that joins it, such as a letter, a slash, another group or an apostrophe between groups
_OPEN: Final = r"(?<![^\s(\[{<\"'\u2018\u201c=|])(?<!\w['\"\u2018\u201c(\[{<=])(?<!\d )"
_SHUT: Final = r"(?=[)\]}>\"'\u2019\u201d.,;:!?|]*(?:\s|$))(?! \d{3}(?!\d))"
_FIGURE: Final = r"-?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+,\d{1,2}|\d+(?:\.\d+|,\d{1,2})?)"
_UNIT: Final = r"[$\u20ac\u00a3%]"
_SCALE: Final = "hundred|thousand|million|billion|trillion|mio|mrd|k|bn"  # behind a part of a number
_MEASURES: Final = re.compile(
    rf"{_OPEN}(?:([$\u20ac\u00a3#]) ?)({_FIGURE})(?: ?({_UNIT}))?{_SHUT}|{_OPEN}()({_FIGURE}) ?({_UNIT}){_SHUT}"
)
_UNITS: Final = frozenset("$\u20ac\u00a3#%")
_NUMBERS: Final = re.compile(
    rf"{_OPEN}(?:[$\u20ac\u00a3#] ?)?({_FIGURE})(?! ?%| (?:{_SCALE})\b)(?: ?[\u20ac\u00a3$])?{_SHUT}"
)
_GROUPS: Final = re.compile(r"[+(]?(?<![\w.,])\w*\d\)?(?:[ -]\(?\d+(?:[.,]\d+)?(?![\d:/])\)?)+")  # of a long number
_TWO_WAYS: Final = re.compile(r"-?[1-9]\d{0,2}(?:\.\d{3})+")  # a point of decimals, or of thousands
_DEBIT: Final = re.compile(r"\([\d.,]+\)")  # as accounts write a negative number
# one that is looked for in long texts begins with a character, and looks back from there: it is found faster
_LOOSE: Final = re.compile(
    r"[-\d](?<![\w.][-\d])(?:(?<=-)\d|(?<!-))(?:\d{0,2}(?:,\d{3})+(?:\.\d+)?(?!\w)|\d*(?:\.\d+)?(?!\w))"
)
_JOINED: Final = re.compile(  # in groups, with a comma of decimals, or beside the letters of a unit
    r"\d(?<![\d.,]\d)(?:(?<!\w\d)\d{0,2}(?:(?P<by>['\u2019 .])\d{3})(?:(?P=by)\d{3})*(?:,\d{1,2})?(?![\d'])"
    r"|\d*,\d{1,2}(?![\d,])|\d{2,}(?:\.\d+)?(?!\d))"
)
_BEFORE_DIGIT: Final = 24  # characters before a digit, more than a date has there, or what decides about a number
_BEHIND_DIGIT: Final = 40
_DIGITS: Final = re.compile(rf"\d(?:\D{{0,{_BEFORE_DIGIT + _BEHIND_DIGIT}}}+\d)*+")
_MARKS: Final = re.compile(
    rf"[$\u20ac\u00a3#%](?:[^$\u20ac\u00a3#%]{{0,{_BEFORE_DIGIT + _BEHIND_DIGIT}}}+[$\u20ac\u00a3#%])*+"
)
_BETWEEN: Final = re.compile(r"(?:(?<!\d),|,(?!\d)|[\s;()\"'\u2018\u2019\u201c\u201d])+")
_AROUND: Final = ":.!?"
_ADDRESS: Final = re.compile(r"<?[^\s<>,;()\"']+@[^\s<>,;()\"']+>?[,;]?")
_NAMED: Final = re.compile(  # a word beside a date or a time that is of neither
    r"(?<!\w)(?!(?:at|on|from|to|until|till|and|or|of|the|by|in|for|between|utc|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b)"
    r"\d*[^\W\d_]"
)
_FREE: Final = frozenset({"", "-", "\u2013", "\u2014"})  # between words, and deciding nothing
_URL: Final = re.compile(
    r"(http://)?(?:https://)?([a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+)(:\d{1,5})?"
    r"(/[^\s?#\\@%]*)?(\?[^\s#\\@%]*)?(#[^\s\\@%]*)?"
)


@dataclass(frozen=True, slots=True)
class Component:
    """One component of a value.

    Attributes:
        kind: Its kind.
        text: The component as a flat text.
        number: The number, of a number.
        unit: The marks of its unit, before and behind it.
        parts: Year, month and day of a date, hour and minute of a time; a year of 0 is left out.
    """

    kind: Kind
    text: str
    number: float = 0.0
    parts: tuple[int, ...] = ()
    unit: str = ""


def components(value: str) -> list[Component]:
    """Return the components of a flat text; one that is unclear when it cannot be taken apart."""
    if len(value) > _LONG or (not value.isascii() and any(unicodedata.category(char) in _HIDDEN for char in value)):
        return [Component("unclear", value)]
    found: list[Component] = []
    for component in _scan(value):
        if len(found) == _MOST:
            return [Component("unclear", value)]
        found.append(component)
    return found or [Component("unclear", value)]


def phrases(value: str) -> Iterator[str]:
    """Yield the words of a flat text that stand side by side, with their marks.

    Dates, times, numbers and addresses are components by themselves. Words on both sides of one stand side by side with
    it, but for names before addresses in a list. A date or a time beside words is yielded as it is spelled. A word
    without a mark that stands by itself is left out.
    """
    words, groups, parted = list[str](), 0, without_moments(value, " \n ")
    if parted != value and any(_NAMED.search(piece) for piece in parted.split() if "@" not in piece):
        yield from _moments_in(value)
    for piece in [*parted.split(" "), "\n"]:
        is_end = piece == "\n" or _ADDRESS.fullmatch(piece) is not None or number_of(piece) is not None
        if piece and not (is_end or measure_of(piece)):
            words.append(piece)
        elif words and piece:
            if len(words) > 1 or (words[0] not in (*_FREE, ",") and _marked(words[0])):
                yield " ".join(words)
            is_listed = piece[0] == "<" and "@" in piece
            groups += not is_listed and any(_NAMED.search(word) for word in words)
            words = []
    if groups > 1:
        yield value


def _marked(piece: str) -> bool:
    return piece.strip(_AROUND) != piece or _BETWEEN.search(piece) is not None


def _scan(value: str) -> Iterator[Component]:
    if _DIGIT.search(value) is not None:
        for year, month, day in dates_in(value):
            yield Component("date", _date_text(year, month, day), parts=(year, month, day))
        for hour, minute in times_in(value):
            yield Component("time", f"{hour}:{minute:02}", parts=(hour, minute))
        value = without_moments(value)
    for piece in _BETWEEN.split(value):
        bare = piece if "@" in piece else piece.strip(_AROUND)
        if piece in _FREE or (not bare and piece != "." and ".." not in piece and piece not in ("?", "!")):
            continue
        yield from _of_piece(bare or piece)


def _date_text(year: int, month: int, day: int) -> str:
    return f"{year}-{month:02}-{day:02}" if year else f"{_MONTHS[month - 1]} {day}" if 0 < month < 13 else "date"


def _of_piece(piece: str) -> Iterator[Component]:
    if "@" in piece and piece[0] == "<" and piece[-1] == ">":
        piece = piece[1:-1]
    if piece.isalpha():
        yield Component("word", piece)
    elif (number := whole_of(piece)) is not None:
        yield Component("number", piece, number)
    elif (measure := measure_of(piece)) is not None:
        yield Component("measure", piece, measure[0], unit=measure[1])
    elif "://" in piece or piece.startswith("www."):
        yield from _of_url(piece)
    elif "/" in piece or "\\" in piece:
        yield from _of_path(piece) if piece[0] not in "/~" else (Component("name", piece),)
    else:
        yield Component("name", piece)


def _of_url(piece: str) -> Iterator[Component]:
    """Yield the components of a link that a browser and every other reader take apart in the same way."""
    match = _URL.fullmatch(piece)
    if match is None or not match[2].rpartition(".")[2].isalpha():
        yield Component("unclear", piece)
        return
    scheme, host, port, path, query, fragment = match.groups()
    yield Component("host", (scheme or "") + host.removeprefix("www."))
    for part in (port, query, fragment):
        for name in re.split(r"[:?#&=+]", part or ""):
            if name:
                yield Component("name", name)
    yield from _of_path(path or "")


def _of_path(path: str) -> Iterator[Component]:
    segments = path.split("/")
    if "\\" in path or ".." in segments:
        yield Component("unclear", path)
        return
    for segment in segments:
        if segment and segment != ".":
            yield Component("name", segment)


def number_of(text: str) -> float | None:
    """Return the number that a flat text is; None when it is another text, has a unit, or is not exact."""
    match = _NUMBER.fullmatch(text)
    if match is None or sum(map(str.isdigit, text)) > _EXACT or not text.isascii():
        return None
    digits = text.replace(",", "")
    if _TWO_WAYS.fullmatch(digits) is not None:
        return None
    if len(digits.lstrip("-")) > 1 and digits.lstrip("-").startswith("0") and "." not in digits:
        return None  # 007 is no 7
    try:
        return float(digits)
    except ValueError:
        return None


def whole_of(text: str) -> float | None:
    """Return the whole number that a flat text is; None for another text: 3.0 is another version than 3."""
    return None if "." in text.removesuffix(".00") else number_of(text)


def numbers_in(text: str, *, is_loose: bool) -> Iterator[float]:
    """Yield the numbers of a flat text.

    Args:
        text: The text.
        is_loose: Whether the parts of dates, times and versions count as numbers, too.
    """
    strict = () if is_loose else _NUMBERS.findall(_GROUPS.sub("~", _DEBIT.sub("~", without_moments(text))))
    for found in _LOOSE.findall(text) if is_loose else strict:
        number = float(found.replace(",", "")) if is_loose else figure_of(found)
        if number is not None and len(found) <= _EXACT + 8:
            yield number
    for match in _JOINED.finditer(text) if is_loose else ():
        digits = re.sub(r"['\u2019 ]", "", match[0]) if match["by"] != "." else match[0].replace(".", "")
        if len(digits) <= _EXACT:
            yield float(digits.replace(",", "."))


def figure_of(text: str) -> float | None:
    """Return the number of a figure in a text; None for one that may be two numbers, or is an identifier: `0042`."""
    bare = text.lstrip("-")
    if _TWO_WAYS.fullmatch(text) is not None or (bare.startswith("0") and bare[1:2].isdigit()):
        return None
    point, comma = text.rfind("."), text.rfind(",")
    if comma > point and (point >= 0 or len(text) - comma <= _MOST_CENTS):  # a comma of decimals
        return float(text.replace(".", "").replace(",", "."))
    return float(text.replace(",", ""))


def measure_of(text: str) -> tuple[float, str] | None:
    """Return the number that a flat text is, and the marks of its unit; None for other texts, and without a unit."""
    number = number_of(text.strip("$\u20ac\u00a3#%")) if text and (text[0] in _UNITS or text[-1] in _UNITS) else None
    return None if number is None else (number, "".join(char for char in text if char in _UNITS))


def measures_in(text: str) -> Iterator[tuple[float, str]]:
    """Yield the numbers of a flat text that have a unit as a mark, each with it: `$50`, `10%`, `#7`."""
    for match in _MEASURES.finditer(_near(text, _MARKS)):
        before, found, behind = match.groups()[:3] if match[2] else match.groups()[3:]
        number = figure_of(found)
        if number is not None and len(found) <= _EXACT + 8:
            yield number, before + (behind or "")


def dates_in(text: str, *, is_strict: bool = False) -> Iterator[tuple[int, int, int]]:
    """Yield the dates of a flat text as year, month and day: `2026-05-01`, `may 1st`, `1st to the 5th of may`.

    Args:
        text: The text.
        is_strict: Whether what may be a name and a number is left out.
    """
    if is_strict:
        text = _COUNTED.sub("~", text)
    for year, month, day in _ISO.findall(text):
        yield int(year), int(month), int(day)
    for month, day, year, other, until, last in _MONTH_FIRST.findall(text):
        yield int(year or 0), _month(month), int(day)
        if until:
            yield int(last or 0), _month(other or month), int(until)
    for start, day, month, year in _DAY_FIRST.findall(text) if _MAY_BE_DAY.search(text) is not None else ():
        yield int(year or 0), _month(month), int(day)
        if start:
            yield int(year or 0), _month(month), int(start)


def _month(name: str) -> int:
    return _MONTHS.index(name[:3]) + 1


def times_in(text: str) -> Iterator[tuple[int, int]]:
    """Yield the times of day in a flat text as hour and minute: `10:30`, `3 pm`."""
    for hour, minute, _ in _CLOCK.findall(_ISO.sub(" ", text)) if _MAY_BE_CLOCK.search(text) is not None else ():
        yield int(hour), int(minute)
    for hour, minute, half in _HALF_DAY.findall(text) if _MAY_BE_HALF_DAY.search(text) is not None else ():
        yield int(hour) % 12 + (12 if half == "p" else 0), int(minute or 0)


def near_digits(text: str) -> str:
    """Return a text without the words that are far from all digits: its numbers, dates and times are the same."""
    return _near(text, _DIGITS)


def _near(text: str, pattern: re.Pattern[str]) -> str:
    """Return the words of a text that are near what fits a pattern."""
    parts, end = list[str](), 0
    for match in pattern.finditer(text):
        if match.end() + _BEHIND_DIGIT > end:
            start = text.rfind(" ", end, max(end, match.start() - _BEFORE_DIGIT)) + 1 or end
            end = text.find(" ", match.end() + _BEHIND_DIGIT) + 1 or len(text)
            parts.append(text[start:end])
    return "".join(parts)


def without_moments(text: str, by: str = " ") -> str:
    """Return a flat text without its dates and times, with something else in the place of each."""
    for pattern in _MOMENTS if _DIGIT.search(text) is not None else ():
        text = pattern.sub(by, text)
    return text


def _moments_in(text: str) -> Iterator[str]:
    """Yield the dates and times of a flat text as they are spelled."""
    for pattern in _MOMENTS:
        yield from (match[0].strip() for match in pattern.finditer(text))
        text = pattern.sub(" ", text)
