"""Errors about optional packages, databases, engines, workers and servers."""

from __future__ import annotations

from toolcrib._passwords import hide_passwords
from toolcrib.errors._base import ToolcribError


class MissingExtraError(ToolcribError, ImportError):
    """A feature needs an optional dependency; the message names the extra."""

    code = "missing_extra"

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(feature, extra)
        self.feature, self.extra = feature, extra

    def __str__(self) -> str:
        return f"{self.feature} needs an optional dependency. Install it with: pip install 'toolcrib[{self.extra}]'"


class DatabaseError(ToolcribError, ConnectionError):
    """The database of durable work cannot be used; the message says why and names the remedy."""

    code = "database_error"

    def __init__(self, database: str, problem: str, remedy: str = "") -> None:
        database, problem = hide_passwords(database), hide_passwords(problem)
        super().__init__(database, problem, remedy)
        self.database, self.problem, self.remedy = database, problem, remedy

    def __str__(self) -> str:
        text = f"the database {self.database} cannot be used: {self.problem}"
        return f"{text}. {self.remedy}" if self.remedy else text


class DocumentError(ToolcribError, ValueError):
    """An OpenAPI document cannot be read or used; the message names it and says what would mend it."""

    code = "document_error"

    def __init__(self, document: str, problem: str) -> None:
        super().__init__(document, problem)
        self.document, self.problem = document, problem

    def __str__(self) -> str:
        return f"the OpenAPI document `{self.document}` {self.problem}"


class EngineError(ToolcribError, RuntimeError):
    """Durable work was asked for where no engine can do it: none runs, or a second was to be started."""

    code = "engine_error"


class WorkerError(ToolcribError, RuntimeError):
    """A worker cannot do what was asked under its name; the message says why."""

    code = "worker_error"

    def __init__(self, worker_id: str, problem: str) -> None:
        super().__init__(worker_id, problem)
        self.worker_id, self.problem = worker_id, problem

    def __str__(self) -> str:
        return f"the worker `{self.worker_id}`: {self.problem}"


class ServerError(ToolcribError, ConnectionError):
    """A server that tools come from cannot be reached, does not speak the protocol, or was lost.

    Attributes:
        may_have_run: Whether it was lost during a call, whose effect is unknown; else it was asked nothing.
    """

    code = "server_error"

    def __init__(self, server: str, problem: str, may_have_run: bool = False) -> None:
        super().__init__(server, problem, may_have_run)
        self.server, self.problem, self.may_have_run = server, problem, may_have_run

    def __str__(self) -> str:
        return f"the server `{self.server}` {self.problem}"


class RemoteToolError(ToolcribError):
    """A server says that its tool failed; `message` is what it says."""

    code = "remote_tool_error"

    def __init__(self, server: str, message: str) -> None:
        super().__init__(server, message)
        self.server, self.message = server, message

    def __str__(self) -> str:
        return self.message


class FrontEndError(ToolcribError):
    """A front end asks for what cannot be done; the message says why, and `status` is the HTTP status of the answer."""

    code = "front_end_error"

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message, status)
        self.message, self.status = message, status

    def __str__(self) -> str:
        return self.message
