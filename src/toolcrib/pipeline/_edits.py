"""Edits of arguments that go through validators: what was not edited keeps the value that hooks and people saw.

A validator may change its own result again, such as one that makes cents of euros. So each value is validated once: an
edit is laid over the JSON form from which the others were read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

from toolcrib.calls import equal_json
from toolcrib.errors import FieldProblem, InvalidArguments
from toolcrib.pipeline._plan import Plan, Reading
from toolcrib.schema import CanonicalArguments, hidden_paths

__all__ = ["changed_since", "changed_unseen", "edited", "edited_objects", "same", "with_secrets"]

_Read: TypeAlias = Callable[[Mapping[str, Any]], dict[str, Any]]
_UNSTABLE = "its validator changes its own result again; a validator has to leave its own result as it is"


def edited(
    plan: Plan,
    form: CanonicalArguments,
    base: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    host: bool = False,
    reading: Reading = "json",
    derive: bool = True,
) -> tuple[dict[str, Any], str]:
    """Return arguments after an edit, and the JSON text from which they were read.

    Args:
        form: The arguments before the edit.
        base: The JSON from which they are read: that of `form`, unless a validator changes it again.
        after: The JSON form of all of them after the edit, not validated so far.
        host: They may name what only a host gives.
        reading: How `base` is read.
        derive: A validator may make another value of what was not edited, out of what was.

    Raises:
        InvalidArguments: They do not fit, or a validator changes an edited value a second time.
    """
    changed = {key: value for key, value in after.items() if _differs(form.values, key, value)}
    merged = {key: value for key, value in base.items() if key in after or key not in form.values} | changed
    read = partial(plan.read_json, host=host, reading=reading)
    made = _read(plan, read, merged, changed)
    values = plan.spec.canonical(made).values
    if any(_differs(values, key, value) for key, value in changed.items()):  # "7" for 7, or cents for euros
        again = _read(plan, read, merged | {key: values[key] for key in changed if key in values}, changed)
        second = plan.spec.canonical(again).values
        _refuse(plan, (key for key in changed if _differs(second, key, values.get(key))), _UNSTABLE)
    if not derive:
        others = (key for key in after if key not in changed and _differs(values, key, form.values[key]))
        _refuse(plan, others, "it comes to another value with this edit; give that value, too")
    return made, json.dumps(merged)


def edited_objects(plan: Plan, after: Mapping[str, Any], before: Mapping[str, Any], *, host: bool) -> dict[str, Any]:
    """Return arguments after an edit, some of which are Python objects without a JSON form.

    Args:
        after: All of them after the edit.
        before: The arguments before it.

    Raises:
        InvalidArguments: They do not fit.
    """
    made = plan.read_python(after, host=host)
    return {**made, **{name: value for name, value in before.items() if name in after and same(after[name], value)}}


def with_secrets(plan: Plan, form: CanonicalArguments, after: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what an approver gives, where what they left as it was shown, secrets hidden, has its real value again.

    Args:
        form: The arguments that they were shown.

    Raises:
        InvalidArguments: An argument that they edited holds a hidden secret.
    """
    if form.shown is form.values:
        return after
    given = plan.spec.as_given(after)
    edited = {name: value for name, value in given.items() if _differs(form.shown, name, value)}
    _refuse(plan, hidden_paths(edited), "give the real value in place of the hidden one")
    left = {name: form.values[name] for name in given if name not in edited}
    return {**given, **left} if left else after


def changed_since(plan: Plan, before: Mapping[str, Any], now: Mapping[str, Any]) -> InvalidArguments:
    """Return the error for arguments that came back from JSON as others than were seen; their values are not in it."""
    names = [name for name in {**before, **now} if name not in before or _differs(now, name, before[name])]
    problem = "it comes back as another value than was seen: the tool has changed since, or " + _UNSTABLE
    alone = FieldProblem("", "they come back as others than were seen; what has no JSON form stays in its own process")
    return InvalidArguments(plan.name, tuple(FieldProblem(name, problem) for name in names) or (alone,))


def changed_unseen(plan: Plan, before: Mapping[str, Any], now: Mapping[str, Any]) -> InvalidArguments:
    """Return the error for arguments that were changed after the gates saw them; their values are not in it."""
    names = [name for name in {**before, **now} if name not in before or _differs(now, name, before[name])]
    problem = "it was changed after hooks and policies saw it; edit arguments in a pre hook or a decision hook"
    return InvalidArguments(plan.name, tuple(FieldProblem(name, problem) for name in names or ("",)))


def _read(plan: Plan, read: _Read, values: Mapping[str, Any], changed: Iterable[str]) -> dict[str, Any]:
    try:
        return read(values)
    except InvalidArguments:
        raise
    except Exception as error:  # a validator is the code of the type's author, and may not take its own result
        raise InvalidArguments(plan.name, tuple(FieldProblem(key, _UNSTABLE) for key in changed)) from error


def _refuse(plan: Plan, names: Iterable[str], problem: str) -> None:
    problems = tuple(FieldProblem(name, problem) for name in names)
    if problems:
        raise InvalidArguments(plan.name, problems)


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal, such as a call's arguments; what cannot be compared counts as edited."""
    try:
        return one is other or bool(one == other)
    except Exception:  # the `__eq__` of any type
        return False


def _differs(values: Mapping[str, Any], key: str, value: Any) -> bool:
    """Return whether the value under a key is not this one, `1` being another than `true` and `1.0`."""
    return key not in values or not equal_json(values[key], value)
