"""Rules of approval: groups of people, who of them has to approve certain calls, and what a rule requires."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Any, Final, TypeAlias

from toolcrib import approvals
from toolcrib._numbers import require_span, span_text
from toolcrib.calls import ANYBODY, Delegation, RequiredApprovers, amount_of, fits_amounts, now
from toolcrib.errors import SchemaError, explain_options
from toolcrib.tools import Tool, require_effect
from toolcrib.toolsets import check_names, log_names

Members: TypeAlias = Mapping[str, Sequence[str]] | Callable[[str], Iterable[str]]
"""The people of each group, or a function that returns those of a group, such as one that asks a directory."""


@explain_options()
class Groups:
    """The groups of people: from a mapping, a function, and what logins say.

    Args:
        members: The people of each group, by their ids. A function is asked anew for each call; what it raises fails
            the call.
        people: The ids of one person, by one of them: `{"ann": ["ann@example.org", "U024BE7LH"]}`. Whichever of them
            they show, they are one person.
        from_login: The groups that logins say: who is in them is known when they answer.
        delegations: Who gave their right to answer to whom, and until when: that of the groups that list them, not of
            those of a login.

    Raises:
        ValueError: An id is of two people, a right is given by one who has none, or it comes back to who gave it.
    """

    def __init__(
        self,
        members: Members | None = None,
        *,
        people: Mapping[str, Sequence[str]] | None = None,
        from_login: Sequence[str] = (),
        delegations: Sequence[Delegation] = (),
    ) -> None:
        if members is not None and not (callable(members) or isinstance(members, Mapping)):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError(f"Groups: members is {members!r:.80}; give them by group: Groups({{'finance': ['ann']}})")
        if isinstance(from_login, str):
            raise TypeError(f"Groups: from_login must be a list of groups, as in from_login=[{from_login!r}]")
        self._members: Members = dict[str, Sequence[str]]() if members is None else members
        self.from_login = tuple(from_login)
        self._ids: dict[str, tuple[str, ...]] = {}
        for name, more in (people or {}).items():
            for id in (ids := tuple(dict.fromkeys((name, *more)))):
                if id in self._ids:
                    raise ValueError(f"Groups: {id} is an id of {self._ids[id][0]}, and of {name}: give it to one")
                self._ids[id] = ids
        if isinstance(delegations, Delegation):
            raise TypeError("Groups: delegations must be a list, as in delegations=[Delegation(...)]")
        self.delegations = tuple(delegations)
        for delegation in self.delegations:
            self._require_right(delegation)
            self._refuse_circle([delegation], set())

    def ids_of(self, one: str) -> tuple[str, ...]:
        """Return all ids of the person with an id."""
        return self._ids.get(one, (one,))

    def people_in(self, group: str) -> tuple[tuple[str, ...], ...]:
        """Return the people of a group, each once, as their ids."""
        found = self._members(group) if callable(self._members) else self._members.get(group, ())
        if isinstance(found, str):
            raise TypeError(f"Groups: the members of {group} are a list of ids, as in [{found!r}]")
        return tuple(dict.fromkeys(self.ids_of(id) for id in found))

    def is_known(self, group: str) -> bool:
        """Return whether there may be such a group; a function may know any."""
        return callable(self._members) or group in self._members or group in self.from_login

    def aliases(self, delegations: Iterable[Delegation]) -> tuple[tuple[str, ...], ...]:
        """Return the ids of the people in delegations who have several."""
        found = (self.ids_of(person) for delegation in delegations for person in (delegation.person, delegation.to))
        return tuple(dict.fromkeys(ids for ids in found if len(ids) > 1))

    def _require_right(self, given: Delegation) -> None:
        """Raise ValueError for a right that is given by one who has none, as far as the groups are listed."""
        if callable(self._members):
            return
        ids = self.ids_of(given.person)
        listed = {id for people in self._members.values() for id in people}
        if not listed.union(delegation.to for delegation in self.delegations) & {*ids}:
            raise ValueError(
                f"Groups: the delegation of {given.person} to {given.to}: no group lists {given.person}, who has no "
                "right to give; write the id as the groups have it"
            )

    def _refuse_circle(self, chain: list[Delegation], seen: set[tuple[Delegation, datetime | None, datetime]]) -> None:
        """Raise ValueError where a right that is given on comes back, at a time when all of a chain hold.

        Args:
            chain: The delegations from the first one on.
            seen: The last ones of chains from it that were looked at, with the times in which all of them hold.
        """
        since = [delegation.since for delegation in chain if delegation.since is not None]
        begins, ends = max(since, default=None), min(delegation.until for delegation in chain)
        if (begins is not None and begins >= ends) or (chain[-1], begins, ends) in seen:
            return
        seen.add((chain[-1], begins, ends))
        first, last = self.ids_of(chain[0].person), self.ids_of(chain[-1].to)
        if {*first} & {*last}:
            names = [chain[0].person, *(delegation.to for delegation in chain)]
            way = "to themselves" if len(chain) == 1 else f"in a circle: {', '.join(names)}"
            raise ValueError(f"Groups: the delegation of {names[0]} to {names[1]} goes {way}; take one out")
        for delegation in self.delegations:
            if delegation.person in last and delegation not in chain:
                self._refuse_circle([*chain, delegation], seen)


_PATTERNS: Final = ("tools", "tags", "effects", "servers", "principals")


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """The verdict of a rule about one call.

    Attributes:
        required: Who has to approve it.
        asks: Whether it needs approval by this rule; else the rule says who answers where another gate asks.
        hopeless: Why nobody can approve it, in words; empty where somebody can.
    """

    required: RequiredApprovers
    asks: bool = True
    hopeless: str = ""


class CallRule(ABC):
    """A rule of approvers, as their gate asks it."""

    __slots__ = ()

    @property
    @abstractmethod
    def tool_names(self) -> Sequence[str]:
        """The names and patterns of the tools that it is about; empty for all."""

    @abstractmethod
    def check_tools(self, tools: Mapping[str, Tool[..., Any]]) -> None:
        """Check that some tool has each name, tag and argument that the rule is about; raises ToolConstraintError."""

    @abstractmethod
    def require_people(self, groups: Groups) -> None:
        """Raise ValueError where no one can meet the rule."""

    @abstractmethod
    def verdict(self, call: Any, groups: Groups) -> RuleVerdict | None:
        """Return the verdict about a call (`Call`); None without one."""

    def required_if_edited(self, call: Any, groups: Groups) -> Sequence[RequiredApprovers]:
        """Return whom it requires for other arguments of a call (`Call`) than it has now, as far as that is known.

        An edit is judged by it where a person makes it, and by `verdict` once more when the call goes on.
        """
        return ()

    @abstractmethod
    def explain(self, name: str, tool: Tool[..., Any], groups: Groups) -> str:
        """Return it in words for a tool, with its times; empty where it is not about the tool."""

    @abstractmethod
    def lines(self, groups: Groups) -> list[str]:
        """Return it in words, for all tools."""

    def refusal(self, call: Any, groups: Groups) -> str:
        """Return why one who approved a call may not, right before it begins; empty where all may."""
        return ""


@explain_options({"approvers": "of", "group": "of", "groups": "of", "people": "of"})
@dataclass(frozen=True, slots=True, kw_only=True)
class ApproverRule(CallRule):
    """A rule of the people who have to approve the calls that fit.

    A call fits that has all that is named here; of each list, one is enough.

    Attributes:
        name: The name of the rule, as people read it: `refunds over 1,000`.
        of: The group that approves, or the number of people of each: `{"finance": 2}`. One person counts for one group.
            The group `*` is all people who have an identity.
        tools: Names of tools or patterns, such as `shop_*`.
        tags: Tags of tools.
        effects: Effects of tools; a tool that names none may have each.
        servers: Servers behind tools, by URL or command, or patterns of these.
        principals: On whose behalf the call is made, by names or patterns.
        over: Arguments that are more than a number: `{"amount": 1000}`.
        up_to: Arguments that are at most a number. An argument that is below 0, missing, or not a number is taken for
            over and for up to any number.
        not_requester: Whether the approval of the principal of the call does not count. A call without a principal is
            refused then.
        asks: Whether calls that fit need approval by this rule; else it says who answers where another gate asks.
        expires: How long a request waits for its approval; then the call is refused. When None, for any time.
        remind: After what time those who were told of a request are told once more, if it is pending still.
        escalate: After what time people of which further group may approve, each for any group of `of`:
            `{timedelta(hours=1): "managers"}`. They are told then.
        instead: Whether those who could answer before no longer may, once the request is escalated.

    Raises:
        ValueError: A part of it is wrong, nobody has to approve, or a reminder or an escalation comes too late.
        TypeError: A list is a text, or a time is not a timedelta.
    """

    name: str
    of: str | Mapping[str, int] = field(default=ANYBODY)
    tools: Sequence[str] = ()
    tags: Sequence[str] = ()
    effects: Sequence[str] = ()
    servers: Sequence[str] = ()
    principals: Sequence[str] = ()
    over: Mapping[str, float | Decimal] = field(default_factory=dict[str, "float | Decimal"])
    up_to: Mapping[str, float | Decimal] = field(default_factory=dict[str, "float | Decimal"])
    not_requester: bool = True
    asks: bool = True
    expires: timedelta | None = None
    remind: timedelta | None = None
    escalate: Mapping[timedelta, str] = field(default_factory=dict[timedelta, str])
    instead: bool = False

    def __post_init__(self) -> None:
        who = f"ApproverRule {self.name!r:.80}"
        if not self.name.strip():
            raise ValueError("ApproverRule: the name is empty; it is shown to those who are asked")
        for name in _PATTERNS:
            if isinstance(getattr(self, name), str):
                raise TypeError(f"{who}: {name} is a list, as in {name}=[{getattr(self, name)!r}]")
        for name in ("over", "up_to"):
            if not isinstance(bounds := getattr(self, name), Mapping):
                raise TypeError(
                    f"{who}: {name} is {bounds!r:.80}; give it by argument, as in {name}={{'amount': 1000}}"
                )
        if not isinstance(self.of, str | Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError(
                f"{who}: of is {self.of!r:.80}; give a group, or how many people of each: of={{'finance': 1}}"
            )
        for effect in self.effects:
            require_effect(who, effect)
        if self.expires is not None:
            require_span(who, "expires", self.expires)
        self._require_times(who)
        if not self.groups or any(isinstance(n, bool) or n < 1 for n in self.groups.values()):
            raise ValueError(f"{who}: of must be a group, or a number of people from 1 on for each, and is {self.of!r}")
        for name, most in (*self.over.items(), *self.up_to.items()):
            if amount_of(most) is None:
                raise ValueError(f"{who}: the bound of `{name}` must be a number of 0 or more, and is {most!r}")

    def _require_times(self, who: str) -> None:
        """Raise ValueError or TypeError where a reminder or an escalation cannot come, or changes nothing."""
        if not isinstance(self.escalate, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            mend = 'give a group for each time, as in escalate={timedelta(hours=1): "managers"}'
            raise TypeError(f"{who}: escalate is {self.escalate!r:.80}; {mend}")
        times = {"remind": [] if self.remind is None else [self.remind], "escalate": [*self.escalate]}
        for name, spans in times.items():
            for span in spans:
                require_span(who, name, span)
                if self.expires is not None and span >= self.expires:
                    after, within = (span_text(time.total_seconds()) for time in (span, self.expires))
                    raise ValueError(
                        f"{who}: {name} is after {after}, and a request expires after {within}: let {name} come before"
                    )
        if self.instead and not self.escalate:
            raise ValueError(
                f"{who}: instead says how escalate is meant, which names no group: give it, or leave instead out"
            )
        if self.instead and self.remind is not None and self.remind >= min(self.escalate):
            raise ValueError(
                f"{who}: remind comes when those who are reminded no longer may answer: let it come before escalate"
            )
        for group in self.escalate.values():
            if {*self.groups} <= {group, ANYBODY}:
                raise ValueError(f"{who}: escalate names {group!r}, which may approve anyway; name another group")

    @property
    def groups(self) -> Mapping[str, int]:
        """The number of people of each group who have to approve."""
        return {self.of: 1} if isinstance(self.of, str) else dict(self.of)

    def check_tools(self, tools: Mapping[str, Tool[..., Any]]) -> None:
        """Check that the tools have the tags, servers and arguments that the rule is about: else it fits no call.

        Raises:
            ToolConstraintError: None of them has one.
        """
        who = f"ApproverRule {self.name!r}"
        about = [tool for name, tool in tools.items() if _is_one(self.tools, [name])]
        check_names(who, self.tags, {tag for tool in tools.values() for tag in tool.options.tags}, kind="tag")
        servers = {server for tool in tools.values() for server in servers_of(tool)}
        log_names(who, self.servers, servers, kind="server")
        parameters = [parameters_of(tool) for tool in about]
        known = {name for names in parameters if names is not None for name in names}
        if about and None not in parameters:
            check_names(who, (*self.over, *self.up_to), known, kind="argument")

    @property
    def tool_names(self) -> Sequence[str]:
        return self.tools

    def require_people(self, groups: Groups) -> None:
        named = {"of": self.groups, "escalate": self.escalate.values()}
        unknown = [
            (name, group) for name in named for group in named[name] if group != ANYBODY and not groups.is_known(group)
        ]
        if unknown:
            name, group = unknown[0]
            raise ValueError(
                f"ApproverRule {self.name!r}: {name}: there is no group {group!r}; give it members or from_login"
            )
        required = replace(self._required(groups, (), now()), delegations=())  # which end
        if not approvals.can_be_met(required, now()):
            raise ValueError(f"ApproverRule {self.name!r}: its groups have too few people for it: {required.text()}")

    def verdict(self, call: Any, groups: Groups) -> RuleVerdict | None:
        if not self.fits(call):
            return None
        required = self._required(groups, requester_ids(call, groups), asked_at(call))
        return RuleVerdict(required, self.asks, self._hopeless(required))

    def required_if_edited(self, call: Any, groups: Groups) -> Sequence[RequiredApprovers]:
        if self.fits(call) or not self._fits_edited(call):
            return ()
        over, up_to = (
            {name: f"{amount_of(most):f}" for name, most in bounds.items()} for bounds in (self.over, self.up_to)
        )
        required = self._required(groups, requester_ids(call, groups), asked_at(call))
        return (replace(required, over=over, up_to=up_to),)

    def explain(self, name: str, tool: Tool[..., Any], groups: Groups) -> str:
        return self._text(groups) if self.fits_tool(name, tool) else ""

    def lines(self, groups: Groups) -> list[str]:
        about = [f"{name} {', '.join(patterns)}" for name in _PATTERNS if (patterns := getattr(self, name))]
        about += [f"{name} over {_text_of(most)}" for name, most in self.over.items()]
        about += [f"{name} up to {_text_of(most)}" for name, most in self.up_to.items()]
        about += ["not the one who asks"] if self.not_requester else []
        about += [] if self.asks else ["asks about no call by itself"]
        return ["; ".join([self._text(groups), *about])]

    def _text(self, groups: Groups) -> str:
        remind = "" if self.remind is None else f"; a reminder after {span_text(self.remind.total_seconds())}"
        return f"{self._required(groups, (), now()).text()}{remind}"

    def _hopeless(self, required: RequiredApprovers) -> str:
        if self.not_requester and not required.excluded:
            return f"{self.name}: whoever asks may not approve it, and the run has no principal; give it one"
        return "" if approvals.can_be_met(required, now()) else f"nobody can approve this. {required.text()}"

    def _required(self, groups: Groups, requester: tuple[str, ...], asked_at: datetime) -> RequiredApprovers:
        named = dict.fromkeys((*self.groups, *self.escalate.values()))
        delegations = tuple(delegation for delegation in groups.delegations if delegation.until > asked_at)
        return RequiredApprovers(
            self.name,
            self.groups,
            {group: groups.people_in(group) for group in named if group != ANYBODY},
            tuple(group for group in named if group in groups.from_login),
            requester if self.not_requester else (),
            None if self.expires is None else self.expires.total_seconds(),
            None if self.remind is None else self.remind.total_seconds(),
            tuple((after.total_seconds(), group) for after, group in sorted(self.escalate.items())),
            delegations,
            groups.aliases(delegations),
            self.instead,
        )

    def fits_tool(self, name: str, tool: Tool[..., Any]) -> bool:
        """Return whether calls of a tool (`Tool`) may be ones that the rule is about."""
        options = tool.options
        return (
            _is_one(self.tools, [name])
            and _is_one(self.tags, options.tags)
            and (not self.effects or options.effect is None or options.effect in self.effects)
            and (not self.servers or _is_one(self.servers, servers_of(tool)))
        )

    def fits(self, call: Any) -> bool:
        """Return whether a call (`Call`) is one that the rule is about."""
        return self._fits_edited(call) and fits_amounts(call.arguments, self.over, self.up_to)

    def _fits_edited(self, call: Any) -> bool:
        """Return whether a call (`Call`) is one that the rule is about, or is once its arguments are edited."""
        return (
            self.fits_tool(call.name, call.tool)
            and _is_one(self.principals, [call.run.principal or ""])
            and all(_takes(call, name) for name in (*self.over, *self.up_to))
        )


def asked_at(call: Any) -> datetime:
    """Return when a call (`Call`) asked for its approval: now where it has not."""
    return now() if call.request is None else call.request.created_at


def requester_ids(call: Any, groups: Groups) -> tuple[str, ...]:
    """Return the ids of the one who asks for a call (`Call`): its principal's, its token's, and those known before."""
    if call.run.principal is None:
        return ()
    access, required = call.run.channel.access, () if call.request is None else call.request.required
    known = (call.run.principal, *(() if access is None else access.ids), *(id for r in required for id in r.excluded))
    return tuple(dict.fromkeys(id for known_id in known for id in groups.ids_of(known_id)))


def _is_one(patterns: Sequence[str], names: Iterable[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def servers_of(tool: Tool[..., Any]) -> Iterable[str]:
    """Return by what the server behind a tool is known: its URL, its command line, or the name of an object."""
    identity: Mapping[str, Any] = (None if tool.source is None else tool.source.get_identity()) or {}
    for value in (identity.get(name) for name in ("url", "command", "object")):
        if value is not None:
            yield value if isinstance(value, str) else " ".join(map(str, value))


def _text_of(bound: float | Decimal) -> str:
    return str(bound).removesuffix(".0")


def _takes(call: Any, name: str) -> bool:
    """Return whether a call has an argument, or could have had it."""
    names = None if name in call.arguments else parameters_of(call.tool)
    return names is None or name in names


def parameters_of(tool: Tool[..., Any]) -> Mapping[str, Any] | None:
    """Return the schemas of the arguments that a tool takes, by name; None where nothing is known of them."""
    try:
        return tool.spec.parameters.get("properties", {})
    except SchemaError:
        return None
