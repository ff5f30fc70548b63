"""Answers that were used in this process: each of them counts once."""

from __future__ import annotations

import threading


class UsedAnswers:
    """The answers that were used in this process, by the marks of their questions; the oldest are forgotten."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._words: dict[str, str] = {}
        self._lock = threading.Lock()  # programs and agents may run in several threads

    def add(self, mark: str, word: str) -> str | None:
        """Record how a request or a call was answered; return how it was before, if it was."""
        with self._lock:
            before = self._words.get(mark)
            if before is None:
                self._words[mark] = word
                if len(self._words) > self._most:
                    del self._words[next(iter(self._words))]
            return before


used_answers = UsedAnswers(most=50_000)
"""The answers that were used in this process, where no store keeps them.

It is one for the process, because copies of one suspended call may be recovered by different pipelines at once. What
several processes recover needs a store.
"""
