"""A gate, as `make mutants` takes it away."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Gate"]


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate, and the source text that is replaced to take it away.

    Attributes:
        file: Relative to `src/toolcrib`.
        was: Must be in the file exactly once, or the patch is out of date.
        tests: Where its test is looked for, one place after the other.
    """

    name: str
    file: str
    was: str
    becomes: str
    tests: tuple[str, ...] = ("tests/test_ways.py", "tests/test_ways_translation.py", "tests/pipeline")

    @property
    def needs_frameworks(self) -> bool:
        """Whether its tests need the SDKs of other frameworks, which are in an environment of their own."""
        return self.tests[0].startswith("tests/frameworks/")
