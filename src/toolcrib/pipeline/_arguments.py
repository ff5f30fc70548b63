"""Arguments of a call: one value with its forms, and the edits that make another one of it.

A validator may change its own result again, such as one that makes cents of euros. So each value is validated once: an
edit is laid over the JSON from which the others were read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias, cast

from pydantic import BaseModel
from pydantic_core import from_json

from toolcrib import schema
from toolcrib.calls import NOTHING_HIDDEN, Hiding, RawArguments, copied, equal_json, lenient
from toolcrib.errors import ApprovalError, FieldProblem, InvalidArguments, SchemaError
from toolcrib.pipeline._compiled_tool import CompiledTool, Reading
from toolcrib.schema import RunContext, hidden_paths

_Read: TypeAlias = Callable[[Mapping[str, Any]], dict[str, Any]]
_ATOMS = frozenset({str, int, float, bool, bytes, type(None)})  # cannot be changed in place
_UNSTABLE = "its validator changes its own result again; a validator has to leave its own result as it is"
_CHANGED_SINCE = f"it comes back as another value than was seen: the tool has changed since, or {_UNSTABLE}"
_CHANGED_UNSEEN = "it was changed after hooks and policies saw it; edit arguments in a pre hook or a decision hook"
_SAME_PROCESS = (
    "its value is another one when it is read from JSON, so that the call goes on in the process that made it, and in "
    "no other; give the parameter a type that pydantic reads from what it writes, such as Base64Bytes for bytes"
)


@dataclass(frozen=True, slots=True)
class StoredArguments:
    """The JSON from which arguments are read in another process.

    Attributes:
        values: The JSON object.
        reading: How it is read.
        lost: The names of the arguments that come of it as others; none where equal ones are sure to come of it.
    """

    values: Mapping[str, Any]
    reading: Reading
    lost: tuple[str, ...] = ()


class Arguments:
    """The arguments of one call at one time. Not changed once made: an edit makes others.

    Attributes:
        plan: The tool that takes them.
        raw: The text or values from which they were read: as received, or JSON text after an edit.
        values: The arguments by parameter name, as the tool takes them.
        is_host: Whether a host gave them.
        is_unread: Whether they are a host's objects, which were not validated: nothing has looked at them.
        original: The arguments that the call came with, where these are an edit; None where they are not.
        earlier_secrets: The secrets of those that they were edited from.
        canonical: The canonical form: shown, digested, recorded and sent.
        for_record: `for_display`, or a `partial` that returns it where nobody can change an argument until it is read.
        mask: The last result of `hiding_in`, after the context and the objects that it was made for.
        secrets: The texts and numbers in them, and in those that they were edited from, which may be quoted nowhere.
    """

    __slots__ = (
        "canonical", "earlier_secrets", "for_record", "is_host", "is_unread", "mask", "original", "plan", "raw",
        "secrets", "values",
    )  # fmt: skip
    canonical: schema.CanonicalArguments
    for_record: Any
    mask: tuple[RunContext[Any] | None, Any, Hiding]
    secrets: frozenset[str]

    def __init__(
        self,
        plan: CompiledTool,
        raw: RawArguments,
        values: dict[str, Any],
        is_host: bool = False,
        is_unread: bool = False,
        original: Arguments | None = None,
        earlier_secrets: frozenset[str] = frozenset(),
    ) -> None:
        self.plan = plan
        self.raw = raw
        self.values = values
        self.is_host, self.is_unread = is_host, is_unread
        self.original = original
        self.earlier_secrets = earlier_secrets

    def __getattr__(self, name: str) -> Any:
        """Make a form when it is first read: most calls need none."""
        make = _FORMS.get(name)
        if make is None:
            raise AttributeError(name)
        form = make(self)
        setattr(self, name, form)
        return form

    # --- forms

    @property
    def digest(self) -> str:
        """The digest of tool and arguments, by which they are compared in one place: what is shown is `Call.digest`."""
        return self.canonical.digest(self.plan.name)

    @property
    def for_display(self) -> dict[str, Any]:
        """The arguments for a person or a record: JSON shapes, secrets hidden."""
        return self.canonical.shown

    def _make_canonical(self) -> schema.CanonicalArguments:
        return self.plan.spec.canonical(self.values)

    def _make_for_record(self) -> Any:
        return partial(getattr, self, "for_display") if self._is_open else self.for_display

    def _make_secrets(self) -> frozenset[str]:
        secrets = frozenset[str]() if self._is_open else self.plan.spec.secrets_in(self.canonical)
        return secrets | self.earlier_secrets

    @property
    def has_secrets(self) -> bool:
        """True if something in the arguments is secret."""
        return not self._is_open and self.canonical.has_secrets

    def keep_secrets(self) -> frozenset[str]:
        """Return `secrets`, made by now: before the tool has the arguments, which it may change."""
        return self.secrets

    def hiding_in(self, ctx: RunContext[Any] | None) -> Hiding:
        """Return the mask, for texts, of the secrets in them and of those that the tool gets besides.

        Args:
            ctx: The context of the call, whose objects the tool gets; None where it gets none.
        """
        supplied = () if ctx is None else ctx.supplied or ()
        known, of_context, mask = self.mask
        if known is not ctx or of_context is not supplied:
            secrets = self.secrets
            if ctx is not None:
                of_run = schema.secret_objects((ctx.deps, ctx.provided))
                secrets = secrets.union(of_run, *(spec.supplied_secrets(values) for spec, values in supplied))
            mask = Hiding(secrets) if secrets else NOTHING_HIDDEN
            if self is not NOT_READ:  # which all calls share
                self.mask = ctx, supplied, mask
        return mask

    @property
    def for_approval(self) -> dict[str, Any]:
        """The arguments for the person who decides: those that the call came with before the defaults."""
        sent = self.without_defaults
        return dict(sorted(self.for_display.items(), key=lambda item: item[0] not in sent))

    @property
    def without_defaults(self) -> Mapping[str, Any]:
        """The arguments as received or edited, without defaults and not validated."""
        raw = self.raw
        if not isinstance(raw, str | bytes):
            return raw
        try:
            return from_json(raw) or {}
        except ValueError:  # no text at all, or half a character, which `json` reads, at five times the cost
            return json.loads(raw.strip() or "null") or {}

    def describe_sent(self, arrival: Mapping[str, Any]) -> dict[str, Any]:
        """Return how a call came, with the arguments that were sent where others were made of them."""
        return {**self._sent, **arrival}

    @property
    def _sent(self) -> dict[str, Any]:
        """The arguments without defaults and conversions, where these made others of them and none is a secret."""
        form = self.canonical
        if form.without_form:
            return {"without_form": True}
        try:
            if self.plan.spec.has_secrets or form.shown is not form.values:
                return {}
        except SchemaError:  # a host may pass what has no schema
            return {}
        if self.original is not None:  # by the host, before any gate saw it
            return {"arguments": form.values}
        try:
            arguments = self.without_defaults
        except ValueError:  # text that was read though it is not JSON as it stands
            arguments = self.raw
        if equal_json(arguments, form.values):
            return {}
        arguments = lenient(arguments)
        return {} if equal_json(arguments, form.values) else {"arguments": arguments}

    @property
    def is_shared(self) -> bool:
        """True if other code may hold an object that is among the arguments."""
        return not (isinstance(self.raw, str | bytes) or self._is_atomic)

    @property
    def _is_open(self) -> bool:
        """True if nothing in the arguments can be secret, and nobody can change them."""
        return type(self.raw) is str and self._is_atomic and not self.plan.has_secrets

    @property
    def _is_atomic(self) -> bool:
        return _ATOMS.issuperset(map(type, self.values.values()))

    def parse(self) -> BaseModel:
        """Return the input, made anew: validated twice, it might be another, and some validators change their input."""
        return self.plan.make_input(self.raw)

    def copy(self) -> dict[str, Any]:
        """Return the values for code that may edit them in place: hooks, policies, runners."""
        if self._is_atomic or self.is_unread:
            return dict(self.values)
        if self.is_host:  # objects that are the host's own stay the same
            return copied(self.values)
        try:
            return deepcopy(self.values)
        except Exception:  # any types
            return self.plan.spec.arguments(self.parse())

    def stored(self) -> StoredArguments:
        """Return the JSON from which the arguments are read in another process.

        It is their canonical form, or what came where that form is read as something else: a validator changes it
        again, or a union takes it for another of its types.
        """
        form, spec = self.canonical, self.plan.spec
        if spec.reads_back(form, self.values):
            return StoredArguments(form.values, "json")
        sent = spec.as_given(self.without_defaults)
        if not self.is_host:
            return StoredArguments(sent, "json")
        try:
            again = self.plan.validated(sent)
        except InvalidArguments:
            return StoredArguments(sent, "json", tuple(self.values))
        lost = [name for name, value in self.values.items() if not equal_values(again.get(name), value)]
        if not lost and self._digest_of(again) != self.digest:  # such as 0 where a number with decimals is declared
            lost = _changed_names(form.values, spec.canonical(again).values)
        return StoredArguments(sent, "python", tuple(lost))

    # --- checks

    def differ_from(self, values: Mapping[str, Any]) -> bool:
        """Return whether these are not the values of the arguments, as a grant tells them apart."""
        return not equal_values(values, self.values) and self._digest_of(values) != self.digest

    def require_sealed(self, values: Mapping[str, Any], seal: str, *, is_approved: bool) -> None:
        """Check that values are those that the gates saw last; made canonical anew, as one may have been edited.

        Args:
            values: The arguments that the tool would be given.
            seal: The digest of those that the gates saw.
            is_approved: Whether a person approved them.

        Raises:
            ApprovalError: They are not those that were approved.
            InvalidArguments: They are not those that hooks and policies saw.
        """
        if self._digest_of(values) == seal:
            return
        if is_approved:
            raise ApprovalError(self.plan.name, "the arguments changed after it was given, before the tool ran")
        before, after = self.canonical.values, self.plan.spec.canonical(values).values
        changed = _changed_names(before, after) or [""]
        raise InvalidArguments(self.plan.name, tuple(FieldProblem(name, _CHANGED_UNSEEN) for name in changed))

    def _digest_of(self, values: Mapping[str, Any]) -> str:
        return self.plan.spec.canonical(values).digest(self.plan.name)

    # --- edits

    def edited(self, values: Mapping[str, Any]) -> Arguments:
        """Return the arguments after an edit by a hook or the host, validated.

        Args:
            values: All of them after the edit.

        Raises:
            InvalidArguments: They do not fit.
        """
        plan, raw = self.plan, values
        is_validated = not plan.spec.has_objects or self.is_host  # a host's own objects are taken as they are
        if not plan.spec.has_validators and is_validated:
            read = plan.read_python(values, host=self.is_host)
        elif self.canonical.without_form or (after := plan.spec.canonical(values)).without_form:
            read = self._edited_objects(values)
        else:
            read, raw = self._edited_form(after.values, host=self.is_host)
        return Arguments(plan, raw, read, self.is_host, False, self.original or self, self.secrets)

    def overridden(self, values: Mapping[str, Any]) -> Arguments:
        """Return an approver's arguments in the place of these, as if the call had come with them.

        Args:
            values: All of them; where one stands as it was shown, a hidden secret has its real value again.

        Raises:
            InvalidArguments: They do not fit.
            SchemaError: The tool has no schema to check them against.
        """
        plan, raw = self.plan, self._with_secrets(values)
        if not plan.spec.has_validators:
            return Arguments(plan, dict(raw), plan.spec.read(dict(raw)), earlier_secrets=self.secrets)
        read, text = self._edited_form(plan.spec.as_given(raw), derive=False)
        return Arguments(plan, text, read, earlier_secrets=self.secrets)

    def validated(self) -> Arguments:
        """Return a host's arguments validated, if nothing has looked at them so far.

        Raises:
            InvalidArguments: They do not fit.
        """
        if not self.is_unread:
            return self
        return Arguments(self.plan, self.raw, self.plan.validated(self.values), self.is_host, original=self.original)

    def _edited_form(
        self, after: Mapping[str, Any], *, host: bool = False, derive: bool = True
    ) -> tuple[dict[str, Any], str]:
        """Return arguments after an edit, and the JSON text from which they were read.

        Args:
            after: The JSON form of all of them after the edit, not validated so far.
            host: They may name what only a host gives.
            derive: A validator may make another value of what was not edited, out of what was.

        Raises:
            InvalidArguments: They do not fit, or a validator changes an edited value a second time.
        """
        plan, form, base = self.plan, self.canonical.values, self.stored()
        changed = {key: value for key, value in after.items() if _differs(form, key, value)}
        others = {key: value for key, value in base.values.items() if key in after or key not in form}
        merged = others | changed
        read = partial(plan.read_json, host=host, reading=base.reading, convert=derive)
        arguments = _read_edit(plan, read, merged, changed)
        values = plan.spec.canonical(arguments).values
        if any(_differs(values, key, value) for key, value in changed.items()):  # "7" for 7, or cents for euros
            again = _read_edit(plan, read, merged | {key: values[key] for key in changed if key in values}, changed)
            second = plan.spec.canonical(again).values
            _refuse(plan, (key for key in changed if _differs(second, key, values.get(key))), _UNSTABLE)
        if not derive:
            derived = (key for key in after if key not in changed and _differs(values, key, form[key]))
            _refuse(plan, derived, "it comes to another value with this edit; give that value, too")
        return arguments, json.dumps(merged)

    def _edited_objects(self, after: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments after an edit, some of which are Python objects without a JSON form."""
        read, before = self.plan.read_python(after, host=self.is_host), self.values.items()
        same = {name: value for name, value in before if name in after and equal_values(after[name], value)}
        return {**read, **same}

    def _with_secrets(self, after: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return an approver's arguments, with the real value wherever the hidden form of one stands.

        Raises:
            InvalidArguments: An argument that they edited holds a hidden secret.
        """
        form = self.canonical
        if form.shown is form.values:
            return after
        values = self.plan.spec.as_given(after)
        changed = {name: value for name, value in values.items() if _differs(form.shown, name, value)}
        shown = hidden_paths(form.shown)  # another path has a key that the approver typed, which may be secret
        typed = [(name, path) for name, value in changed.items() for path in hidden_paths(value, name)]
        hidden = dict.fromkeys(path if path in shown else name for name, path in typed)
        _refuse(self.plan, hidden, "give the real value in place of the hidden one")
        unchanged = {name: form.values[name] for name in values if name not in changed}
        return {**values, **unchanged} if unchanged else after


_FORMS: Final[Mapping[str, Callable[[Arguments], Any]]] = {
    **{name: getattr(Arguments, f"_make_{name}") for name in ("canonical", "for_record", "secrets")},
    "mask": lambda _: (None, None, NOTHING_HIDDEN),
}
NOT_READ: Final = Arguments(cast("CompiledTool", None), {}, {})
"""The arguments of a call that were not read so far."""
NOT_READ.canonical, NOT_READ.secrets = schema.CanonicalArguments({}, {}), frozenset()


def restored_arguments(plan: CompiledTool, data: Mapping[str, Any], *, is_seen: bool) -> Arguments:
    """Return the arguments that a call had in another process.

    Args:
        plan: The tool.
        data: The JSON of the call, of `Call.to_dict`.
        is_seen: Whether they have to be those that were seen there.

    Raises:
        InvalidArguments: The tool does not take them any more; or one is another one when it is read from JSON.
        SchemaError: The tool has no schema any more.
    """
    problems = tuple(FieldProblem(name, _SAME_PROCESS) for name in data.get("same_process", ()))
    if problems and is_seen:
        raise InvalidArguments(plan.name, problems)
    stored = data["arguments"] if data["given"] is None else data["given"]
    is_host = data["origin"] == "host"
    values = plan.read_json(stored, host=is_host, reading=data.get("reading", "json"))
    return Arguments(plan, json.dumps(stored), values, is_host)


def unread_arguments(plan: CompiledTool, data: Mapping[str, Any]) -> Arguments:
    """Return the arguments that a call had in another process, as its tool does not take them any more."""
    stored = data["arguments"] if data["given"] is None else data["given"]
    return Arguments(plan, json.dumps(stored), dict(data["arguments"]), data["origin"] == "host")


def changed_since(plan: CompiledTool, before: Mapping[str, Any], after: Mapping[str, Any]) -> InvalidArguments:
    """Return the error for arguments that came back from JSON as others than were seen; their values are not in it."""
    problems = [FieldProblem(name, _CHANGED_SINCE) for name in _changed_names(before, after)]
    return InvalidArguments(
        plan.name, tuple(problems) or (FieldProblem("", "they come back as others than were seen"),)
    )


def equal_values(value: Any, other: Any) -> bool:
    """Return whether two values are equal, such as a call's arguments; what cannot be compared counts as edited."""
    try:
        return value is other or bool(value == other)
    except Exception:  # the `__eq__` of any type
        return False


def _read_edit(plan: CompiledTool, read: _Read, values: Mapping[str, Any], changed: Iterable[str]) -> dict[str, Any]:
    try:
        return read(values)
    except InvalidArguments:
        raise
    except Exception as error:  # a validator is the code of the type's author, and may not take its own result
        raise InvalidArguments(plan.name, tuple(FieldProblem(key, _UNSTABLE) for key in changed)) from error


def _refuse(plan: CompiledTool, names: Iterable[str], problem: str) -> None:
    problems = tuple(FieldProblem(name, problem) for name in names)
    if problems:
        raise InvalidArguments(plan.name, problems)


def _changed_names(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    return [name for name in {**before, **after} if name not in before or _differs(after, name, before[name])]


def _differs(values: Mapping[str, Any], key: str, value: Any) -> bool:
    """Return whether the value under a key is not this one, `1` being another than `true` and `1.0`."""
    return key not in values or not equal_json(values[key], value)
