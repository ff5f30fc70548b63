"""Bounds of a standing grant: what each argument of a call may be for the grant to cover it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from ipaddress import IPv6Address
from typing import Any, Final, Literal, TypeAlias, cast
from urllib.parse import unquote, urlsplit

from pydantic_core import Url

from toolcrib._passwords import REDACTED, STARS
from toolcrib.calls._diff import label, shown
from toolcrib.calls._json import parse_time
from toolcrib.calls._stored import StoredFields, versioned

BoundKind: TypeAlias = Literal["any", "exactly", "one_of", "between", "under", "fields", "each"]

_NUMBER: Final = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")
_URL: Final = re.compile(
    # the host may have letters of any script; a range of them would take 5 ms to compile
    r"(https?)://(\[[0-9a-f:.]+\]|(?:[a-z0-9.\-]|[^\x00-\x7f])+)(:[0-9]{1,5})?(/[^\s?#\\]*)?([?#][!-~]*)?",
    re.IGNORECASE | re.ASCII,
)
_DRIVE: Final = re.compile(r"([a-z]):[/\\](.*)", re.IGNORECASE | re.ASCII)
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}
_UNSURE: Final = re.compile(r"%(2e|2f|5c|25|00)", re.IGNORECASE)  # a server may take them for parts of a path
_MOST_DEPTH: Final = 50


@dataclass(frozen=True, slots=True)
class Bound:
    """The values of one argument that a standing grant covers.

    Made by `Bound.any()`, `Bound.exactly(value)`, `Bound.one_of(values)`, `Bound.between(low, high)` with None for no
    end, `Bound.under(place)` for a path or a URL and what is below it, or from what a person typed by `Bound.parse`.
    Those of the kinds `fields` and `each` are of a nested argument: `request.always(within=...)` makes them of paths.
    An argument, or a part of one, may be left out where its bound is `any` or `optional`, as the request does without.
    """

    kind: BoundKind
    value: Any = None
    optional: bool = False

    @classmethod
    def any(cls) -> Bound:
        """Every value, also a secret that is not shown."""
        return cls("any")

    @classmethod
    def exactly(cls, value: Any) -> Bound:
        """This JSON value alone; `true` is not 1, and 1 is 1.0."""
        return cls("exactly", value)

    @classmethod
    def one_of(cls, values: Iterable[Any]) -> Bound:
        """One of these JSON values; raises ValueError without one."""
        listed = list(values)
        if not listed:
            raise ValueError("one_of has no value: give those that are covered")
        return cls("one_of", listed)

    @classmethod
    def between(cls, low: float | Decimal | None = None, high: float | Decimal | None = None) -> Bound:
        """A number from `low` to `high`, both of them included; without `low`, from 0 on unless `high` is below 0.

        Raises:
            ValueError: There is neither, one is not a finite number, or `low` is more than `high`.
        """
        lowest, highest = (None if end is None else _end(name, end) for name, end in (("low", low), ("high", high)))
        if lowest is None and highest is None:
            raise ValueError("between has neither end: give one or both")
        if lowest is not None and highest is not None and lowest > highest:
            raise ValueError(f"between has {low} as its lower end and {high} as its upper end: nothing is covered")
        return cls("between", [None if end is None else str(end) for end in (lowest, highest)])

    @classmethod
    def under(cls, place: str) -> Bound:
        r"""A path or an address, and what is below it: `/srv/reports` covers `/srv/reports/may.pdf`.

        Paths are compared by their parts: `/srv/reports-old` and `/srv/reports/../x` are not covered. A path of Windows
        has its drive, `C:\reports`. Of an address the scheme, the host and the port are the same.

        Raises:
            ValueError: It is neither, or cannot be read in one way.
        """
        if _place_parts(place) is None or ("://" in place and ("?" in place or "#" in place)):
            plain = "give one without `..`, `//`, a query, and backslashes but after a drive, as in C:\\reports"
            raise ValueError(f"{place!r} is not a plain path or http address: {plain}")
        return cls("under", place)

    @classmethod
    def parse(cls, text: str, value: Any = None) -> Bound:
        """Return the bound that a person typed.

        Args:
            text: `any`; empty or `exactly` for the value of the request; `<= 50`, `>= 5`, `5..50`; `under /srv/x`;
                `one of "a", "b"`; `= "a"`, with JSON values.
            value: The value of the request.

        Raises:
            ValueError: The text is not of one of these forms.
        """
        written = text.strip()
        word, _, rest = written.partition(" ")
        try:
            if written in ("any", "*"):
                return cls.any()
            if written in ("", "exactly"):
                return cls.exactly(value)
            if written.startswith("="):
                return cls.exactly(_typed_json(written[1:]))
            if written.startswith(("<=", ">=")):
                number = _typed_number(written[2:])
                return cls.between(high=number) if written[0] == "<" else cls.between(low=number)
            if word == "under":
                return cls.under(rest.strip())
            if written.startswith("one of "):
                return cls.one_of(_typed_json(f"[{written.removeprefix('one of ')}]"))
            low, dots, high = written.partition("..")
            if dots:
                return cls.between(_typed_number(low), _typed_number(high))
        except ValueError as error:
            raise ValueError(f"{written!r:.80} is not a bound: {error}") from None
        raise ValueError(
            f"{written!r:.80} is not a bound: write any, exactly, <= 50, >= 5, 5..50, under /a/path, "
            'one of "a", "b", or = "a"'
        )

    def covers(self, value: Any) -> bool:
        """Return whether a value of a call is within the bound; of one that is hidden, `any` alone knows."""
        if self.kind == "any":
            return True
        if self.is_nested:
            return not self.problem("", value)
        if _is_hidden(value):
            return False
        if self.kind == "exactly":
            return is_same(value, self.value)
        if self.kind == "one_of":
            return any(is_same(value, allowed) for allowed in self.value)
        if self.kind == "between":
            number = number_of(value)
            low, high = (None if end is None else Decimal(end) for end in self.value)
            if low is None and high is not None and high >= 0:
                low = Decimal(0)  # who says "up to 50" of an amount means no debit
            return number is not None and (low is None or low <= number) and (high is None or number <= high)
        place, parts = _place_parts(self.value), _place_parts(value) if isinstance(value, str) else None
        return place is not None and parts is not None and parts[: len(place)] == place

    @property
    def is_nested(self) -> bool:
        """True if the bound is of the parts of an object or a list."""
        return self.kind in ("fields", "each")

    def problem(self, path: str, value: Any) -> str:
        """Return why the value at a path of a call is not within the bound; empty where it is."""
        if self.kind == "each" and isinstance(value, list):
            items, of_item = enumerate(cast("list[Any]", value)), cast("Bound", self.value)
            return next((why for at, item in items if (why := of_item.problem(f"{path}[{at}]", item))), "")
        if self.kind == "fields" and isinstance(value, Mapping):
            return bounds_problem(self.value, cast("Mapping[str, Any]", value), f"{path}.")
        if not self.is_nested and self.covers(value):
            return ""
        return f"`{path}` is {shown(value)}, and it was given for {self.text()}"

    def phrases(self, path: str) -> list[str]:
        """Return in words what the value at a path may be: a phrase for each part that has a bound of its own."""
        if self.kind == "each":
            found = self.value.phrases(f"{path}[*]")
        elif self.kind == "fields":
            parts = cast("dict[str, Bound]", self.value).items()
            found = [phrase for name, bound in parts for phrase in bound.phrases(f"{path}.{label(name)}")]
        else:
            return [f"{path} {self.text()}"]
        return [*found, f"{path} may be left out"] if self.optional else found

    def text(self) -> str:
        """Return the bound in words: `any`, `exactly "a"`, `up to 50`, `from 5 to 50`, `under /srv/reports`."""
        return f"{self._values_text()}{' or left out' if self.optional else ''}"

    def _values_text(self) -> str:
        if self.kind == "any":
            return "any"
        if self.kind == "each":
            return f"a list of items, each {self.value.text()}"
        if self.kind == "fields":
            parts = cast("dict[str, Bound]", self.value).items()
            return f"an object with {', '.join(f'{label(name)} {bound.text()}' for name, bound in parts)}"
        if self.kind == "one_of":
            return f"one of {', '.join(map(shown, self.value))}"
        if self.kind == "between":
            low, high = self.value
            return f"up to {high}" if low is None else f"from {low} on" if high is None else f"from {low} to {high}"
        return f"{self.kind} {shown(self.value)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the bound as JSON shapes."""
        value = self.value
        if self.kind == "each":
            value = value.to_dict()
        elif self.kind == "fields":
            value = {name: bound.to_dict() for name, bound in value.items()}
        optional = {"optional": True} if self.optional else {}
        return {"kind": self.kind} | ({} if self.kind == "any" else {"value": value}) | optional

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Bound:
        """Return the bound that `to_dict` described; raises ValueError for anything else."""
        data = StoredFields("Bound", data)
        return replace(cls._of_values(data), optional=data.get("optional") is True)

    @classmethod
    def _of_values(cls, data: Mapping[str, Any]) -> Bound:
        kind, value = data.get("kind"), data.get("value")
        match kind:
            case "any":
                return cls.any()
            case "exactly":
                return cls.exactly(value)
            case "one_of" if isinstance(value, list):
                return cls.one_of(cast("list[Any]", value))
            case "under" if isinstance(value, str):
                return cls.under(value)
            case "between" if isinstance(value, list) and len(cast("list[Any]", value)) == 2:
                return cls.between(*(None if end is None else Decimal(end) for end in cast("list[Any]", value)))
            case "each" if isinstance(value, Mapping):
                return cls("each", cls.from_dict(cast("Mapping[str, Any]", value)))
            case "fields" if isinstance(value, Mapping) and value:
                parts = cast("Mapping[str, Any]", value)
                return cls("fields", {name: cls.from_dict(bound) for name, bound in parts.items()})
            case _:
                raise ValueError(f"{data!r:.100} is not a bound of an argument")


