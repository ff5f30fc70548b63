"""A booking whose process is killed, for the agent of each framework beside this.

The steps of `take_step`: `named` and `plain` keep a yes, as `answers` makes it and as the framework has it, and are
killed after the effect; `resume` goes on with the same yes, and prints the ids of what is asked about a call in doubt;
`settle` does so, too, says that it was done, and prints what the model was given.
"""

from __future__ import annotations

import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeAlias

from toolcrib.approvals import SqliteApprovalStore
from toolcrib.calls import ApprovalRequest, Denial, Grant
from toolcrib.pipeline import Run
from toolcrib.tools import ez_tool

__all__ = ["Desk", "How", "Resumed", "take_step"]

How: TypeAlias = Literal["named", "plain", "stored"]
"""A yes as `answers` makes it, as the framework has it, or as the approval store has it."""


@dataclass
class Resumed:
    """What an agent comes to that goes on.

    Attributes:
        outputs: What its model was given for the call.
        asked: What a person has to decide now.
        answer: Gives an answer to the agent, which goes on.
    """

    outputs: list[Any]
    asked: list[ApprovalRequest] = field(default_factory=list[ApprovalRequest])
    answer: Callable[[Grant | Denial], Awaitable[Resumed]] | None = None


class Desk(ABC):
    """An agent that books a room when a person has said yes.

    Args:
        folder: Where it is kept, and what it has booked.
        step: What this process does.
    """

    def __init__(self, folder: Path, step: str) -> None:
        self.folder, self.step = folder, step

    @cached_property
    def book(self) -> Any:
        """The tool, which writes into a file what it books."""

        @ez_tool(requires_approval=True)
        async def book(city: str) -> str:
            """Book a room."""
            with (self.folder / "booked").open("a") as file:
                file.write(f"{city}\n")
            if self.step in ("named", "plain"):
                os.kill(os.getpid(), signal.SIGKILL)
            return f"booked {city}"

        return book

    @cached_property
    def store(self) -> SqliteApprovalStore:
        """The store of the requests, which other processes share."""
        return SqliteApprovalStore(self.folder / "approvals.db")

    def run(self, *about: Any) -> Run:
        """Return the run of the calls."""
        return Run(principal="ann", approvals=self.store)

    def write(self, name: str, text: str) -> None:
        """Keep a text for other processes."""
        (self.folder / name).write_text(text)

    def read(self, name: str) -> str:
        """Return the text that a process before kept."""
        return (self.folder / name).read_text()

    @abstractmethod
    async def ask(self) -> None:
        """Run the agent until it asks."""

    @abstractmethod
    async def approve(self, how: How) -> None:
        """Keep a yes."""

    def yes(self, request: ApprovalRequest, how: How) -> Grant | ApprovalRequest:
        """Return what `answers` is given."""
        return request if how == "stored" else request.grant("ann")

    @abstractmethod
    async def resume(self) -> Resumed:
        """Go on with the yes that is kept."""


async def take_step(framework: str, step: str, folder: Path) -> None:
    """Take a step of a framework's agent."""
    desk: Desk = import_module(f"tests.frameworks.killed.{framework}").Agent(folder, step)
    if step in ("named", "plain"):
        await desk.ask()
        await desk.approve("plain" if step == "plain" else "named")
    resumed = await desk.resume()
    print([request.id for request in resumed.asked if request.in_doubt])
    if step == "settle":
        assert resumed.answer is not None
        [request] = resumed.asked
        print((await resumed.answer(request.done("booked by hand", "bob"))).outputs)
