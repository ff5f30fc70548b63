"""Check of the people who approve a request against the rules that say who has to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from toolcrib.approvals._people import people_of
from toolcrib.calls import ANYBODY, ApprovalRequest, Grant, Identity, RequiredApprovers


def identities_in(grant: Grant) -> tuple[Identity, ...]:
    """Return the identities of all who give a grant, as far as they showed one, each with the time of its answer."""
    identities = (*(() if grant.identity is None else (grant.identity,)), *grant.identities)
    return tuple(identity if identity.at is not None else replace(identity, at=grant.at) for identity in identities)


def approvers_problem(
    grant: Grant, request: ApprovalRequest, at: datetime, rules: Sequence[RequiredApprovers] | None = None
) -> str:
    """Return why those who give a grant may not approve a request; empty where they may.

    Who may is judged at the time of each one's answer; of an answer to another request, at the time that is given. What
    a call in doubt came to is said by one of them.

    Args:
        grant: The grant.
        request: The request.
        at: The time.
        rules: The requirements; when None, those of the request.
    """
    rules = request.required if rules is None else rules
    identities, is_own = identities_in(grant), grant.request_id == request.id
    known = [identity if is_own else _later(identity, at) for identity in identities]
    if grant.done is not None:
        lacking = [rule for rule in rules if not is_of_use(rule, known[:1], (), request.created_at)]
    else:
        lacking = [rule for rule in rules if approvers_lacking(rule, known, request.created_at)]
    return f"{who_counts_not(grant)} {lacking[0].text()}" if lacking else ""


def who_counts_not(grant: Grant) -> str:
    """Return who gives a grant that does not meet a rule, before the words of that."""
    who = ", ".join((*grant.also, grant.by))
    lacks = "" if identities_in(grant) else ", a name by which nobody has logged in,"
    return f"the approval of {who}{lacks} does not meet the rule"


def _later(identity: Identity, at: datetime) -> Identity:
    """Return an identity of an earlier answer at a later time: the groups of its login count until the login ends."""
    holds = identity.until is not None and identity.until > at
    return replace(identity, groups=identity.groups if holds else (), at=at)


def approvers_lacking(required: RequiredApprovers, identities: Iterable[Identity], asked_at: datetime) -> int:
    """Return how many people a rule lacks, where each one counts once, for one of the groups.

    Args:
        required: The rule.
        identities: Who approves, each with the time of the answer.
        asked_at: The time of the request.
    """
    people: list[tuple[set[str], set[str]]] = []
    for identity in identities:
        at = asked_at if identity.at is None else identity.at
        names = _names(required, identity, at)
        if not names & people_of(*required.excluded):
            people = _joined(people, names, required.groups_of(identity, asked_at, at))
    return required.people - _filled(required, [groups for _, groups in people])


def is_of_use(
    required: RequiredApprovers, added: Sequence[Identity], so_far: Sequence[Identity], asked_at: datetime
) -> bool:
    """Return whether a rule is nearer to be met with some identities beside those so far, or is met without."""
    before = approvers_lacking(required, so_far, asked_at)
    return before == 0 or approvers_lacking(required, [*so_far, *added], asked_at) < before


def can_be_met(required: RequiredApprovers, at: datetime) -> bool:
    """Return whether there are enough people for a rule, those counted to whom it is escalated later.

    A group of logins, or of all, may have any number.
    """
    unlisted = {ANYBODY, *required.from_login}.union(*required.counts_as.values())
    of = {group: number for group, number in required.of.items() if group not in unlisted}
    if not of or unlisted.intersection(group for _, group in required.escalation):
        return True
    escalation = tuple((0.0, group) for _, group in required.escalation)
    listed = replace(required, of=of, from_login=(), counts_as={}, escalation=escalation, instead=False)
    people = (ids[0] for people in required.members.values() for ids in people)
    return approvers_lacking(listed, [Identity(person, escalated=True, at=at) for person in people], at) == 0


def people_of_group(required: RequiredApprovers, group: str, at: datetime) -> list[str]:
    """Return who of a group may answer at a time, and who stands for them: `ann`, `bob for ann`."""
    people: list[Identity] = []
    for ids in required.members.get(group, ()):
        people.append(Identity(ids[0]))
        delegates = dict.fromkeys(delegation.to for delegation in required.delegations)
        people += [
            Identity(delegate, stands_for=ids[0])
            for delegate in delegates
            if any(person in ids for person in required.stood_for_by(delegate, at))
        ]
    excluded = people_of(*required.excluded)
    return [str(member) for member in people if not _names(required, member, at) & excluded]


def count_people(names: Sequence[str], identities: Sequence[Identity], request: ApprovalRequest) -> int:
    """Return how many people approve a request, by their names and identities: a delegate is who they stand for.

    Beside identities no typed name counts. Where the tool itself needs several people, the one who asks does not, nor
    does a model.
    """
    by_rules = max((rule.people for rule in request.required), default=1)
    is_of_tool = bool(request.requester_ids) or request.approvals_needed > by_rules
    is_known = is_of_tool and request.principal is not None
    asker = people_of(request.principal or "", *request.requester_ids) if is_known else set[str]()
    people: list[tuple[set[str], set[str]]] = []
    for name in () if identities else names:
        people = _joined(people, people_of(name), set())
    for answerer in identities:
        names_of = (_names(rule, answerer, answerer.at) for rule in request.required)
        if not (is_of_tool and answerer.is_model):
            people = _joined(people, people_of(answerer.id, *answerer.aliases).union(*names_of), set())
    others = [shown for shown, _ in people if not shown & asker]
    known = len([shown for shown in others if shown != {""}]) or len(others)
    return min(known, len(people_of(*names)))  # who shows an identity under another name is no second person


def _names(required: RequiredApprovers, identity: Identity, at: datetime | None) -> set[str]:
    """Return the names of a person, and of all who count as one with them by the delegations that hold at a time."""
    of_other = required.ids_of(identity.stands_for) if identity.stands_for else ()
    ids = (id for known in (identity.id, *identity.aliases) for id in (known, *required.ids_of(known)))
    names = people_of(*ids, *of_other)
    pairs = [
        people_of(*required.ids_of(delegation.person), *required.ids_of(delegation.to))
        for delegation in required.delegations
        if at is None or delegation.holds(at)
    ]
    for _ in pairs:  # as often as a chain of them is long
        names = names.union(*(pair for pair in pairs if pair & names))
    return names


def _joined(
    people: Sequence[tuple[set[str], set[str]]], names: set[str], groups: set[str]
) -> list[tuple[set[str], set[str]]]:
    """Return people, by their names and groups, with one more, or with those as one who have a name of theirs."""
    same = [person for person in people if person[0] & names]
    joined = names.union(*(known for known, _ in same)), groups.union(*(found for _, found in same))
    return [*(person for person in people if not person[0] & names), joined]


def _filled(required: RequiredApprovers, people: Sequence[set[str]]) -> int:
    """Return how many places of a rule can be filled with people, each at one place (a matching in a graph)."""
    places = [group for group, number in required.of.items() for _ in range(number)]
    seats: dict[int, int] = {}

    def seat(person: int, seen: set[int]) -> bool:
        for place, group in enumerate(places):
            if group in people[person] and place not in seen:
                seen.add(place)
                if place not in seats or seat(seats[place], seen):
                    seats[place] = person
                    return True
        return False

    return sum(seat(person, set()) for person in range(len(people)))