def require_bounds(within: Mapping[str, Any]) -> None:
    """Raise TypeError where something else than a bound is given for an argument."""
    for name, bound in within.items():
        if not isinstance(bound, Bound):
            raise TypeError(
                f"within: `{name}` is {bound!r:.80}, which is not a bound: write Bound.exactly(...) for one value, "
                "or Bound.any(), one_of, between or under (from toolcrib.calls)"
            )


def bounds_problem(bounds: Mapping[str, Bound], values: Mapping[str, Any], path: str = "") -> str:
    """Return why values are not within bounds of the same names, each after a path; empty where they are."""
    for name, value in values.items():
        bound = bounds.get(name)
        if bound is None:
            return f"it was given for calls without `{path}{name}`"
        if why := bound.problem(f"{path}{name}", value):
            return why
    required = [name for name, bound in bounds.items() if not (bound.optional or bound.kind == "any")]
    missing = next((name for name in required if name not in values), None)
    return "" if missing is None else f"it was given for calls with `{path}{missing}`"


@dataclass(frozen=True, slots=True)
class GrantUse:
    """The used part of a standing grant.

    Attributes:
        calls: The calls that began by it.
        spent: The sum of the argument that its `total` names, over these calls.
        last_at: When the latest of these calls began; None where that was not stored.
    """

    calls: int = 0
    spent: Decimal = Decimal(0)
    last_at: datetime | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON shapes."""
        data = {"calls": self.calls, "spent": str(self.spent)}
        return data if self.last_at is None else versioned("GrantUse", {**data, "last_at": self.last_at.isoformat()})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GrantUse:
        """Return the use that `to_dict` described."""
        fields = StoredFields(cls, data)
        last_at = fields.get("last_at")
        return cls(fields["calls"], Decimal(fields["spent"]), None if last_at is None else parse_time(last_at))


def _end(name: str, given: float | Decimal) -> Decimal:
    number = number_of(str(given) if isinstance(given, Decimal) else given)
    if number is None:
        raise ValueError(f"between: {name} must be a finite number, and is {given!r}")
    return number


def _typed_number(text: str) -> Decimal:
    number = number_of(text.strip())
    if number is None:
        raise ValueError(f"{text.strip()!r} is not a number")
    return number


def _typed_json(text: str) -> Any:
    try:
        value = json.loads(text)
        is_coverable = not _is_hidden(value)
    except RecursionError:
        is_coverable, value = False, None
    if not is_coverable:
        raise ValueError("`any` alone covers a value that is hidden, or nested as deep")
    return value


def number_of(value: Any) -> Decimal | None:
    """Return a JSON number, or a decimal number as a text, exactly; None for what is neither, or not finite."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    text = value if isinstance(value, str) else repr(value) if isinstance(value, float) else f"{value:d}"
    if isinstance(value, float) and "e" in text:
        text = f"{Decimal(text):f}"
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def amount_of(value: Any) -> Decimal | None:
    """Return a number of 0 or more; None for anything else."""
    found = number_of(str(value) if isinstance(value, Decimal) else value)
    return found if found is not None and found >= 0 else None


