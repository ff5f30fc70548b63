"""State of a run, which its views share: counters, what features keep, standing grants."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final

from toolcrib import approvals as _approvals
from toolcrib import calls as _calls
from toolcrib import hooks as _hooks
from toolcrib.calls import StoredFields, versioned
from toolcrib.errors import LimitReached
from toolcrib.hooks import GateStep
from toolcrib.pipeline._run_options import CallLimits, Channel, Requirement

_MOST_HEARD = 100


class SharedState:
    """The mutable state of a run, which its views share.

    Attributes:
        id: Names the run.
        grants: Standing grants given in the run, where it has no approval store.
        user_messages: The user's messages since a record last had them.
        earlier_ids: The ids that the run had in other processes.
        grant_uses: How much of its standing grants was used, by the requests that they answered.
        features: The state that features keep for the run, by their names.
        stored_features: The state that features of other processes kept for it, by their names, as JSON shapes.
        slots: The bound of executions at a time, for each event loop that the run is used in.
        used: The things for a single use that were used: grants for one call without a request, calls written as JSON.
    """

    id: str
    calls: dict[str, int]
    retries: dict[str, int]
    revealed: dict[str, None]
    completed: set[str]
    used: set[str]
    earlier_ids: set[str]
    grant_uses: dict[str, _calls.GrantUse]
    features: dict[str, _hooks.FeatureState]
    stored_features: dict[str, Mapping[str, Any]]
    grants: tuple[_calls.Grant, ...] = ()
    user_messages: tuple[str, ...] = ()
    slots: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None

    def __getattr__(self, name: str) -> Any:
        """Make a container, or the id, when it is first used: most runs use none."""
        make = _MADE_LATE.get(name)
        if make is None:
            raise AttributeError(name)
        return vars(self).setdefault(name, make())  # of two threads the first one's is used by both


_numbers = Random()  # seeded by the system; an id is no secret
if hasattr(os, "register_at_fork"):  # a forked child must not hand out its parent's ids
    os.register_at_fork(after_in_child=_numbers.seed)
_MADE_LATE: Final[Mapping[str, Callable[[], Any]]] = {
    "calls": dict,
    "completed": set,
    "earlier_ids": set,
    "features": dict,
    "grant_uses": dict,
    "id": lambda: f"run_{_numbers.getrandbits(64):016x}",  # a few characters of it tell it from others
    "retries": dict,
    "revealed": dict,
    "stored_features": dict,
    "used": set,
}


class RunState:
    """Counters of a run, what its features keep for it, and its standing grants: the part of `Run` that changes."""

    __slots__ = ("_state",)
    limits: CallLimits | None
    channel: Channel
    feature_parts: tuple[_hooks.FeatureParts, ...]
    _state: SharedState

    @property
    def run(self) -> RunState:
        """The run itself; a view's is the one that it was made of."""
        return self

    @property
    def id(self) -> str:
        """Names the run in the record; made when it is first read, where none was given."""
        return self._state.id

    # --- what is counted

    @property
    def calls(self) -> dict[str, int]:
        """The number of calls of each tool, by name, where the run has limits."""
        return self._state.calls

    @property
    def retries(self) -> dict[str, int]:
        """The number of retryable answers that a model got, by tool."""
        return self._state.retries

    @property
    def completed(self) -> set[str]:
        """The tools that completed, where the run has requirements."""
        return self._state.completed

    @property
    def revealed(self) -> dict[str, None]:
        """The names that were found in the run and may be called as well, in the order they were found."""
        return self._state.revealed

    def admit(self, tool: str) -> LimitReached | None:
        """Count one call of `tool`; return the limit that forbids it, if one does."""
        limits, state = self.limits, self._state
        if limits is not None:
            if limits.total is not None and sum(state.calls.values()) >= limits.total:
                return LimitReached(tool, "in total", limits.total)
            most = limits.of(tool)
            if most is not None and state.calls.get(tool, 0) >= most:
                return LimitReached(tool, f"of `{tool}`", most)
        state.calls[tool] = state.calls.get(tool, 0) + 1
        return None

    def retry(self, tool: str, most: int) -> bool:
        """Count one retryable answer for `tool`; return whether the model may try again."""
        retries = self._state.retries
        used = retries[tool] = retries.get(tool, 0) + 1
        return used <= most

    def restore(self, counted: Mapping[str, Any]) -> None:
        """Restore what `counted` said of the run in another process; nothing that was counted is forgotten."""
        state, counted = self._state, StoredFields("Run", counted)
        for counts, key in ((state.calls, "calls"), (state.retries, "retries")):
            for name, count in counted.get(key, {}).items():
                counts[name] = max(counts.get(name, 0), count)
        state.completed.update(counted.get("completed", ()))
        state.revealed.update(dict.fromkeys(counted.get("revealed", ())))
        state.used.update(counted.get("used", ()))
        for name, data in counted.get("features", {}).items():
            feature = self.feature(name)
            if feature is None:
                state.stored_features[name] = data
            else:
                feature.restore(data, is_same_run=counted.get("id") == self.id)
        state.earlier_ids.add(counted.get("id", self.id))

    def has_counted(self, run_id: str) -> bool:
        """Return whether a call that was counted in the run of this id was counted in this one."""
        return run_id == self.id or run_id in self._state.earlier_ids

    def counted(self) -> dict[str, Any]:
        """Return the run's counters as JSON shapes, for `restore` in another process.

        Standing grants are not in it: who can write the text could grant itself something, and one that was taken back
        would come back. A store keeps them, or the host gives them to the new run with `add_standing_grant`.
        """
        state = self._state
        features = {**state.stored_features, **{name: feature.to_dict() for name, feature in state.features.items()}}
        features = {name: data for name, data in features.items() if data}
        data: dict[str, Any] = {
            "id": self.id,
            "calls": dict(state.calls),
            "retries": dict(state.retries),
            "completed": sorted(state.completed),
            "revealed": list(state.revealed),
            "used": sorted(state.used),
            **({"features": features} if features else {}),
        }
        return versioned("Run", data)

    # --- what its calls lack

    def finish(self) -> tuple[str, ...]:
        """Return the unmet requirements, a sentence each; empty when every one is met."""
        return tuple(
            f"`{required.tool}` has to complete before the run is finished, and has not."
            for required in self._lacking()
            if required.before_finish
        )

    def remarks(self) -> tuple[str, ...]:
        """Return the tools that should have been called and were not, though the run may finish; a sentence each."""
        return tuple(
            f"`{required.tool}` should have completed in the run, and has not."
            for required in self._lacking()
            if not required.before_finish
        )

    def _lacking(self) -> Iterator[Requirement]:
        required: Sequence[Requirement] = () if self.limits is None else self.limits.requirements
        return (requirement for requirement in required if requirement.tool not in self.completed)

    # --- features

    @property
    def feature_gates(self) -> tuple[GateStep, ...]:
        """The gates of its features."""
        return tuple(step for parts in self.feature_parts for step in parts.gates)

    def feature(self, name: str) -> _hooks.FeatureState | None:
        """Return the state of a feature in the run, by the feature's name; None for a run without it."""
        return next((self._feature_state(parts) for parts in self.feature_parts if parts.name == name), None)

    def _feature_state(self, parts: _hooks.FeatureParts) -> _hooks.FeatureState:
        states = self._state.features
        if parts.name not in states:
            states.setdefault(parts.name, parts.open(self.run))  # of two threads the first one's is used by both
        return states[parts.name]

    def _feature_states(self) -> Iterator[_hooks.FeatureState]:
        return map(self._feature_state, self.feature_parts)

    def read_input(self, value: _hooks.ModelInput) -> None:
        """Read a value that a model or a program is about to read into the features."""
        for state in self._feature_states():
            state.read_input(value, self)

    async def asks_about_program(self, code: str) -> bool:
        """Return whether a feature's gate has to check a program before it begins."""
        for state in self._feature_states():
            if await state.asks_about_program(code):
                return True
        return False

    def describe(self, call: Any) -> dict[str, Any]:
        """Return the features' data about a call that arrives, for the record."""
        data: dict[str, Any] = {}
        for state in self._feature_states():
            data |= state.describe(call)
        return data

    def add_user_message(self, text: str) -> None:
        """Keep a text of the user, for the features of the run and for its record."""
        if self.channel.record_words:
            self._state.user_messages = (*self._state.user_messages[1 - _MOST_HEARD :], text)
        if self.feature_parts:
            self.read_input(_hooks.ModelInput("user", text))

    def drain_user_messages(self) -> tuple[str, ...]:
        """Return the user's texts since the last call of this method, for a record: the last hundred."""
        messages, self._state.user_messages = self._state.user_messages, ()
        return messages

    # --- grants, and what is used once

    def standing_grant(self, request: _calls.ApprovalRequest) -> _calls.Grant | None:
        """Return a standing grant that was given in the run and fits a request."""
        fitting = (grant for grant in self._state.grants if not _approvals.misfit(grant, request))
        return next((grant for grant in fitting if not self._limit_reached(grant, request)), None)

    def use_standing_grant(self, grant: _calls.Grant, request: _calls.ApprovalRequest) -> str:
        """Count a call of the run that begins by a standing grant; return why that covers no more of them, if so."""
        why = self._limit_reached(grant, request)
        if not why and grant.is_limited and grant.request_id is not None:
            use = self._state.grant_uses.get(grant.request_id, _calls.GrantUse())
            self._state.grant_uses[grant.request_id] = grant.used_by(request, use)
        return why

    def _limit_reached(self, grant: _calls.Grant, request: _calls.ApprovalRequest) -> str:
        if not grant.is_limited:
            return ""
        return grant.limit_reached(request, self._state.grant_uses.get(grant.request_id or "", _calls.GrantUse()))

    def add_standing_grant(self, grant: _calls.Grant) -> None:
        """Keep a standing grant for the rest of the run."""
        if grant not in self._state.grants:
            self._state.grants = (*self._state.grants, grant)

    def claim(self, mark: str) -> bool:
        """Claim what may be used once; return False when it was used before."""
        fresh = mark not in self._state.used
        self._state.used.add(mark)
        return fresh

    def release(self, mark: str) -> None:
        """Release a claim: what may be used once was not used after all."""
        self._state.used.discard(mark)
