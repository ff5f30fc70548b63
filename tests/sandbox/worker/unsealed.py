"""A host for workers in tests: starts one in a process of its own, unsealed, and answers its frames from a table."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import toolcrib.sandbox

Frame = dict[str, Any]
Answer = Callable[..., Any]

_SOURCE = toolcrib.sandbox.__path__[0] + "/_worker"
BOOT = """
import importlib.util, sys
start = PLACE + '/__init__.py'
spec = importlib.util.spec_from_file_location('toolcrib_worker', start, submodule_search_locations=[PLACE])
sys.modules['toolcrib_worker'] = package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
from toolcrib_worker import _entry
_entry.warm_up()
_entry.serve(int(sys.argv[1]))
"""


@dataclass
class Ran:
    """How a program went: what it sent."""

    frames: list[Frame] = field(default_factory=list)

    @property
    def done(self) -> Frame:
        return self.frames[-1]

    @property
    def value(self) -> Any:
        assert "error" not in self.done, self.done["error"]
        return self.done["v"]

    @property
    def error(self) -> Frame:
        return self.done["error"]

    @property
    def output(self) -> str:
        return "".join(frame["s"] for frame in self.frames if frame["t"] == "out" and not frame["err"])

    @property
    def error_output(self) -> str:
        return "".join(frame["s"] for frame in self.frames if frame["t"] == "out" and frame["err"])

    @property
    def calls(self) -> list[tuple[str, list[Any], dict[str, Any]]]:
        return [(f["name"], f["args"], f["kwargs"]) for f in self.frames if f["t"] == "call"]

    @property
    def clock(self) -> list[int]:
        return [reading for frame in self.frames for reading in frame.get("clock", ())]

    def kinds(self, *kinds: str) -> list[str]:
        return [frame["t"] for frame in self.frames if frame["t"] in kinds]


class UnsealedWorker:
    """A worker in a process of its own. Answers in the order asked; holds answers back until the program waits."""

    def __init__(self, **tools: Answer) -> None:
        self.tools = tools
        self._end, theirs = socket.socketpair()
        self._end.settimeout(60)
        code = f"PLACE = {_SOURCE!r}\n{BOOT}"
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-S", "-B", "-s", "-X", "utf8", "-c", code, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={"PYTHONHASHSEED": "0"},
            cwd="/",
        )
        theirs.close()
        self._buffer = b""

    def close(self) -> None:
        self._end.close()
        self._process.kill()
        self._process.wait()

    # --- frames

    def send(self, *frames: Frame) -> None:
        """Send a batch."""
        for index, frame in enumerate(frames):
            more = {"more": True} if index < len(frames) - 1 else {}
            self.send_raw(json.dumps({**frame, **more}).encode())

    def send_raw(self, body: bytes) -> None:
        self._end.sendall(len(body).to_bytes(4, "big") + body)

    def receive(self) -> Frame:
        size = int.from_bytes(self._take(4), "big")
        return json.loads(self._take(size))

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            piece = self._end.recv(1 << 16)
            if not piece:
                raise EOFError
            self._buffer += piece
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    # --- programs

    def hang_up(self) -> None:
        """End the conversation."""
        self._end.close()

    def ended(self) -> int:
        """Return how the process ended, when it has."""
        return self._process.wait(60)

    def run(self, code: str, **options: Any) -> Ran:
        """Run a program to its end."""
        self.begin(code, **options)
        return self.answer_all()

    def begin(self, code: str, **options: Any) -> None:
        """Send a program."""
        tools = {
            name: {"stream": getattr(tool, "stream", False), "signature": f"{name}(...)"}
            for name, tool in self.tools.items()
        }
        frame = {"t": "run", "code": code, "name": "program.py", "tools": tools, "seed": "5eed", "clock": []}
        frame |= {"files": [], "artifacts": [20, 100_000]}
        self.send({**frame, "keep": True, "value_size": 100_000, **options})

    def answer_all(self) -> Ran:
        """Answer what the program asks for, until it is done."""
        ran = Ran()
        answers: list[Frame] = []
        streams: dict[int, Iterator[Any]] = {}
        while True:
            frame = self.receive()
            ran.frames.append(frame)
            match frame["t"]:
                case "call" if getattr(self.tools[frame["name"]], "stream", False):
                    streams[frame["id"]] = iter(self.tools[frame["name"]](*frame["args"], **frame["kwargs"]))
                case "call":
                    answers.append(self._answer(frame))
                case "next":
                    answers.append(_next(frame["id"], streams[frame["id"]]))
                case "done":
                    return ran
                case _:
                    pass
            if frame["t"] == "wait" and frame["for"] is not None and not answers:
                answers.append({"t": "wake"})
            if frame.get("wait") or (frame["t"] == "wait" and answers):
                self.send(*answers)
                answers = []

    def _answer(self, call: Frame) -> Frame:
        try:
            value = self.tools[call["name"]](*call["args"], **call["kwargs"])
        except Exception as error:
            said = {"type": type(error).__name__, "message": str(error)}
            return {"t": "ret", "id": call["id"], "err": said}
        return {"t": "ret", "id": call["id"], "v": value}


def _next(call: int, values: Iterator[Any]) -> Frame:
    try:
        return {"t": "item", "id": call, "v": next(values)}
    except StopIteration:
        return {"t": "ret", "id": call, "v": None}
    except Exception as error:
        return {"t": "ret", "id": call, "err": {"type": type(error).__name__, "message": str(error)}}


def add(*numbers: int, more: int = 0) -> int:
    return sum(numbers) + more


def fail(kind: str, message: str) -> None:
    raise type(kind, (Exception,), {})(message)


def streaming(function: Answer) -> Answer:
    function.stream = True
    return function


@streaming
def count(to: int, then: str = "") -> Iterator[int]:
    yield from range(to)
    if then:
        raise ValueError(then)


TOOLS: dict[str, Answer] = {
    "add": add,
    "fail": fail,
    "count": count,
    "echo": lambda value: value,
    "orders": lambda: "all",
    "orders__lines": lambda number: [number],
    "lone__child": lambda: "child",
    "take": lambda *args, **kwargs: None,
}
