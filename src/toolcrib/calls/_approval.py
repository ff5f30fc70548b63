"""Approval requests: the questions to a person about a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Never, cast
from uuid import NAMESPACE_URL, uuid5

from toolcrib._numbers import count_text, require_span
from toolcrib._short_repr import ShortRepr
from toolcrib.calls._bound_parts import ROOT, bound_with_parts, steps_to
from toolcrib.calls._bounds import Bound, GrantUse, require_bounds
from toolcrib.calls._copies import read_only
from toolcrib.calls._diff import differences, label, printable, shown
from toolcrib.calls._doubt import IN_DOUBT
from toolcrib.calls._grant import Denial, Done, Grant, GrantScope, amount_limit
from toolcrib.calls._identity import APPROVER_RULES, Identity, RequiredApprovers
from toolcrib.calls._json import lenient, now, parse_time
from toolcrib.calls._local_times import local_time
from toolcrib.calls._stored import StoredFields, drop_unset, versioned
from toolcrib.calls._times_of_day import TimesOfDay
from toolcrib.errors import explain_missing, explain_options, refuse_unknown_options

CHANGED_ON_SERVER: Final = "changed on the server"
"""The name, in the metadata of a request, of the difference between a tool as it was accepted and as it is now."""

_OF_ALWAYS = ("by", "expires", "message", "scope", "times", "total", "uses", "within")
_OF_OTHERS = {  # what other frameworks, or an earlier version, call an option of a grant
    "approver": "by",
    "approved_by": "by",
    **dict.fromkeys(("args", "arguments", "changes", "edit", "edited", "edited_args"), "override_args"),
    **dict.fromkeys(("edits", "input", "modified_args", "new_args"), "override_args"),
    "reason": "message",
}


@explain_options()
@dataclass(frozen=True, slots=True)
class Consent:
    """A step that a principal has to take before a tool can act for them elsewhere; no approval replaces it.

    Attributes:
        reason: The missing step, as the principal and the readers of the list of requests see it.
        url: The page where they do it; empty without one.
        principal: The principal who has to do it.
        server: The server that it is for.
    """

    reason: str
    url: str = field(default="", repr=False)
    principal: str = ""
    server: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return it as JSON shapes."""
        return {"reason": self.reason, "url": self.url, "principal": self.principal, "server": self.server}


