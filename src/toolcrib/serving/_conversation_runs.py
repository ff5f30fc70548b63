"""Runs of conversations with limits: each conversation of an agent has one, whose counts its runs share."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

from toolcrib.pipeline import CallLimits, Run

_MOST = 1_000
"""Conversations whose counts are kept; of more, those that had no run for the longest time are forgotten."""

_OF_THE_FIRST = ("gates", "deliveries", "features")
_OF_EACH = ("deps", "approver", "approvals", "principal", "provide", "sinks", "available", "channel", "durability")


class ConversationRuns:
    """The run of each conversation: its limits, and the standing grants that hold in it without an approval store.

    Args:
        limits: The limits of each conversation; None to have none, and to leave runs as they are.
    """

    def __init__(self, limits: CallLimits | None) -> None:
        self._limits = limits
        self._runs: OrderedDict[Hashable, tuple[Run, object]] = OrderedDict()

    def find(self, conversation: Hashable, given: Run | None, context: object) -> Run | None:
        """Return the run of the host as one that is counted with the others of its conversation.

        Args:
            conversation: What only this conversation has.
            given: The host's run, whose gates, deliveries and features are those of the conversation's first run.
            context: What the conversation is kept with, so that no other one gets its identity.

        Raises:
            TypeError: The host's run has limits, too.
        """
        if self._limits is None:
            return given
        if given is not None and given.limits is not None:
            raise TypeError("the limits are given twice: by GuardPolicy(limits=...), and by the run that it opens")
        each: dict[str, Any] = {} if given is None else {name: getattr(given, name) for name in _OF_EACH}
        known = self._runs.get(conversation)
        if known is None:
            first = {} if given is None else {name: getattr(given, name) for name in _OF_THE_FIRST}
            known = self._runs[conversation] = Run(limits=self._limits, **first, **each), context
        self._runs.move_to_end(conversation)
        if len(self._runs) > _MOST:
            self._runs.popitem(last=False)
        return known[0].view(**each)

    def rejoin(self, run: Run, run_id: str) -> bool:
        """Count a run in the conversation that the run of an id belongs to; return whether that is another one.

        A framework may not say by itself that what goes on is what stopped before: a call that was suspended does.
        """
        if run.run.id == run_id:
            return False
        earlier = next((known for known in self._runs.values() if known[0].id == run_id), None)
        if earlier is None:
            return False
        for conversation in [name for name, known in self._runs.items() if known[0] is run.run]:
            self._runs[conversation] = earlier[0], self._runs[conversation][1]
        return True
