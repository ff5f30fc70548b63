"""The gates of replays, each with the patch that removes it."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["REPLAY_GATES"]

_REPLAY = ("tests/replay",)

REPLAY_GATES: tuple[Gate, ...] = (
    Gate(
        "no tool is executed in a replay",
        "replay/_rehearsal.py",
        "            result = await self._pipeline.admit(received, run, hooks=hooks)\n",
        "            result = await self._pipeline.admit(received, run, hooks=hooks)\n"
        "            if is_call(result):\n"
        "                await self._pipeline.execute(result)\n",
        _REPLAY,
    ),
    Gate(
        "an answer counts for the arguments that it was given for",
        "replay/_answers.py",
        'answer.get("digest") == request.digest and ',
        "",
        _REPLAY,
    ),
    Gate(
        "hooks are not asked in a replay without them",
        "replay/_rehearsal.py",
        "        if self._asks_hooks:\n",
        "        if True:\n",
        _REPLAY,
    ),
    Gate(
        "a hidden secret is told to no gate in the place of the real one",
        "replay/_replay.py",
        'return _SECRET.format(", ".join(hidden)) if hidden else ""',
        'return ""',
        _REPLAY,
    ),
    Gate(
        "a call inside one that would not run is not made in a replay",
        "replay/_replay.py",
        "        if self._is_inside_stopped(call):\n",
        "        if False:\n",
        _REPLAY,
    ),
)
