"""Graph of a program's values: the places that hold them, and what flows from one to another."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

__all__ = ["ANYTHING", "SEAL", "Arrival", "CallSite", "CannotFollow", "FunctionPlaces", "Scope", "Token", "ValueGraph"]

_MOST_STEPS: Final = 50_000
_MOST_FIELDS: Final = 4

SEAL: Final = ""
"""A step from place to place after which no field of a result can be taken any more.

None as a step passes on what is given, and another text takes a field of it.
"""


class Token(NamedTuple):
    """What flows: the result of a tool, or fields of it, or a literal; without both it may be anything."""

    tool: str = ""
    fields: tuple[str, ...] = ()
    goes_on: bool = False
    literal: str | float | None = None

    def after(self, step: str | None) -> Token:
        """Return what comes of it by a step."""
        if step is None or not self.goes_on:
            return self
        if step == SEAL or len(self.fields) == _MOST_FIELDS:
            return self._replace(goes_on=False)
        return self._replace(fields=(*self.fields, step))


ANYTHING: Final = Token()


@dataclass(slots=True)
class Arrival:
    """What may come into an argument.

    Attributes:
        results: Results, each as a tool's name and fields of its result.
        literals: Literals of the program.
        is_known: Whether nothing else may come.
    """

    results: set[tuple[str, tuple[str, ...]]] = field(default_factory=set[tuple[str, tuple[str, ...]]])
    literals: set[str | float] = field(default_factory=set[str | float])
    is_known: bool = True

    def add(self, token: Token) -> None:
        """Add what comes."""
        if token.tool:
            self.results.add((token.tool, token.fields))
        elif token.literal is not None:
            self.literals.add(token.literal)
        else:
            self.is_known = False


@dataclass(slots=True)
class CallSite:
    """A call of a tool, as the program has it.

    Attributes:
        tool: The tool, by the name that the program uses.
        first: The line where it begins; 0 for one that may be made at any line.
        last: The line where it ends.
        arrivals: What may come into its arguments, by name or place.
    """

    tool: str
    first: int = 0
    last: int = 0
    arrivals: dict[str | int, Arrival] = field(default_factory=dict[str | int, Arrival])


class CannotFollow(Exception):
    """The program does what is not followed, or is too large."""


class ValueGraph:
    """Places that hold values, and what flows between them.

    A place has three nodes: what its value may be made of, what is put into the object that it holds (one higher), and
    what is put into the parts of that object (two higher).
    """

    def __init__(self) -> None:
        self._edges: list[list[tuple[int, str | None]]] = []
        self._seeds: list[tuple[int, Token]] = []
        self._sites: list[tuple[CallSite, dict[str | int, int]]] = []

    def place(self, token: Token | None = None) -> int:
        """Return a new place."""
        made = len(self._edges)
        if made > _MOST_STEPS:
            raise CannotFollow
        self._edges += [[], [], []]
        for part in (1, 2):
            self.copy(made + part, made)
        if token is not None:
            self._seeds.append((made, token))
        return made

    def copy(self, source: int, target: int, step: str | None = SEAL) -> None:
        """Have a place hold what is made of another's value, and no part of it that could be changed."""
        self._edges[source].append((target, step))

    def same(self, source: int, target: int) -> None:
        """Have a place hold the object that another holds."""
        self.copy(source, target, None)
        for part in (1, 2):
            self._both(source + part, target + part)

    def part(self, whole: int, target: int, step: str | None) -> None:
        """Have a place hold a part of the object that another holds."""
        self.copy(whole, target, step)
        self.copy(target + 1, whole + 2)
        self._both(whole + 2, target + 2)

    def share(self, source: int, target: int) -> None:
        """Have a place hold a new object that has the parts of another."""
        self.copy(source, target, None)
        self._both(source + 2, target + 2)

    def pass_on(self, source: int, target: int, step: str | None = SEAL) -> None:
        """Have a place hold the object, a part of it, or a new one that has it as a part: which is not known."""
        for part in (1, 2):
            self._both(source + part, target + part)
        self.part(source, target, step)
        self.hold(source, target, step)

    def hold(self, value: int, holder: int, step: str | None = SEAL) -> None:
        """Have a place hold a new object that has a value as a part."""
        self.copy(value, holder, step)
        for part in (1, 2):
            self.copy(holder + 2, value + part)

    def put(self, value: int, holder: int) -> None:
        """Put a value into the object that a place holds."""
        self.hold(value, holder)
        self.copy(value, holder + 1)

    def _both(self, one: int, other: int) -> None:
        self.copy(one, other)
        self.copy(other, one)

    def give(self, site: CallSite, values: Iterable[tuple[str | int, int]]) -> None:
        """Give values to a tool, each by the name or the place of its argument."""
        places: dict[str | int, int] = {}
        for argument, value in values:
            if argument not in places:
                places[argument] = self.place()
            self.copy(value, places[argument])
        self._sites.append((site, places))

    def solved(self) -> Sequence[CallSite]:
        """Return the calls of tools, with what comes into their arguments."""
        held: list[set[Token]] = [set() for _ in self._edges]
        waiting, steps = deque(self._seeds), 0
        while waiting:
            node, token = waiting.popleft()
            if token in held[node]:
                continue
            held[node].add(token)
            steps += 1 + len(self._edges[node])
            if steps > _MOST_STEPS:
                raise CannotFollow
            waiting.extend((target, token.after(step)) for target, step in self._edges[node])
        for site, places in self._sites:
            for argument, node in places.items():
                arrival = site.arrivals[argument] = Arrival()
                for token in held[node]:
                    arrival.add(token)
        return [site for site, _ in self._sites]


@dataclass(slots=True)
class FunctionPlaces:
    """A function of the program: its parameters in order and by name, those for further arguments, and its result."""

    order: list[str]
    places: dict[str, int]
    rest: list[int]
    result: int


class Scope:
    """The names of a function's parameters, or of a comprehension's; the module's without a scope around it."""

    def __init__(self, graph: ValueGraph, outer: Scope | None, places: dict[str, int], result: int) -> None:
        self._graph, self._outer, self._places, self.result = graph, outer, places, result

    def place(self, name: str) -> int:
        """Return the place of a name."""
        if name not in self._places:
            if self._outer is not None:
                return self._outer.place(name)
            self._places[name] = self._graph.place()
        return self._places[name]
