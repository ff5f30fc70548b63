"""Answers to approval requests: grants with their scope and limits, results of calls in doubt, and denials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal, Protocol, TypeAlias, get_args

from toolcrib._numbers import count_text
from toolcrib._short_repr import ShortRepr
from toolcrib.calls._bound_parts import ROOT, amounts_at, path_text
from toolcrib.calls._bounds import Bound, GrantUse, amount_of, bounds_problem, require_bounds
from toolcrib.calls._diff import label, printable, shown
from toolcrib.calls._identity import Identity
from toolcrib.calls._json import lenient, now, parse_time
from toolcrib.calls._local_times import local_time
from toolcrib.calls._media import revived
from toolcrib.calls._stored import StoredFields, drop_unset, versioned
from toolcrib.calls._times_of_day import TimesOfDay
from toolcrib.errors import explain_options

GrantScope: TypeAlias = Literal["tool", "arguments", "values", "within"]
"""The scope of a standing grant; see `Grant`."""

_SCOPES: Final[frozenset[str]] = frozenset(("once", *get_args(GrantScope)))


class HasArguments(Protocol):
    """An approval request, as a grant looks at it."""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The final arguments of the call."""
        ...

    @property
    def known_names(self) -> frozenset[str]:
        """The names of the arguments that its tool takes, as far as they are known."""
        ...


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a call in doubt, as its approver states it."""

    value: Any


@explain_options(
    missing="`request.grant('ann')` makes the grant of a request, and `request.always('ann')` a standing one."
)
@dataclass(frozen=True, slots=True, repr=False)
class Grant(ShortRepr):
    """An approval, and its scope.

    Attributes:
        tool: The tool it is for.
        call_id: The one call it is for; None for a standing grant.
        digest: The final arguments it is for; None for any (a standing grant for the tool).
        by: Who said yes.
        override_args: Arguments the person put in place of the model's; they are validated like the model's.
        user_input: The person's text; reaches the tool as `ctx.user_input`.
        scope: How far it reaches: `once`, `values` (this tool with these values of others), `arguments` (this tool with
            these arguments), `within` (this tool with arguments within bounds) or `tool`. One that reaches further
            than once is a standing grant.
        expires_at: From then on it does not count; with a time zone.
        principal: On whose behalf it may be used. A standing grant serves no other; `"*"` means any.
        definition: The definition of the tool, as in its request; None for any definition.
        done: The result of a call in doubt: it was done, and its tool is not executed again.
        also: The others who approved the same, where a call needs several approvers.
        values: The marks of the values of others that a grant for `values` or `within` is for; see
            `ApprovalRequest.origins`.
        within: The bound of each argument, by name; an argument without a bound may not be given.
        uses: How many calls may begin by it; any number when None.
        total: An argument, or the path to a part of one, and up to which sum of it calls may begin.
        times: The times of the week at which calls may begin; any time when None.
        identity: Who said yes, as a login, a token or the host shows it; None for a name alone.
        identities: Those of the others who approved the same.

    Raises:
        TypeError: `override_args` is not a mapping.
        ValueError: `expires_at` has no time zone, a standing grant carries `override_args` or `user_input`, or one for
            `values` has none.
    """

    tool: str
    by: str = "host"
    call_id: str | None = None
    digest: str | None = None
    request_id: str | None = None
    message: str = ""
    override_args: Mapping[str, Any] | None = field(default=None, repr=False)
    user_input: Any = field(default=None, repr=False)
    scope: Literal["once"] | GrantScope = "once"
    at: datetime = field(default_factory=now)
    expires_at: datetime | None = None
    principal: str | None = None
    definition: str | None = None
    done: Done | None = None
    also: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    within: Mapping[str, Bound] = field(default_factory=dict[str, Bound])
    uses: int | None = None
    total: tuple[str, Decimal] | None = None
    identity: Identity | None = None
    identities: tuple[Identity, ...] = ()
    times: TimesOfDay | None = None

    def __post_init__(self) -> None:
        if self.times is not None and not self.standing:
            raise ValueError("`times` belongs to a standing grant: `request.always(...)` makes one")
        if self.expires_at is not None and self.expires_at.tzinfo is None:
            raise ValueError(f"expires_at has no time zone: write datetime.now(UTC) + ..., not {self.expires_at!r}")
        if self.standing and not (self.override_args is None and self.user_input is None and self.done is None):
            raise ValueError("override_args, user_input and done are for one call; grant them with scope='once'")
        if not isinstance(self.override_args, Mapping | None):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError(
                f"a grant for `{self.tool}`: override_args is {self.override_args!r:.80}; give arguments "
                "by name, as in override_args={'amount': 5}"
            )
        require_bounds(self.within)
        if self.scope == "values" and not self.values:
            raise ValueError("a grant for values has none; `request.always()` makes one, where values are asked about")
        is_limited = self.uses is not None or self.total is not None
        if (self.scope == "within") != bool(self.within) or (is_limited and not (self.standing and self.request_id)):
            raise ValueError("`within`, `uses` and `total` belong to a standing grant: `request.always(...)` makes one")
        if self.uses is not None and (type(self.uses) is not int or self.uses < 1):
            raise ValueError(f"uses must be a number of calls, 1 or more, and is {self.uses!r}")

    @property
    def standing(self) -> bool:
        """True if the grant holds for more than one call."""
        return self.scope != "once"

    @property
    def covers_nothing(self) -> bool:
        """True if the grant was stored with a scope that does not exist here."""
        return self.scope not in _SCOPES

    @property
    def is_limited(self) -> bool:
        """True if the grant counts the calls that begin by it."""
        return self.uses is not None or self.total is not None

    def limit_reached(self, request: HasArguments, use: GrantUse) -> str:
        """Return why it does not cover the arguments of a call, after so much use; empty where it does."""
        if self.scope == "within" and (why := bounds_problem(self.within, request.arguments)):
            return why
        if self.uses is not None and use.calls >= self.uses:
            return f"it was given for {count_text(self.uses, 'call')}, and covers no more"
        if self.total is None:
            return ""
        name, most = self.total
        values = amounts_at(name, request.arguments, request.known_names)
        amounts, place = [amount_of(value) for value in values], name.removeprefix(ROOT)
        if None in amounts:
            value = shown(values[amounts.index(None)])
            return f"it counts `{place}`, which is {value}, and no number of 0 or more"
        spent = use.spent + sum(filter(None, amounts))
        return "" if spent <= most else f"`{place}` would come to {spent} in all, and it was given for {most}"

    def time_problem(self, at: datetime) -> str:
        """Return why it does not count at a time, in words for a person; empty where it does."""
        if self.expires_at is not None and self.expires_at <= at:
            return f"it expired at {self.expires_at.isoformat(timespec='seconds')}; ask again"
        if self.times is None or self.times.covers(at):
            return ""
        return f"it was given for calls {self.times.text()}, and it is {local_time(at, self.times.zone)}; ask again"

    def used_by(self, request: HasArguments, use: GrantUse, at: datetime | None = None) -> GrantUse:
        """Return its use with one more call, which it covers, and which begins at a time."""
        values = () if self.total is None else amounts_at(self.total[0], request.arguments, request.known_names)
        return GrantUse(use.calls + 1, use.spent + sum(filter(None, map(amount_of, values))), at)

    def text(self) -> str:
        """Return in words what it covers: `refund: order any, amount up to 50; until ...; at most 10 times`."""
        of = {
            "once": "this call",
            "tool": "any arguments",
            "arguments": "exactly these arguments",
            "values": "these values of others, with any other arguments",
            "within": ", ".join(phrase for name, bound in self.within.items() for phrase in bound.phrases(label(name))),
        }.get(self.scope, "nothing, as its scope is not known here")
        parts = [f"{self.tool}: {of}"]
        if self.scope == "within" and self.values:
            parts.append("of values of others, these alone")
        if self.standing:
            whose = "every principal" if self.principal == "*" else printable(self.principal or "no principal")
            parts.append(f"on behalf of {whose}")
        if self.expires_at is not None:
            parts.append(f"until {local_time(self.expires_at, None if self.times is None else self.times.zone)}")
        if self.times is not None:
            parts.append(self.times.text())
        if self.uses is not None:
            parts.append(f"at most {count_text(self.uses, 'time')}")
        if self.total is not None:
            parts.append(f"{self.total[1]} of {path_text(self.total[0])} in all")
        return "; ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the grant as JSON shapes."""
        data: dict[str, Any] = {
            "kind": "grant",
            "tool": self.tool,
            "approver": self.by,
            "call_id": self.call_id,
            "digest": self.digest,
            "request_id": self.request_id,
            "message": self.message,
            "override_args": None if self.override_args is None else dict(self.override_args),
            "user_input": lenient(self.user_input),
            "scope": self.scope,
            "at": self.at.isoformat(),
            "expires_at": self.expires_at.isoformat() if self.expires_at else None,
            "principal": self.principal,
            **drop_unset(
                definition=self.definition,
                done=None if self.done is None else {"value": lenient(self.done.value, media=True)},
                also=list(self.also),
                values=list(self.values),
                within={name: bound.to_dict() for name, bound in self.within.items()} or None,
                uses=self.uses,
                total=None if self.total is None else [self.total[0], str(self.total[1])],
                identity=None if self.identity is None else self.identity.to_dict(),
                identities=[identity.to_dict() for identity in self.identities],
                times=None if self.times is None else self.times.typed(),
            ),
        }
        # in the form that has its fields, and no later one: workers of the version before use it, and it can be revoked
        if any(bound.is_nested for bound in self.within.values()):
            return versioned("Grant", data)
        if any(approver is not None and approver.aliases for approver in (self.identity, *self.identities)):
            return {**data, "version": 5}
        if self.times is not None:
            return {**data, "version": 4}
        if self.identity is not None or self.identities:
            return {**data, "version": 3}
        return {**data, "version": 2} if self.within or self.is_limited else data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Grant:
        """Return the grant that `to_dict` described; raises ValueError when a field is missing."""
        values = StoredFields(cls, data)
        values.pop("kind", None)
        values["by"] = values.pop("approver", "host")
        values["at"], values["expires_at"] = parse_time(values["at"]), parse_time(values.get("expires_at"))
        values["also"], values["values"] = tuple(values.get("also", ())), tuple(values.get("values", ()))
        values["done"] = None if values.get("done") is None else Done(revived(values["done"]["value"]))
        values["within"] = {name: Bound.from_dict(bound) for name, bound in values.get("within", {}).items()}
        values["identities"] = tuple(Identity.from_dict(identity) for identity in values.get("identities", ()))
        identity, total, times = values.get("identity"), values.get("total"), values.get("times")
        values["times"] = None if times is None else TimesOfDay.parse(times)
        values["identity"] = None if identity is None else Identity.from_dict(identity)
        values["total"] = None if total is None else (total[0], amount_limit(*total))
        scope = values.get("scope", "once")
        if scope in _SCOPES:
            return cls(**values)
        unlimited = dict.fromkeys(("scope", "within", "uses", "total", "times"))
        grant = cls(**{name: value for name, value in values.items() if name not in unlimited})
        object.__setattr__(grant, "scope", scope)  # so that it is listed, and can be revoked: it covers nothing
        return grant


def amount_limit(name: str, most: Any) -> Decimal:
    """Return the most that an argument may come to; raises ValueError for what is not a number of 0 or more."""
    limit = amount_of(most)
    if limit is None:
        raise ValueError(f"the total of `{name}` must be a number of 0 or more, and is {most!r:.80}")
    return limit


@dataclass(frozen=True, slots=True, repr=False)
class Denial(ShortRepr):
    """A no: the model is shown `message` as what the person said."""

    tool: str
    by: str = "host"
    call_id: str | None = None
    request_id: str | None = None
    message: str = ""
    at: datetime = field(default_factory=now)

    def to_dict(self) -> dict[str, Any]:
        """Return the denial as JSON shapes."""
        data: dict[str, Any] = {
            "kind": "denial",
            "tool": self.tool,
            "approver": self.by,
            "call_id": self.call_id,
            "request_id": self.request_id,
            "message": self.message,
            "at": self.at.isoformat(),
        }
        return versioned("Denial", data)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Denial:
        """Return the denial that `to_dict` described; raises ValueError when a field is missing."""
        values = StoredFields(cls, data)
        values.pop("kind", None)
        values["by"] = values.pop("approver", "host")
        values["at"] = parse_time(values["at"])
        return cls(**values)
