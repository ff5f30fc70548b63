"""Form of a standing grant within bounds: its fields as a person typed them, and the grant that they make."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any, Final, Self, cast

from toolcrib._numbers import require_span, span_text
from toolcrib.approvals._answers import typed_bounds
from toolcrib.calls import (
    EACH,
    ApprovalRequest,
    Grant,
    Identity,
    StoredFields,
    TimesOfDay,
    cut,
    number_of,
    parts_of,
)
from toolcrib.errors import explain_options

_MOST_ARGUMENTS: Final = 40
_LONGEST: Final = 1_000  # characters of a field
_LONGEST_VALUE: Final = 200  # of an argument, in the description of its field
_BOUNDS: Final = 'any, <= 50, 5..50, under /srv/x, one of "a", "b"; empty for exactly'


@explain_options()
@dataclass(frozen=True, slots=True)
class GrantForm:
    """The fields that a person typed to let further calls run; a field is empty where they left it so.

    Attributes:
        bounds: The bounds as text for `Bound.parse`, by argument or by the path to a part of one (`places`); exactly
            the value of the request where it is empty.
        uses: The number of calls, with the one that is asked about.
        total: The highest sum of an argument.
        summed: The argument, or the path to a part of one, that is summed up; where it is empty, the only number.
        hours: The number of hours.
        times: The times of day, as text for `TimesOfDay.parse`.
    """

    bounds: Mapping[str, str] = field(default_factory=dict[str, str])
    uses: str = ""
    total: str = ""
    summed: str = ""
    hours: str = ""
    times: str = ""

    @staticmethod
    def fits(request: ApprovalRequest) -> bool:
        """Return whether a request can be answered by such a form: a grant for one call alone has none."""
        is_for_one = request.in_doubt or request.asked_by is not None or request.consent is not None
        return not is_for_one and request.approvals_needed == 1 and len(request.arguments) <= _MOST_ARGUMENTS

    @staticmethod
    def places(request: ApprovalRequest) -> dict[str, Any]:
        """Return the places that can have a bound, with their values: each argument, then the parts of a nested one.

        A part is named by its path, `order.amount`, or `items[*].price` for each item of a list; by `$.order.amount`
        where an argument has the whole path as its name. Where there are too many, the arguments alone are returned.
        """
        arguments, parts = request.arguments, parts_of(request.arguments, request.known_names)
        return {
            place: value
            for name in arguments
            for place, value in {name: arguments[name], **parts.get(name, {})}.items()
        }

    @classmethod
    def numbers(cls, request: ApprovalRequest) -> list[str]:
        """Return the `places` of a request that can be summed up: an argument, a part of one, or that of all items."""
        return [
            place
            for place, value in cls.places(request).items()
            if number_of(value) is not None
            or (EACH in place and isinstance(value, list) and None not in map(number_of, cast("list[Any]", value)))
        ]

    @classmethod
    def schema(cls, request: ApprovalRequest, longest: timedelta) -> dict[str, Any]:
        """Return the JSON schema of the form for a request; that of `bounds` has a property for each place.

        Args:
            longest: The longest time that a grant may hold.
        """
        require_span("GrantForm.schema", "longest", longest)
        bounds = {
            name: {
                "type": "string",
                "title": json.dumps(name) if name in request.arguments and not name.isidentifier() else name,
                "description": f"{_BOUNDS} {cut(json.dumps(value, default=str), _LONGEST_VALUE)}",
            }
            for name, value in cls.places(request).items()
        }
        most = span_text(longest.total_seconds())
        limits: dict[str, Any] = {
            "uses": {"type": "integer", "title": "For how many calls, this one too", "minimum": 1},
            "hours": {
                "type": "number",
                "title": "For how many hours",
                "description": f"At most {most}, which it is where this is empty",
            },
            "times": {
                "type": "string",
                "title": "At which times of the week",
                "description": "mon-fri 09:00-17:00 Europe/Berlin; empty for any time",
            },
        }
        if numbers := cls.numbers(request):
            limits["total"] = {"type": "number", "title": "Up to which sum of an argument", "minimum": 0}
            limits["summed"] = {"type": "string", "title": "The argument that is summed up", "enum": numbers}
        return {"type": "object", "properties": {"bounds": {"type": "object", "properties": bounds}, **limits}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the form that a client filled in; a number counts as a person types it.

        Raises:
            ValueError: It has a field that the form does not have, or `bounds` is not an object.
        """
        data = StoredFields(cls, data)
        if unknown := data.keys() - {known.name for known in fields(cls)}:
            raise ValueError(f"there is no field {min(unknown)!r:.80}")
        bounds: object = data.get("bounds", {})
        if not isinstance(bounds, Mapping):
            raise ValueError(f"bounds is {bounds!r:.80}; give an object with a text for each argument")
        typed = {name: _typed(value) for name, value in cast("Mapping[str, Any]", bounds).items()}
        return cls(typed, **{name: _typed(value) for name, value in data.items() if name != "bounds"})

    def grant(
        self, request: ApprovalRequest, by: str | Identity, message: str = "", *, longest: timedelta | None = None
    ) -> Grant:
        """Return the grant, whose `text()` the person is shown before it counts.

        Args:
            longest: The longest time that it may hold, and does where no hours are given.

        Raises:
            ValueError: A field is not what it should be, or the grant does not cover this call; the error names which.
        """
        if longest is not None:
            require_span("grant", "longest", longest)
        if too_long := [text for text in (*self._texts(), *self.bounds.values()) if len(text) > _LONGEST]:
            raise ValueError(f"{too_long[0]:.40}... is longer than {_LONGEST} characters")
        if not self.fits(request):
            raise ValueError("this request is answered for its call alone")
        text = self.uses.strip()
        if text and not (text.isascii() and text.isdigit() and len(text) <= 9):
            raise ValueError(f"the number of calls is {text!r:.40}, and has to be a whole number of 1 or more")
        limits: dict[str, Any] = {"uses": int(text) if text else None, "total": self._total(request)}
        limits["expires"] = self._expiry(longest)
        limits["times"] = TimesOfDay.parse(self.times) if self.times.strip() else None
        bounds = typed_bounds(request, self.bounds)
        limits |= {"within": bounds} if request.arguments or bounds else {"scope": "arguments"}
        return request.always(by, message=message, **limits)

    def _texts(self) -> tuple[str, ...]:
        return self.uses, self.total, self.summed, self.hours, self.times

    def _total(self, request: ApprovalRequest) -> tuple[str, Any] | None:
        if not self.total.strip():
            return None
        names = [self.summed] if self.summed else self.numbers(request)
        if len(names) != 1 or names[0] not in self.places(request):
            raise ValueError(f"a sum counts one argument: say which, of {', '.join(self.numbers(request)) or 'none'}")
        return names[0], self.total.strip()

    def _expiry(self, longest: timedelta | None) -> timedelta | None:
        text = self.hours.strip()
        hours = number_of(text) if text else None
        if text and (hours is None or not 0 < hours < 10**5):
            raise ValueError(f"the number of hours is {text!r:.40}, and has to be a number of more than 0")
        span = longest if hours is None else timedelta(hours=float(hours))
        if span is not None and longest is not None and span > longest:
            raise ValueError(f"it may hold for {span_text(longest.total_seconds())} at most, and not for {text} hours")
        return span


def _typed(value: object) -> str:
    """Return a value of a field as a person would have typed it."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)
