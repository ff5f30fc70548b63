"""Files of paused programs: the key that signs them, and the answers that were used already."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from toolcrib.approvals import ApprovalEntry, Execution, MemoryApprovalStore
from toolcrib.calls import ApprovalRequest, Denial, Grant, now
from toolcrib.cli._private_file import create_private, write_private
from toolcrib.code import PausedProgram
from toolcrib.errors import ApprovalError, PausedProgramError

_KEY_NAME = "TOOLCRIB_KEY"
KeyOption = Annotated[
    Path | None,
    typer.Option("--key", metavar="FILE", help="The key that signs a paused program; your own when left out."),
]


def _state_folder() -> Path:
    """Return the folder of this user's state, made when it is first needed."""
    base = os.environ.get("XDG_STATE_HOME") or (Path.home() / ".local" / "state")
    folder = Path(base) / "toolcrib"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def signing_key(file: Path | None) -> bytes:
    """Return the key of this user: of the file, of the variable TOOLCRIB_KEY, or one that is made once and kept.

    Raises:
        PausedProgramError: It cannot be read, or is too short.
    """
    text = os.environ.get(_KEY_NAME)
    if file is None and text is not None:
        return _long_enough(text.encode(), f"the variable {_KEY_NAME}")
    try:
        path = _own_key() if file is None else file
        return _long_enough(path.read_bytes().strip(), str(path))
    except OSError as error:
        raise PausedProgramError(f"the key in {error.filename} cannot be read ({error.strerror})") from None


def _own_key() -> Path:
    path = _state_folder() / "key"
    if not path.exists():
        fresh = path.with_name(f"key.{secrets.token_hex(4)}")
        create_private(fresh, secrets.token_hex(32).encode())
        try:
            os.link(fresh, path)  # of two processes that make one at once, one wins
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    return path


def _long_enough(key: bytes, where: str) -> bytes:
    if len(key) < 16:
        raise PausedProgramError(f"the key in {where} is too short; it must have 16 characters at least")
    return key


def write_paused(path: Path, paused: PausedProgram, target: str, key: bytes) -> None:
    """Write a paused program and its target, readable for its owner alone."""
    module, colon, attribute = target.partition(":")
    if Path(module).suffix in (".py", ".pyw"):
        target = f"{Path(module).resolve()}{colon}{attribute}"
    noted = replace(paused, note={"target": target, "folder": str(Path.cwd())})
    try:
        write_private(path, noted.to_bytes(key))
    except OSError as error:
        raise PausedProgramError(f"it cannot be written to {path} ({error.strerror})") from None


def read_paused(path: Path, key: bytes) -> PausedProgram:
    """Return the paused program of a file; raises PausedProgramError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PausedProgramError(f"{path} cannot be read ({error.strerror})") from None
    return PausedProgram.from_bytes(data, key)


class UsedAnswers(MemoryApprovalStore):
    """An approval store that remembers, for all processes of this user, which requests were used, and the outcome.

    A copy of a paused program's file is useless after the program was resumed. Standing grants last as long as the
    process.
    """

    def __init__(self) -> None:
        super().__init__()
        self._folder = _state_folder() / "used"
        self._folder.mkdir(mode=0o700, exist_ok=True)

    async def take(self, request: ApprovalRequest) -> Grant | Denial | ApprovalEntry | None:
        """Return a standing grant for this request, or its entry where its call is in doubt.

        Raises:
            ApprovalError: A call has used the request.
        """
        execution = self._read(request)
        if execution is None:
            return await super().take(request)
        if execution.state != "in doubt":
            raise _used(request)
        return ApprovalEntry(request, used_at=execution.begun_at, execution=execution)

    async def use(self, request: ApprovalRequest, answer: Grant | Denial) -> ApprovalEntry | None:
        """Keep an answer; a denial marks the request as used, and raises `ApprovalError` when it was used before."""
        if isinstance(answer, Denial):
            self._write_execution(request, Execution(ended_at=now()), new=True)
        return await super().use(request, answer)

    async def begin(
        self, request: ApprovalRequest, grant: Grant | None, *, again: bool = False
    ) -> ApprovalEntry | None:
        """Mark the request as used; raises `ApprovalError` when it was used before."""
        begun = await super().begin(request, grant, again=again)
        if begun is None:
            self._write_execution(request, Execution(), new=not again)
        return begun

    async def end(self, request: ApprovalRequest, grant: Grant | None, result: Mapping[str, Any] | None = None) -> None:
        """Record that the call has ended."""
        self._write_execution(request, Execution(ended_at=now()))
        await super().end(request, grant, result)

    async def break_off(self, request: ApprovalRequest, grant: Grant | None) -> None:
        """Record that the call was broken off: it is in doubt."""
        self._write_execution(request, Execution(process=""))
        await super().break_off(request, grant)

    def _read(self, request: ApprovalRequest) -> Execution | None:
        try:
            return Execution.from_dict(json.loads((self._folder / request.id).read_text() or "null"))
        except FileNotFoundError:
            return None

    def _write_execution(self, request: ApprovalRequest, execution: Execution, *, new: bool = False) -> None:
        """Write the state of the execution of a request, in one step.

        Raises:
            ApprovalError: It is to be `new`, and the request was used before.
        """
        path = self._folder / request.id
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        draft.write_text(json.dumps(execution.to_dict()))
        draft.chmod(0o600)
        try:
            if new:
                os.link(draft, path)  # one of several processes makes it
            else:
                draft.replace(path)
        except FileExistsError:
            raise _used(request) from None
        finally:
            draft.unlink(missing_ok=True)


def _used(request: ApprovalRequest) -> ApprovalError:
    return ApprovalError(request.tool, "the program was resumed from here before; this file is out of date")
