"""Policy of approvals in Cedar: who may run a tool at once, and who may approve a call. The extra `cedar`.

The only module that imports cedarpy. A policy speaks of entities of the types `Person`, `Group` and `Tool`, and of two
actions: `run`, to run a call without approval, and `approve`. An action that no policy permits is forbidden.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, reduce
from itertools import count, islice, product
from typing import Any, Final, Literal, NamedTuple, cast

from toolcrib import approvals
from toolcrib._extras import Extra
from toolcrib.approvers._cedar_statements import CedarNames, Statement, split_policies
from toolcrib.approvers._cedar_types import TYPES, EditedCall, edits_of, numbers_in, schema_of, text_of, type_of
from toolcrib.approvers._rule import CallRule, Groups, RuleVerdict, asked_at, parameters_of, requester_ids, servers_of
from toolcrib.calls import ANYBODY, Grant, Identity, RequiredApprovers, now, number_of
from toolcrib.errors import PolicyError, ToolConstraintError, explain_options
from toolcrib.tools import Tool
from toolcrib.toolsets import check_names

with Extra("a policy in Cedar", "cedar", ("cedarpy",)):
    import cedarpy

__all__ = ["CedarPolicy"]

_Action = Literal["run", "approve"]

_OF_POLICY: Final = re.compile(r"error while evaluating policy `(policy\d+)`")
_SOMEBODY: Final = "\0"
"""The prefix of the id of a person of whom only a group is known, and of a caller without a name."""
_CALLER: Final = f"{_SOMEBODY}caller"
_APPROVERS: Final = "approvers"
_MOST_CHARS: Final = 200_000
"""Characters of JSON of the arguments that a policy reads, which Cedar takes up to a second to read."""
_LONG, _DECIMAL = 2**63, 922337203685477
_MOST_TRIED: Final = 2  # arguments of a policy for which each type is tried
_FOR_POLICY: Final = re.compile(r"for policy `policy\d+`, ")
_EMPTY_SET: Final = "empty set literals"  # which the validator does not know the type of, and calls are compared with
_ANY: Final = "<__cedar::internal::Any>"
_NUMBERS: Final = (
    "an `integer` is a Long, compared as in `<= 1000`, and a `number` is a decimal, compared as in "
    '`.lessThanOrEqual(decimal("1000.0"))`'
)


class _Decision(NamedTuple):
    """The decision about one person, or all in the same groups: the policies that permit the action, and the problems.

    Where one forbids it, none permits it.
    """

    permits: frozenset[str]
    is_forbidden: bool
    problems: tuple[str, ...]

    def also(self, other: _Decision) -> _Decision:
        """Return the decision that forbids what one of two forbids, and permits by the policies of both."""
        problems = tuple(dict.fromkeys((*self.problems, *other.problems)))
        return _Decision(self.permits & other.permits, self.is_forbidden or other.is_forbidden, problems)


class _Call:
    """A call, and the people of the groups, as Cedar reads them; raises ValueError for arguments it cannot read.

    The arguments are an entity, which is read once for all who are asked about. Of the groups of logins it is not known
    whether the one who asks is in them: a decision is what holds both ways.
    """

    def __init__(self, policy: CedarPolicy, call: Any, groups: Groups) -> None:
        self._policy, self._groups = policy, groups
        principal: str | None = call.run.principal
        requester = () if principal is None else groups.ids_of(principal)
        self.caller = next((id for id in requester[:1] if not id.startswith(_SOMEBODY)), _CALLER)
        self._logins = () if principal is None else tuple(policy.names.groups.keys() & {*groups.from_login})
        self._parents: dict[str, set[str]] = {self.caller: {*self.listed(requester)}}
        known = call.arguments.items()
        arguments = {name: value for name, value in known if name in policy.names.arguments and value is not None}
        types = parameters_of(call.tool) or {}
        read = {name: _cedar_value(name, value, types.get(name)) for name, value in arguments.items()}
        if len(json.dumps(read)) > _MOST_CHARS:
            raise ValueError(f"the arguments that it reads have more than {_MOST_CHARS:,} characters")
        options, server = call.tool.options, next(iter(servers_of(call.tool)), None)
        attributes = {"name": call.name, "tags": sorted(options.tags), "effect": options.effect, "server": server}
        self._entities = [
            _entity("Tool", call.name, {key: value for key, value in attributes.items() if value is not None}),
            _entity("Arguments", call.name, read),
        ]
        self._tool = {"type": "Tool", "id": call.name}
        self._context: dict[str, Any] = {"arguments": {"__entity": {"type": "Arguments", "id": call.name}}}
        if principal is not None:
            self._context["requester"] = {"__entity": {"type": "Person", "id": self.caller}}

    @cached_property
    def people(self) -> dict[tuple[str, ...], frozenset[str]]:
        """The people of the groups that the policies name, and those whom they name, with their groups."""
        found: dict[tuple[str, ...], set[str]] = {}
        for group in self._policy.names.groups:
            for ids in self._groups.people_in(group):
                found.setdefault(ids, set()).add(group)
        for name in self._policy.names.persons:
            found.setdefault(self._groups.ids_of(name), set())
        return {ids: frozenset(groups) for ids, groups in found.items()}

    def listed(self, ids: Sequence[str]) -> frozenset[str]:
        """Return the groups that list a person."""
        return next((groups for known, groups in self.people.items() if {*known} & {*ids}), frozenset[str]())

    def add(self, groups: Iterable[str], ids: Sequence[str] = ()) -> str:
        """Add a person as an entity; return its id: their first one, where a policy may tell them from others by it.

        One whom it cannot tell from others is as all who are in the same groups, and is asked about with them.
        """
        listed = {*groups}
        is_special = ids[:1] and (ids[0] in self._policy.names.persons or ids[0] == self.caller)
        name = ids[0] if is_special else _SOMEBODY + json.dumps(sorted(listed))
        self._parents.setdefault(name, set()).update(listed)
        return name

    def decisions(self, asked: Sequence[tuple[_Action, str]]) -> list[_Decision]:
        """Return the decisions of the policies about people, by their ids, who act on the call."""
        found = [self._decide(asked, ()), *([self._decide(asked, self._logins)] if self._logins else [])]
        return [reduce(_Decision.also, decisions) for decisions in zip(*found, strict=True)]

    def _decide(self, asked: Sequence[tuple[_Action, str]], logins: Iterable[str]) -> list[_Decision]:
        """Return the decisions with the one who asks in some groups of logins, too."""
        requests: list[dict[str, Any]] = [
            {
                "principal": {"type": "Person", "id": person},
                "action": {"type": "Action", "id": action},
                "resource": self._tool,
                "context": self._context,
            }
            for action, person in asked
        ]
        parents = self._parents | {self.caller: self._parents[self.caller].union(logins)}
        persons = [_entity("Person", name, {}, sorted(groups)) for name, groups in parents.items()]
        evaluate: Any = cedarpy.is_authorized_batch  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] -- of dicts
        found = evaluate(requests, self._policy.policies, json.dumps([*self._entities, *persons]))
        return [self._decision(result) for result in found]

    def _decision(self, result: cedarpy.AuthzResult) -> _Decision:
        statements, diagnostics = self._policy.statements, result.diagnostics
        is_forbidden = not result.allowed and bool(diagnostics.reasons)
        problems: list[str] = []
        for error in diagnostics.errors:
            found = _OF_POLICY.match(error)
            # a policy that forbids and cannot be evaluated forbids; Cedar itself passes it over
            is_forbidden |= found is None or statements[found[1]].effect == "forbid"
            prefix = "" if found is None else f"error while evaluating policy `{statements[found[1]].name}`"
            problems.append(prefix + (error.rpartition("]: ")[2] if found is None else error[found.end() :]))
        return _Decision(frozenset(() if is_forbidden else diagnostics.reasons), is_forbidden, tuple(problems))


@explain_options()
class CedarPolicy(CallRule):
    """A policy in Cedar, as a rule of `ApproverRules`.

    Args:
        text: The policies.
        name: The name of the policies in errors, such as that of their file.

    Raises:
        PolicyError: They cannot be read, or name an entity, an attribute or an annotation that does not exist; the
            error names the policy.
    """

    def __init__(self, text: str, name: str = "policy.cedar") -> None:
        self.name = name
        try:
            self.policies, parsed = cedarpy.PolicySet.from_str(text), json.loads(cedarpy.policies_to_json_str(text))
        except ValueError as error:
            raise PolicyError(name, (_syntax_problem(text, str(error)),)) from None
        if parsed["templates"]:
            raise PolicyError(name, ("it has a template with ?principal or ?resource; write the group or the tool",))
        self.names = CedarNames()
        self.statements = {key: self._statement(key, policy) for key, policy in parsed["staticPolicies"].items()}
        if not any(
            "approve" in statement.actions for statement in self.statements.values() if statement.effect == "permit"
        ):
            mend = 'write permit (principal in Group::"...", action == Action::"approve", resource);'
            raise PolicyError(name, (f"it permits nobody to approve anything: {mend}",))
        self._texts = {key: _text_of(policy) for key, policy in parsed["staticPolicies"].items()}
        conditions = [policy["conditions"] for policy in parsed["staticPolicies"].values()]
        self._numbers = sorted({*numbers_in(conditions)})

    @property
    def tool_names(self) -> Sequence[str]:
        return [*self.names.tools]

    def check_tools(self, tools: Mapping[str, Tool[..., Any]]) -> None:
        parameters = [parameters_of(tool) for tool in tools.values()]
        if None not in parameters:
            known = {name for names in parameters if names is not None for name in names}
            check_names(f"the policy {self.name}", self.names.arguments, known, kind="argument")
        for key, statement in self.statements.items():
            about = {name: tool for name, tool in tools.items() if statement.tool in ("", name)}
            self._require_types(key, about)

    def require_people(self, groups: Groups) -> None:
        if unknown := sorted(group for group in self.names.groups if not groups.is_known(group)):
            raise ValueError(f"{self.name}: there is no group {unknown[0]!r}; give it members or from_login")
        for name in self.names.persons:
            if (first := groups.ids_of(name)[0]) != name:
                raise ValueError(f'{self.name}: {name} is an id of {first}: name the person, as Person::"{first}"')

    def verdict(self, call: Any, groups: Groups) -> RuleVerdict | None:
        try:
            return self._verdict(call, groups)
        except ValueError as error:
            required = self._required({}, {}, groups, call)
            return RuleVerdict(required, hopeless=f"the policy {self.name}: {error}")

    def required_if_edited(self, call: Any, groups: Groups) -> Sequence[RequiredApprovers]:
        """Return whom it requires for other numbers; edits of other arguments are judged when the call goes on."""
        unedited, known = self.verdict(call, groups), (parameters_of(call.tool) or {}).items()
        if unedited is None or not unedited.asks or unedited.hopeless:
            return ()
        found: list[RequiredApprovers] = []
        for edit in edits_of(self._numbers, {name: shape for name, shape in known if name in self.names.arguments}):
            edited = EditedCall(call, {name: part.example for name, part in edit.items()})
            verdict = self.verdict(edited, groups)
            if verdict is not None and verdict.required != unedited.required:
                over = {name: f"{part.over:f}" for name, part in edit.items() if part.over is not None}
                up_to = {name: f"{part.up_to:f}" for name, part in edit.items() if part.up_to is not None}
                found.append(replace(verdict.required, over=over, up_to=up_to))
        return found

    def refusal(self, call: Any, groups: Groups) -> str:
        """Return which approver of a call may not approve it with all groups that are known of them together."""
        grant: Grant = call.grant
        try:
            for identity in (*(() if grant.identity is None else (grant.identity,)), *grant.identities):
                if why := self._forbids(identity, call, groups):
                    return f"the policy {self.name} {why} {identity.id} to approve it"
        except ValueError as error:
            return str(error)
        return ""

    def explain(self, name: str, tool: Tool[..., Any], groups: Groups) -> str:
        return "; ".join(statement.text() for statement in self.statements.values() if statement.tool in ("", name))

    def lines(self, groups: Groups) -> list[str]:
        return [statement.text() for statement in self.statements.values()]

    # --- inside

    def _statement(self, key: str, policy: Mapping[str, Any]) -> Statement:
        name = policy.get("annotations", {}).get("id") or f"policy {int(key.removeprefix('policy')) + 1}"
        names = CedarNames()
        try:
            statement = names.statement(policy, name)
        except ValueError as error:
            raise PolicyError(self.name, (f"`{name}`: {error}",)) from None
        self.names.add(names)
        if problem := _problem_of_each_type(policy, names.arguments):
            raise PolicyError(self.name, (f"`{name}`: {problem}",))
        return statement

    def _require_types(self, key: str, tools: Mapping[str, Tool[..., Any]]) -> None:
        """Raise ToolConstraintError for a policy that can be evaluated for no call of these tools."""
        problems: dict[str, str] = {}
        for name, tool in tools.items():
            schemas = parameters_of(tool)
            if schemas is None:
                return
            types = {argument: type_of(schemas[argument]) for argument in self.names.arguments if argument in schemas}
            known = {argument: kind for argument, kind in types.items() if kind is not None}
            problem = _type_problem(
                self._texts[key], tuple((argument, json.dumps(kind)) for argument, kind in known.items())
            )
            if not problem or any(f"arguments.{argument}" in problem for argument in types.keys() - known):
                return
            takes = ", ".join(f"{argument} as {text_of(kind)}" for argument, kind in known.items())
            problems[name] = f"{problem}; Cedar has of `{name}` {takes or 'no argument'}"
        for name, problem in problems.items():
            raise ToolConstraintError(name, f"the policy {self.name}, `{self.statements[key].name}`: {problem}")

    def _verdict(self, call: Any, groups: Groups) -> RuleVerdict:
        asked = _Call(self, call, groups)
        people = {ids: asked.add(listed, ids) for ids, listed in asked.people.items()}
        logins = {group: asked.add([group]) for group in groups.from_login if group in self.names.groups}
        logins[ANYBODY] = asked.add([])
        persons = list(dict.fromkeys((*people.values(), *logins.values())))
        run, *found = asked.decisions([("run", asked.caller), *(("approve", person) for person in persons)])
        permits = {person: decision.permits for person, decision in zip(persons, found, strict=True)}
        required = self._required(
            {ids: permits[person] for ids, person in people.items()},
            {group: permits[person] for group, person in logins.items()},
            groups,
            call,
        )
        if run.permits:
            return RuleVerdict(required, asks=False)
        return RuleVerdict(required, hopeless=self._hopeless(required, call, found))

    def _forbids(self, person: Identity, call: Any, groups: Groups) -> str:
        """Return in which words one may not approve, with the groups of list and login together; empty where they may.

        They may count for no more than they did in the request, which looks at these groups one by one.
        """
        ids = groups.ids_of(person.id)
        logins = self.names.groups.keys() & {*person.groups} & {*groups.from_login}
        apart, together = _Call(self, call, groups), _Call(self, call, groups)
        listed = apart.listed(ids)
        parts = [apart.add(listed, ids), *(apart.add([group]) for group in logins), apart.add([])]
        before = apart.decisions([("approve", name) for name in parts])
        (after,) = together.decisions([("approve", together.add(listed | logins, ids))])
        if after.is_forbidden:
            return "forbids"
        counted = {self.statements[key].counted for decision in before for key in decision.permits}
        return "does not permit" if counted - {self.statements[key].counted for key in after.permits} else ""

    def _required(
        self,
        permits: Mapping[tuple[str, ...], frozenset[str]],
        logins: Mapping[str, frozenset[str]],
        groups: Groups,
        call: Any,
    ) -> RequiredApprovers:
        """Return who has to approve a call, by the policies that permit it to people and to groups of logins."""
        used = frozenset[str]().union(*permits.values(), *logins.values())
        found = {key: statement for key, statement in self.statements.items() if key in used}
        at_once = [statement.name for statement in found.values() if statement.after is None]
        shared, place_of = _places(found, logins.get(ANYBODY, frozenset()))
        of: dict[str, int] = {}
        for key, statement in found.items():
            if statement.after is None:
                of[place_of[key]] = max(of.get(place_of[key], 1), statement.people)
        later = {(statement.after, place_of[key]) for key, statement in found.items() if statement.after is not None}
        open_to = {group: {place_of[key] for key in keys} for group, keys in logins.items() if keys}
        places = dict.fromkeys((*of, *(place for _, place in sorted(later))))
        delegations = tuple(delegation for delegation in groups.delegations if delegation.until > asked_at(call))
        not_requester = not found or any(statement.not_requester for statement in found.values())
        return RequiredApprovers(
            ", ".join(at_once) or self.name,
            of or {shared: 1},
            {
                place: tuple(ids for ids, keys in permits.items() if place in {place_of[key] for key in keys})
                for place in places
                if place != ANYBODY
            },
            tuple(group for group in open_to if group != ANYBODY and (group not in places or group in open_to[group])),
            requester_ids(call, groups) if not_requester else (),
            min((statement.expires for statement in found.values() if statement.expires is not None), default=None),
            min((statement.remind for statement in found.values() if statement.remind is not None), default=None),
            tuple(sorted(later)),
            delegations,
            groups.aliases(delegations),
            any(statement.instead for statement in found.values()),
            {group: sorted(places - {group}) for group, places in open_to.items() if places - {group}},
        )

    def _hopeless(self, required: RequiredApprovers, call: Any, found: Iterable[_Decision]) -> str:
        problems = "; ".join(dict.fromkeys(problem for decision in found for problem in decision.problems))
        reasons = f" ({problems})" if problems else ""
        if not any(decision.permits for decision in found):
            return f"the policy {self.name} permits nobody to approve this{reasons}"
        if required.excluded == () and call.run.principal is None and self._keeps_requester(found):
            return f"{self.name}: whoever asks may not approve it, and the run has no principal; give it one"
        can_be_met = approvals.can_be_met(required, now())
        return "" if can_be_met else f"nobody can approve this. {required.text()}{reasons}"

    def _keeps_requester(self, found: Iterable[_Decision]) -> bool:
        return any(self.statements[key].not_requester for decision in found for key in decision.permits)


def _places(found: Mapping[str, Statement], for_all: frozenset[str]) -> tuple[str, dict[str, str]]:
    """Return the name of the group of those without a place of their own, and of that of the people of each policy.

    Those are counted together, by the groups of all of them. Two groups of people never have one name.

    Args:
        found: The policies, by their keys.
        for_all: The keys of those that permit it to whoever has an identity.
    """
    shared = [(key, statement) for key, statement in found.items() if statement.counted == ("", None)]
    names = list(dict.fromkeys(statement.who for _, statement in shared))
    together = " or ".join(names) if names and all(names) else _APPROVERS
    known: dict[tuple[str, float | None], str] = {
        ("", None): ANYBODY if any(key in for_all and statement.is_for_all for key, statement in shared) else together
    }
    for statement in found.values():
        if statement.counted not in known:
            name = statement.place or statement.who or _APPROVERS
            others = {*known.values()}
            further = (f"{name} {number}" for number in count(2))
            known[statement.counted] = next(
                text for text in (name, *islice(further, len(others))) if text not in others
            )
    return known["", None], {key: known[statement.counted] for key, statement in found.items()}


def _entity(kind: str, name: str, attributes: Mapping[str, Any], groups: Iterable[str] = ()) -> dict[str, Any]:
    parents = [{"type": "Group", "id": group} for group in groups]
    return {"uid": {"type": kind, "id": name}, "attrs": attributes, "parents": parents}


def _cedar_value(name: str, value: Any, schema: Any = None) -> Any:
    """Return the value of an argument as Cedar reads it; raises ValueError for one that Cedar has no value for.

    Args:
        name: The argument, for the error.
        value: The value.
        schema: Its JSON schema, where one is known: a `number` is a decimal, also where it is whole. Any other whole
            number is an integer, also where it is written as 5.0: a caller has no choice between the two.
    """
    if isinstance(value, float) and value.is_integer() and not _is_number(schema):
        value = int(value)
    number = number_of(value) if isinstance(value, float) or _is_number(schema) else None
    if number is None and isinstance(value, bool | str):
        return value
    if number is None and isinstance(value, int) and -_LONG <= value < _LONG:
        return value
    if number is not None or isinstance(value, int | float):
        if number is None or abs(number) > _DECIMAL or number != round(number, 4):
            raise ValueError(
                f"`{name}` is {value!r:.40}; a number in Cedar has at most 4 decimal places, and 15 before"
            )
        return {"__extn": {"fn": "decimal", "arg": f"{number:.4f}"}}
    if isinstance(value, list):
        items = _part(schema, "items")
        return [_cedar_value(name, item, items) for item in cast("list[Any]", value)]
    if isinstance(value, Mapping):
        record = cast("Mapping[str, Any]", value)
        if any(key.startswith("__") for key in record):
            raise ValueError(f"`{name}` has a field that begins with __, which Cedar would read as a value of its own")
        fields: Mapping[str, Any] = _part(schema, "properties") or {}
        return {key: _cedar_value(name, field, fields.get(key)) for key, field in record.items() if field is not None}
    raise ValueError(f"`{name}` is {value!r:.40}, which Cedar has no value for")


def _is_number(schema: Any) -> bool:
    """Return whether a JSON schema takes a `number`, alone or among others."""
    if not isinstance(schema, Mapping):
        return False
    parts = cast("Mapping[str, Any]", schema)
    kinds = (parts.get("type"), *_items(parts.get("type")))
    return "number" in kinds or any(map(_is_number, _items(parts.get("anyOf"))))


def _part(schema: Any, name: str) -> Any:
    """Return a part of a JSON schema, or of one of those that it takes."""
    if not isinstance(schema, Mapping):
        return None
    parts = cast("Mapping[str, Any]", schema)
    found: list[Any] = [parts.get(name), *(_part(item, name) for item in _items(parts.get("anyOf")))]
    return next((part for part in found if part), None)


def _items(part: Any) -> Sequence[Any]:
    return cast("list[Any]", part) if isinstance(part, list) else ()


def _problem_of_each_type(policy: Mapping[str, Any], arguments: Mapping[str, bool]) -> str:
    """Return the problem of a policy that has one whatever types its arguments have; empty for any other."""
    text, written = _text_of(policy), json.dumps(policy)
    if any(arguments.values()) or len(arguments) > _MOST_TRIED or '"Record": {' in written:
        return ""
    problems = (
        _type_problem(text, tuple(zip(arguments, map(json.dumps, types), strict=True)))
        for types in product(TYPES, repeat=len(arguments))
    )
    first = next(problems)
    return first if first and all(problems) else ""


@lru_cache(maxsize=512)
def _type_problem(policy: str, types: tuple[tuple[str, str], ...]) -> str:
    """Return the problem of a policy for calls whose arguments have these types of Cedar, as JSON; or empty."""
    schema = json.dumps(schema_of({name: json.loads(kind) for name, kind in types}))
    validate: Any = cedarpy.validate_policies  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] -- of dicts
    found = [str(error.error) for error in validate(policy, schema).errors]
    problems = [_FOR_POLICY.sub("", text).replace(_ANY, "") for text in found if _EMPTY_SET not in text]
    if not problems:
        return ""
    return problems[0] + (f"; {_NUMBERS}" if "Long" in problems[0] and "decimal" in problems[0] else "")


def _text_of(policy: Mapping[str, Any]) -> str:
    policies: dict[str, Any] = {"templates": {}, "staticPolicies": {"policy0": policy}, "templateLinks": []}
    return cedarpy.policies_from_json_str(json.dumps(policies))


def _syntax_problem(text: str, problem: str) -> str:
    """Return the syntax error of a text, with the line where the invalid policy begins."""
    for line, policy in split_policies(text):
        try:
            cedarpy.PolicySet.from_str(policy)
        except ValueError as error:
            return f"the policy at line {line} is not Cedar: {error}"
    return f"it is not Cedar: {problem}"