def fits_amounts(arguments: Mapping[str, Any], over: Mapping[str, Any], up_to: Mapping[str, Any]) -> bool:
    """Return whether arguments are over some numbers, and at most others: a value that cannot be compared is both."""
    return all(_is_over(arguments.get(name), most) is not False for name, most in over.items()) and all(
        _is_over(arguments.get(name), most) is not True for name, most in up_to.items()
    )


def _is_over(value: Any, most: Any) -> bool | None:
    """Return whether an amount is over a number; None where that cannot be said."""
    amount, limit = amount_of(value), amount_of(most)
    return None if amount is None or limit is None else amount > limit


def _is_hidden(value: Any, depth: int = 0) -> bool:
    """Return whether a secret in a value is hidden, or it is too deep to know."""
    if depth > _MOST_DEPTH:
        return True
    if isinstance(value, Mapping):
        return any(_is_hidden(part, depth + 1) for part in cast("Mapping[str, Any]", value).values())
    if isinstance(value, list):
        return any(_is_hidden(part, depth + 1) for part in cast("list[Any]", value))
    return value in (REDACTED, STARS)


def is_same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are the same."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        fields, others = cast("Mapping[str, Any]", one), cast("Mapping[str, Any]", other)
        return fields.keys() == others.keys() and all(is_same(fields[name], others[name]) for name in fields)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        items, more = cast("list[Any]", one), cast("list[Any]", other)
        return len(items) == len(more) and all(map(is_same, items, more))
    return bool(one == other) and isinstance(one, str) == isinstance(other, str)


