"""Check of the people who approve a request against the rules that say who has to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from toolcrib.approvals._people import people_of
from toolcrib.calls import ANYBODY, ApprovalRequest, Grant, Identity, RequiredApprovers

__all__ = ["approvers_lacking", "approvers_problem", "can_be_met", "identities_in", "is_of_use", "who_counts_not"]


def identities_in(grant: Grant) -> tuple[Identity, ...]:
    """Return the identities of all who give a grant, as far as they showed one."""
    return (*(() if grant.identity is None else (grant.identity,)), *grant.identities)


def approvers_problem(
    grant: Grant, request: ApprovalRequest, at: datetime, rules: Sequence[RequiredApprovers] | None = None
) -> str:
    """Return why those who give a grant may not approve a request; empty where they may.

    What a call in doubt came to is said by one of them.

    Args:
        grant: The grant.
        request: The request.
        at: The time.
        rules: What is required of them; when None, what the request says.
    """
    rules = request.required if rules is None else rules
    identities, is_own = identities_in(grant), grant.request_id == request.id
    known = [_known(one, is_own=is_own, at=at) for one in identities]
    if grant.done is not None:
        lacking = [one for one in rules if not is_of_use(one, known[:1], ())]
    else:
        lacking = [one for one in rules if approvers_lacking(one, known)]
    return f"{who_counts_not(grant)} {lacking[0].text()}" if lacking else ""


def who_counts_not(grant: Grant) -> str:
    """Return who gives a grant that does not meet a rule, before the words of that."""
    who = ", ".join((*grant.also, grant.by))
    lacks = "" if identities_in(grant) else ", a name by which nobody has logged in,"
    return f"the approval of {who}{lacks} does not meet the rule"


def _known(identity: Identity, *, is_own: bool, at: datetime) -> Identity:
    """Return an identity with the groups of its login that count; those of an earlier answer hold for a time."""
    holds = is_own or (identity.until is not None and identity.until > at)
    return identity if holds else Identity(identity.id, identity.by)


def approvers_lacking(required: RequiredApprovers, identities: Iterable[Identity]) -> int:
    """Return how many people a rule lacks, where each one counts once, for one of the groups."""
    people: dict[str, set[str]] = {}
    for one in identities:
        if _may(required, one):
            people.setdefault(_person(required, one), set()).update(_groups_of(required, one))
    return required.people - _filled(required, list(people.values()))


def is_of_use(required: RequiredApprovers, added: Sequence[Identity], so_far: Sequence[Identity]) -> bool:
    """Return whether a rule is nearer to be met with some identities beside those so far, or is met without."""
    before = approvers_lacking(required, so_far)
    return before == 0 or approvers_lacking(required, [*so_far, *added]) < before


def can_be_met(required: RequiredApprovers) -> bool:
    """Return whether there are enough people for a rule; a group of logins, or of all, may have any number."""
    others = [ids for ids in _everybody(required) if not set(ids) & set(required.excluded)]
    known = [Identity(ids[0]) for ids in others]
    of = {group: number for group, number in required.of.items() if group not in (ANYBODY, *required.from_login)}
    return not of or approvers_lacking(RequiredApprovers(required.rule, of, required.members), known) == 0


def _everybody(required: RequiredApprovers) -> Iterable[Sequence[str]]:
    return (ids for people in required.members.values() for ids in people)


def _may(required: RequiredApprovers, one: Identity) -> bool:
    """Return whether an approval counts at all: that of the one who asked does not, under no id or look-alike of it."""
    ids = (one.id, *_ids_of(required, one))
    return not people_of(*ids) & people_of(*required.excluded)


def _ids_of(required: RequiredApprovers, one: Identity) -> Sequence[str]:
    return next((ids for ids in _everybody(required) if one.id in ids), ())


def _person(required: RequiredApprovers, one: Identity) -> str:
    """Return what one person is known by under all of their ids, and under those that look alike."""
    ids = _ids_of(required, one)
    return min(people_of(ids[0] if ids else one.id))


def _groups_of(required: RequiredApprovers, one: Identity) -> set[str]:
    """Return the groups of a rule that a person counts for; a model is in those alone that list it."""
    groups = {group for group, people in required.members.items() if any(one.id in ids for ids in people)}
    if not one.is_model:
        groups |= {*(group for group in one.groups if group in required.from_login), ANYBODY}
    return groups & required.of.keys()


def _filled(required: RequiredApprovers, people: Sequence[set[str]]) -> int:
    """Return how many places of a rule can be filled with people, each at one place (a matching in a graph)."""
    places = [group for group, number in required.of.items() for _ in range(number)]
    taken: dict[int, int] = {}

    def seat(person: int, seen: set[int]) -> bool:
        for place, group in enumerate(places):
            if group in people[person] and place not in seen:
                seen.add(place)
                if place not in taken or seat(taken[place], seen):
                    taken[place] = person
                    return True
        return False

    return sum(seat(person, set()) for person in range(len(people)))
