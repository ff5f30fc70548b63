"""A host that runs hostile programs, and says of each what came back and whether the host is still itself.

A process of its own, started by `harness`: `python -m tests.attacks.victim JOB`, where JOB is a file of JSON. Each
result is a line of JSON. Its tools, its environment and its open file are what the programs are after.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import gc
import io
import json
import os
import sys
import threading
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from toolcrib import Toolset, ez_tool
from toolcrib import sandbox as sandboxes
from toolcrib.code import SandboxLimits, Toolkit

LIMITS = SandboxLimits(program_time=1.0, wall_time=3.0, sleep_time=1.0, memory=128 * 1024 * 1024)
PATIENT = SandboxLimits(program_time=20.0, wall_time=60.0, sleep_time=20.0)
PACKAGES = ("numpy", "pandas", "pyarrow", "matplotlib")
WALLS = ("bubblewrap", "gvisor")
CONFIG = {"admin": False}
HOSTKEY = "hk-" + os.environ.get("SECRET_CANARY", "")[::-1]
_dumps = json.JSONEncoder(default=repr).encode
_CHECK = """
import json, builtins
try:
    print("SEEN" if hasattr(json, "BACKDOOR") or hasattr(builtins, "BACKDOOR") else "clean")
except Exception:
    print("clean")
try:
    print("SEEN", BACKDOOR)
except Exception:
    print("clean")
"""
_NEIGHBOUR = "import time\nfor n in range(20):\n    time.sleep(0.02)\n    add(n, 1)\nprint('alive')\n"
Run = Callable[..., Awaitable[list[str]]]


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def get_config() -> dict[str, Any]:
    """Return the configuration."""
    return CONFIG


def big() -> str:
    """Return a megabyte."""
    return "x" * (1 << 20)


def secret_tool() -> str:
    """Do what nobody was offered."""
    mark("unoffered")
    return "gotcha"


def wipe() -> str:
    """Do what needs a person's yes."""
    mark("guarded")
    return "wiped"


def mark(name: str) -> None:
    """Leave a file that the harness looks for."""
    (Path(JOB["marks"]) / name).write_text("x")


def in_sandbox(sandbox: Any) -> Run:
    """Return what runs a program as any user of the library would."""
    tools = Toolset([ez_tool(add), ez_tool(get_config), ez_tool(big), ez_tool(wipe, requires_approval=True)])
    sandbox = sandbox or sandboxes.default_sandbox()
    hurried, patient = (Toolkit(tools, sandbox=sandbox, limits=limits) for limits in (LIMITS, PATIENT))

    async def run(code: str, *, hurry: bool = True) -> list[str]:
        result = await (hurried if hurry else patient).execute_async(code)
        return [result.output, repr(result.return_value), result.error_output, result.error or ""]

    return run


async def bare(code: str) -> list[str]:
    """Run a program in this process with nothing around it: the control, which shows that the detectors work."""
    return await asyncio.to_thread(_executed, code)  # it may want an event loop of its own


def _executed(code: str) -> list[str]:
    names = {"add": add, "get_config": get_config, "big": big, "wipe": lambda: None, "__name__": "__main__"}
    tree = ast.parse(code)
    last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(tree, "program", "exec"), names)
            value = repr(eval(compile(last, "program", "eval"), names)) if last else ""
        except Exception as error:
            value = f"{type(error).__name__}: {error}"
    return [printed.getvalue(), value]


def engine() -> Run:
    """Return what the job asks for."""
    if JOB["engine"] == "control":
        return bare
    if JOB["engine"] == "monty":
        return in_sandbox(sandboxes.MontySandbox())
    if JOB["engine"] in WALLS:
        return in_sandbox(sandboxes.sandbox_named(JOB["engine"]))
    if JOB["engine"] == "packages":
        return in_sandbox(sandboxes.ProcessSandbox(packages=PACKAGES))
    if JOB["skip"]:
        return in_sandbox(sandboxes.ProcessSandbox(require=frozenset(), skip=frozenset(JOB["skip"])))
    return in_sandbox(
        None if JOB["user"] is None else sandboxes.ProcessSandbox()
    )  # None is the default, whatever it is


def become(user: int) -> None:
    """Be a user without rights, with a Python for the sandbox that this user may start."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    sys.executable = next(each for each in (sys.executable, "/usr/bin/python3") if os.access(each, os.X_OK))


def tampered() -> list[str]:
    """Return what of the host is not as it was."""
    found: list[str] = []
    with contextlib.suppress(Exception):
        checks = {
            "json": json.dumps({"a": 1}) == '{"a": 1}',
            "uuid": str(uuid.uuid4()) != "PWNED",
            "tool": add(1, 2) == 3,
            "config": CONFIG == {"admin": False},
        }
        found += [name for name, right in checks.items() if not right]
    return found


async def attempt(name: str, code: str, run: Run) -> dict[str, Any]:
    """Run one program and report on it."""
    began = time.monotonic()
    report: dict[str, Any] = {"name": name}
    beside = (
        asyncio.ensure_future(run(_NEIGHBOUR, hurry=False))
        if "neighbour" in name and JOB["engine"] != "control"
        else None
    )
    try:
        said = await run(code)
    except Exception as error:
        said = [f"{type(error).__name__}: {error}"]
        report["raised"] = said[0]
    except BaseException as error:  # the host must never see one of a program's
        said = [f"{type(error).__name__}: {error}"]
        report["baseexc"] = type(error).__name__
    report["secs"] = round(time.monotonic() - began, 2)
    if beside is not None:
        report["neighbour"] = "".join(await beside)
    if "BACKDOOR" in code:
        report["persist"] = "SEEN" in "".join(await run(_CHECK))
    report["size"] = sum(len(text or "") for text in said)
    text = _dumps(said)
    report["hostkey"] = HOSTKEY in text
    report["said"] = [(part or "")[:20_000] for part in said]
    report["tamper"] = tampered()
    report["threads"] = threading.active_count()
    return report


async def main() -> None:
    """Run the job's programs, a few at a time."""
    run = engine()
    if JOB["engine"] != "control":
        await run("print(1)")  # whatever is started once is started before anything is measured
    if JOB["user"] is not None:  # by now all is loaded that this user may not read
        become(JOB["user"])
        run = engine()
        await run("print(1)")
    tell({"ready": os.getpid()})
    slots = asyncio.Semaphore(JOB["at_once"])

    async def one(name: str, code: str) -> None:
        async with slots:
            tell(await attempt(name, code, run))

    await asyncio.gather(*(one(name, code) for name, code in JOB["programs"]))
    gc.collect()
    tell({"over": True})
    time.sleep(JOB["linger"])  # noqa: ASYNC251 -- idle on purpose: whatever computes now is left over
    os._exit(0)


def tell(report: dict[str, Any]) -> None:
    """Write one line for the harness."""
    os.write(JOB["fd"], (_dumps(report) + "\n").encode("utf-8", "replace"))


if __name__ == "__main__":
    JOB = json.loads(Path(sys.argv[1]).read_text())
    leaky = os.open(Path(JOB["marks"]) / "secret.txt", os.O_RDONLY)  # a descriptor that a careless child would inherit
    os.set_inheritable(leaky, True)
    asyncio.run(main())