def _place_parts(place: str) -> list[str] | None:
    """Return the parts of a path or an address, the host among them; None for what may be read in another way."""
    if not place or not place.isprintable():
        return None
    if (drive := _DRIVE.fullmatch(place)) is not None:
        steps = drive[2].replace("\\", "/").removesuffix("/")
        parts = steps.split("/") if steps else []
        return [f"{drive[1].upper()}:", *parts] if all(map(_is_windows_name, parts)) else None
    if "\\" in place or place[1:2] == ":":  # of `C:x` it is not said where on the drive it is
        return None
    if "://" not in place:
        parts = place.rstrip("/").split("/")
        is_plain = all(map(_is_name, parts[1:])) and (parts[0] == "" or _is_name(parts[0]))
        return parts if is_plain and (parts != [""] or place == "/") and not place.startswith("~") else None
    found = _URL.fullmatch(place)
    if found is None or _UNSURE.search(urlsplit(place).path):
        return None
    scheme, host = found[1].lower(), _host(found[2])
    path = [unquote(part) for part in (found[4] or "/").rstrip("/").split("/")[1:]]
    steps = [part.partition(";")[0] for part in path]  # `..;x` climbs, too
    if not host or ".." in host or not all(map(_is_name, steps)):
        return None
    return [f"{scheme}://{host}{found[3] or _DEFAULT_PORTS[scheme]}", *path]


def _is_name(part: str) -> bool:
    """Return whether a part of a path is a name: no step, also not on Windows, which leaves spaces at the end out."""
    return part.strip(". ") != ""


def _is_windows_name(part: str) -> bool:
    """Return whether a part of a path is a name that Windows reads as it is written, in one way."""
    return part != "" and part == part.rstrip(". ") and not set(part) & set('<>:"|?*')


def _host(host: str) -> str:
    """Return a host as it is looked up, an international one in its ASCII form; empty for one that is read in two ways.

    Some clients look `straße.example` up as `strasse.example`, others do not; `010.0.0.1` is 8.0.0.1 to some.
    """
    try:
        if host.startswith("["):
            return f"[{IPv6Address(host[1:-1]).compressed}]"
        by_python = host if host.isascii() else host.encode("idna").decode()
        found = {name.lower().rstrip(".") for name in (by_python, Url(f"https://{host}").host or "")}
    except ValueError:
        return ""
    return found.pop() if len(found) == 1 else ""