@explain_missing(
    {
        **dict.fromkeys(
            ("allow", "approve", "accept"), "`request.grant(by)`, with `override_args={...}` for other arguments"
        ),
        **dict.fromkeys(("edit", "modify"), "`request.grant(by, override_args={...})`"),
        **dict.fromkeys(("reject", "decline"), "`request.deny(by=..., message=...)`"),
    }
)
@dataclass(frozen=True, slots=True, repr=False)
class ApprovalRequest(ShortRepr):
    """A question to a person about a call, with secrets already hidden.

    Attributes:
        id: Names this question; a call that is asked again has another.
        arguments: The final arguments, which a grant is bound to by `digest`. They cannot be changed in place; others
            are given with the grant, as `override_args`.
        requested: The arguments as the model sent them; they differ from `arguments` when a hook edited them.
        digest: SHA-256 over the tool's name and the final arguments, in hex.
        reason: Why approval is needed.
        metadata: Further facts that the tool or a hook adds for the person to see.
        parameters: The JSON schema of the arguments, for a form in which a person edits them, or None.
        definition: A digest of what the tool says that it is and takes, and one of the server behind it; None for a
            tool without a schema. A grant holds for this definition alone.
        in_doubt: Whether the call was begun before and is not known to have ended: it may have been done.
        follows: Of a call in doubt, the request by whose answer it began, where that is known.
        returns: Of a call in doubt, the JSON schema of its result, which `done` has to fit; None when nothing is known.
        approvals_needed: How many people have to approve it; each approves it as it is.
        approved_by: Who has approved it so far, while that is not enough.
        approved_as: Their identities, as far as they showed one.
        required: Who has to approve it, by each rule that holds for it (`toolcrib.approvers`).
        required_if_edited: The rules that are about it once its arguments are edited.
        requester_ids: The ids of the one who asks besides `principal`, where the tool needs several people; with it,
            where rules need several as well.
        agent: The agent whose turn makes the call; None for another.
        conversation_id: The conversation that the call is part of, as its run says.
        origins: Where the values come from that are asked about, each with `path`, `value`, `why`, the `kind` of its
            origin, and the `mark` that a standing grant for these values holds for. A standing grant that was given for
            the tool does not answer such a request.
        values_alone: Whether nothing but these values needs approval.
        asked_by: The server, or the tool itself, that asks for `arguments`, which are fields with their defaults, while
            the call runs; None where the call itself is asked about. A grant approves no call: what it has as
            `override_args`, or else as `user_input`, is what the person filled in.
        consent: The step that the principal has to take first; None for a question that an approver can answer. A grant
            then lets nothing happen that the principal has not consented to, and answers no question about approval.
        replaces: The id of the request about the same call that this one replaces, as the tool has changed since.
    """

    id: str
    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    digest: str
    requested: Any = None
    reason: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    created_at: datetime = field(default_factory=now)
    run_id: str = ""
    principal: str | None = None
    parameters: Mapping[str, Any] | None = field(default=None, repr=False)
    definition: str | None = field(default=None, repr=False)
    in_doubt: bool = False
    returns: Mapping[str, Any] | None = None
    approvals_needed: int = 1
    approved_by: tuple[str, ...] = ()
    agent: str | None = None
    conversation_id: str | None = None
    origins: tuple[Mapping[str, str], ...] = ()
    values_alone: bool = False
    asked_by: str | None = None
    consent: Consent | None = None
    follows: str | None = None
    replaces: str | None = None
    approved_as: tuple[Identity, ...] = ()
    required: tuple[RequiredApprovers, ...] = ()
    required_if_edited: tuple[RequiredApprovers, ...] = ()
    requester_ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("arguments", "requested"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
        rule_keys = [name for name in self.metadata if str(name).startswith(APPROVER_RULES)]
        if not rule_keys:
            return
        rules = [RequiredApprovers.from_dict(rule) for key in rule_keys for rule in self.metadata[key]]
        required = [*self.required, *(rule for rule in rules if not (rule.over or rule.up_to))]
        if_edited = (*self.required_if_edited, *(rule for rule in rules if rule.over or rule.up_to))
        metadata = {name: value for name, value in self.metadata.items() if name not in rule_keys}
        people = max([self.approvals_needed, *(rule.people for rule in required)])
        by_rules: dict[str, Any] = {"required": tuple(required), "required_if_edited": if_edited}
        if self.approvals_needed > 1 and self.principal is not None:  # of the tool, whose approvers are others
            by_rules["requester_ids"] = tuple(dict.fromkeys((self.principal, *self.requester_ids)))
        for name, value in {**by_rules, "metadata": metadata, "approvals_needed": people}.items():
            object.__setattr__(self, name, value)

    @property
    def expires_at(self) -> datetime | None:
        """The time at which it is refused unless it is approved before, by the first of its rules; None for never.

        A call in doubt, a consent, and a question during a call wait for their answers.
        """
        rule = self.expires_by
        return None if rule is None else self.created_at + timedelta(seconds=rule.expires_after or 0)

    @property
    def known_names(self) -> frozenset[str]:
        """The names of the arguments that its tool takes, as far as they are known."""
        return frozenset(self.arguments).union((self.parameters or {}).get("properties", {}))

    @property
    def expires_by(self) -> RequiredApprovers | None:
        """The rule by which it expires; None where it does not."""
        if self.in_doubt or self.asked_by is not None or self.consent is not None:
            return None
        rules = [rule for rule in self.required if rule.expires_after is not None]
        return min(rules, key=lambda rule: rule.expires_after or 0, default=None)

    @property
    def remind_at(self) -> datetime | None:
        """The time at which those who were told of it are told again, by the first of its rules; None for never."""
        spans = [rule.remind_after for rule in self._rules_of_time if rule.remind_after is not None]
        return self.created_at + timedelta(seconds=min(spans)) if spans else None

    @property
    def escalations(self) -> tuple[tuple[datetime, str], ...]:
        """The times from which people of further groups may answer, too, each with its group, in order."""
        found = {(after, group) for rule in self._rules_of_time for after, group in rule.escalation}
        return tuple((self.created_at + timedelta(seconds=after), group) for after, group in sorted(found))

    @property
    def _rules_of_time(self) -> tuple[RequiredApprovers, ...]:
        """The rules by which it is reminded of and escalated: none for a consent and a question during a call."""
        return self.required if self.asked_by is None and self.consent is None else ()

    @property
    def tool_has_changed(self) -> bool:
        """True if the tool is not as it was when a person was asked, or had accepted it; or is new on its server."""
        return self.replaces is not None or CHANGED_ON_SERVER in self.metadata

    # --- the requests before and after it

    @property
    def begun_by(self) -> str | None:
        """The request by whose answer its call began; this one, unless its call is in doubt."""
        return self.follows if self.in_doubt else self.id

    def asks_what(self, before: ApprovalRequest) -> bool:
        """Return whether an answer to an earlier request answers this one."""
        bound = before.digest, before.principal, before.definition, before.in_doubt
        return bound == (self.digest, self.principal, self.definition, self.in_doubt)

    def in_place_of(self, before: ApprovalRequest) -> ApprovalRequest:
        """Return this request, about a tool that has changed: the same however often its call comes back."""
        changed = f"toolcrib:changed:{before.id}:{self.definition}:{self.digest}:{self.principal}"
        why = "the tool, or the server behind it, has changed since this was asked before"
        reason = "; ".join(part for part in (self.reason, why) if part)
        return replace(self, id=f"ask_{uuid5(NAMESPACE_URL, changed).hex}", reason=reason, replaces=before.id)

    def next_in_doubt(self, digest: str, principal: str | None, definition: str | None) -> ApprovalRequest:
        """Return the next request of its call, which is in doubt: equal in each process with the same tool."""
        id = f"ask_{uuid5(NAMESPACE_URL, f'toolcrib:in-doubt:{self.id}:{definition}').hex}"
        request = replace(self, id=id, created_at=now(), in_doubt=True, follows=self.id)
        return replace(request, digest=digest, principal=principal, definition=definition)

    @property
    def title(self) -> str:
        """The question in a few words: that the tool needs approval, or that it may have run already."""
        if self.asked_by is not None:
            who = "it" if self.asked_by == self.tool else f"the server {printable(self.asked_by)}"
            return f"during {self.tool}, {who} asks"
        if self.in_doubt:
            return f"{self.tool} {IN_DOUBT}"
        return f"{self.tool} needs " + ("approval" if self.consent is None else "the principal's consent")

    def grant(self, by: str | Identity = "host", **options: Any) -> Grant:
        """Return a `Grant` for this request.

        Args:
            by: Who says yes, for the record; an `Identity` where a rule says who may. The record says whom they stand
                for, and whether they may by escalation, where the rule needs that.
            options: The other fields of `Grant`: `override_args` for arguments in place of the model's, `user_input`,
                `message`, `expires_at`, `also` and others.

        Raises:
            TypeError: An option is not a field of `Grant`.
        """
        refuse_unknown_options("a grant", options, Grant.__dataclass_fields__, _OF_OTHERS)
        if isinstance(by, Identity):
            by = self.answered_by(by, options.get("at"))
        elif not (isinstance(cast("object", by), str) and by.strip()):
            raise TypeError(
                f"a grant: by is {by!r:.80}; give the name of the person, as in grant('ann'); other arguments for the "
                "call are grant('ann', override_args={...})"
            )
        bound: dict[str, Any] = {
            "call_id": self.call_id,
            "digest": self.digest,
            "request_id": self.id,
            "principal": self.principal,
            "definition": self.definition,
            "values": self._marks() if options.get("scope") == "values" else (),
            **options,
        }
        if isinstance(by, Identity):
            bound.setdefault("identity", by)
        return Grant(tool=self.tool, by=str(by), **bound)

    def answered_by(self, who: Identity, at: datetime | None = None) -> Identity:
        """Return an identity that says by what it counts for the rules of this request: for whom, and by escalation."""
        for rule in self.required:
            who = rule.claimed(who, self.created_at, at or now())
        return who

    def _marks(self) -> tuple[str, ...]:
        return tuple(mark for origin in self.origins if (mark := origin.get("mark")))

    def done(self, result: Any, by: str | Identity = "host", message: str = "", **unknown: Never) -> Grant:
        """Return a `Grant` that says what a call in doubt came to: its tool is not executed, and has this result.

        The result has to be of the type that the tool declares: what takes the grant raises InvalidOutput for another,
        and the request stays pending.
        """
        refuse_unknown_options("done()", unknown, ("by", "message"), _OF_OTHERS)
        return self.grant(by, message=message, done=Done(result))

    def always(
        self,
        by: str | Identity = "host",
        *,
        scope: GrantScope | None = None,
        expires: datetime | timedelta | None = None,
        message: str = "",
        within: Mapping[str, Bound] | None = None,
        uses: int | None = None,
        total: tuple[str, float | Decimal] | None = None,
        times: TimesOfDay | None = None,
        **unknown: Never,
    ) -> Grant:
        """Return a `Grant` that holds for further calls, on behalf of the same principal.

        Args:
            by: Who says so.
            scope: This `tool` with any arguments, or this tool with exactly these `arguments`, or the `values` of
                others that the request asks about, from where they come, with any other arguments. When None,
                the values where it asks about some, else the tool.
            expires: When it stops to count, or how long from now; never when None.
            message: Goes into the record.
            within: The bound of each argument, by name, or of a part of a nested one, by its path: `order.amount`,
                `items[*].price` for each item. Of all others exactly what the request has, and for an item what one of
                its items has. `grant.text()` says it in words. The scope is `within`.
            uses: How many calls may begin by it, this one among them; any number when None.
            total: An argument that is a number, or a part of one by its path (`order.amount`, `items[*].price` for the
                sum of all items), and up to which sum of it calls may begin, in all.
            times: The times of the week at which it counts; any time when None.

        Raises:
            ValueError: The scope is `values`, and it asks about none; a server asks it, during a call; or `within`,
                `uses`, `total` and `times` do not cover this call itself.
            TypeError: `within` has something else than a `Bound`.
        """
        refuse_unknown_options("always()", unknown, _OF_ALWAYS, _OF_OTHERS)
        if self.asked_by is not None:
            raise ValueError(f"{self.asked_by} asks this during one call; it can be answered once, and not for good")
        if not isinstance(expires, datetime | None):
            require_span("always", "expires", expires)
        until = now() + expires if isinstance(expires, timedelta) else expires
        if not isinstance(total, tuple | list | None) or (total is not None and len(total) != 2):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError(
                f"always(): total is {total!r:.80}; give an argument and a sum, as in total=('amount', 100)"
            )
        limits: dict[str, Any] = {"uses": uses, "total": None, "times": times}
        if total is not None:
            path, limit = str(total[0]), amount_limit(*total)
            is_part = len(steps_to(path, self.known_names)) > 1
            limits["total"] = f"{ROOT}{path.removeprefix(ROOT)}" if is_part else path, limit
        if within is not None:
            limits |= {"within": self._bounds(within), "values": self._marks()}
            scope = "within"
        if scope is None:
            scope = "tool" if not self.origins else "values" if len(self._marks()) == len(self.origins) else "arguments"
        grant = self.grant(by, scope=scope, expires_at=until, message=message, **limits)
        if why := grant.limit_reached(self, GrantUse()) or grant.time_problem(now()):
            raise ValueError(f"it does not cover this call: {why}")
        return grant

    def _bounds(self, within: Mapping[str, Bound]) -> dict[str, Bound]:
        """Return a bound for each argument, for one that is not named the value that it has."""
        if not isinstance(within, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError(f"within is {within!r:.80}; give bounds by argument, as in within={{'order': Bound.any()}}")
        known = self.known_names
        require_bounds(within)
        named: dict[str, list[tuple[Sequence[str], Bound]]] = {}
        for path, bound in within.items():
            name, *steps = steps_to(path, known)
            if name not in known:
                there = ", ".join(sorted(known)) or "none"
                raise ValueError(f"`{path}` is not an argument of {self.tool}; there are {there}")
            named.setdefault(name, []).append((steps, bound))
        values = {name: [self.arguments[name]] if name in self.arguments else [] for name in named}
        exactly = {name: Bound.exactly(value) for name, value in self.arguments.items()}
        bounds = {name: bound_with_parts(name, values[name], parts) for name, parts in named.items()}
        return exactly | {name: replace(bound, optional=not values[name]) for name, bound in bounds.items()}

    def deny(self, *unnamed: Never, by: str | Identity = "host", message: str = "", **unknown: Never) -> Denial:
        """Return a `Denial` of this request.

        Args:
            unnamed: Nothing: a text alone might be the person or the message.
            by: The person or program that denies it, for the record.
            message: The reason that the model is shown.

        Raises:
            TypeError: A value has no name, or is not one of these.
        """
        if unnamed:
            raise TypeError(
                f"deny() does not know whether {unnamed[0]!r:.60} is the person or the message: write "
                "deny(by='ann', message='too much')"
            )
        refuse_unknown_options("deny()", unknown, ("by", "message"), _OF_OTHERS)
        if not isinstance(message, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError(f"deny(): message is {message!r:.80}; give a text, which the model is shown")
        who = str(by)
        return Denial(tool=self.tool, call_id=self.call_id, request_id=self.id, by=who, message=message)

    def changes(self) -> list[str]:
        """Return a line for each place where the arguments differ from what the model sent: `path: before -> after`."""
        asked: Any = self.requested
        return list(differences(asked, self.arguments)) if isinstance(asked, Mapping) else []

    def text(self) -> str:
        """Return the request as text for a person: the tool, the reason, the final arguments, and the changes.

        Text of the model's cannot pass for a line of the question: what would break or rearrange a line is escaped.
        """
        lines = [self.title + (f": {printable(self.reason)}" if self.reason else "")]
        lines += [f"  link: {printable(self.consent.url)}"] if self.consent is not None and self.consent.url else []
        lines += [f"  {label(name)} = {shown(value)}" for name, value in self.arguments.items()]
        changed = self.changes()
        if changed:
            lines.append("changed since the model asked:")
            lines += [f"  {line}" for line in changed]
        if self.approvals_needed > 1:
            so_far = f"; approved by {', '.join(map(printable, self.approved_by))}" if self.approved_by else ""
            lines.append(f"it needs {count_text(self.approvals_needed, 'approver')}{so_far}")
        if self.expires_at is not None:
            lines.append(f"it is refused at {local_time(self.expires_at)} unless it is approved before")
        instead = {group for rule in self.required if rule.instead for _, group in rule.escalation}
        lines += [
            f"from {local_time(at)} on, {printable(group)} may answer{' instead' if group in instead else ', too'}"
            for at, group in self.escalations
        ]
        lines += [f"rule: {rule.text()}" for rule in self.required if rule.text() not in self.reason]
        for name, value in self.metadata.items():
            first, *rest = str(value).split("\n")
            lines.append(f"{printable(name)}: {printable(first)}")
            lines += [f"    {printable(line)}" for line in rest]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the request as JSON shapes."""
        several = {"approvers": self.approvals_needed, "approved_by": list(self.approved_by)}
        data: dict[str, Any] = {
            "id": self.id,
            "call_id": self.call_id,
            "tool": self.tool,
            "arguments": deepcopy(dict(self.arguments)),
            "digest": self.digest,
            "requested": deepcopy(self.requested),
            "reason": self.reason,
            "metadata": {str(name): lenient(value) for name, value in self.metadata.items()},
            "created_at": self.created_at.isoformat(),
            "run_id": self.run_id,
            "principal": self.principal,
            "parameters": None if self.parameters is None else dict(self.parameters),
            **drop_unset(
                definition=self.definition,
                in_doubt=self.in_doubt,
                returns=None if self.returns is None else dict(self.returns),
            ),
            **({} if self.approvals_needed == 1 else several),
            **drop_unset(
                agent=self.agent,
                conversation_id=self.conversation_id,
                origins=[dict(origin) for origin in self.origins],
                values_alone=self.values_alone,
                asked_by=self.asked_by,
                consent=None if self.consent is None else self.consent.to_dict(),
                follows=self.follows,
                replaces=self.replaces,
                approved_as=[item.to_dict() for item in self.approved_as],
                required=[item.to_dict() for item in self.required],
                required_if_edited=[item.to_dict() for item in self.required_if_edited],
                requester_ids=list(self.requester_ids),
            ),
        }  # in the form that has its fields, and no later one: workers of the version before read it
        if self.requester_ids:
            return versioned("ApprovalRequest", data)
        if self.required_if_edited or any(item.aliases for item in self.approved_as):
            return {**data, "version": 5}
        if any(item.instead or item.counts_as for item in self.required):
            return {**data, "version": 4}
        if any(item.has_times for item in self.required) or any(item.at is not None for item in self.approved_as):
            return {**data, "version": 3}
        return {**data, "version": 2} if self.required or self.approved_as else data

    def to_record(self) -> dict[str, Any]:
        """Return the request as a record keeps it: without the link to a page of consent."""
        data = self.to_dict()
        return data if self.consent is None else {**data, "consent": {**self.consent.to_dict(), "url": ""}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ApprovalRequest:
        """Return the request that `to_dict` described; raises ValueError when a field is missing."""
        values = StoredFields(cls, data)
        values["created_at"] = parse_time(values["created_at"])
        values["approvals_needed"] = values.pop("approvers", 1)
        values["approved_by"] = tuple(values.get("approved_by", ()))
        values["origins"] = tuple(values.get("origins", ()))
        values["approved_as"] = tuple(Identity.from_dict(item) for item in values.get("approved_as", ()))
        values["requester_ids"] = tuple(values.get("requester_ids", ()))
        for name in ("required", "required_if_edited"):
            values[name] = tuple(RequiredApprovers.from_dict(item) for item in values.get(name, ()))
        values["consent"] = None if values.get("consent") is None else Consent(**values["consent"])
        return cls(**values)
