"""Errors about optional packages, databases, engines, workers and servers."""

from __future__ import annotations

from toolcrib._passwords import hide_passwords
from toolcrib.errors._base import MessageError, ToolcribError


class MissingExtraError(MessageError, ImportError):
    """A feature needs an optional dependency; the message names the extra."""

    code = "missing_extra"
    feature: str
    extra: str
    _template = "{feature} needs an optional dependency. Install it with: pip install 'toolcrib[{extra}]'"


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


class DocumentError(MessageError, ValueError):
    """An OpenAPI document cannot be read or used; the message names it and says what would mend it."""

    code = "document_error"
    document: str
    problem: str
    _template = "the OpenAPI document `{document}` {problem}"


class EngineError(ToolcribError, RuntimeError):
    """Durable work was asked for where no engine can do it: none runs, or a second was to be started."""

    code = "engine_error"


class WorkerError(MessageError, RuntimeError):
    """A worker cannot do what was asked under its name; the message says why."""

    code = "worker_error"
    worker_id: str
    problem: str
    _template = "the worker `{worker_id}`: {problem}"


class ServerError(MessageError, ConnectionError):
    """A server that tools come from cannot be reached, does not speak the protocol, or was lost.

    Attributes:
        may_have_run: Whether it was lost during a call, whose effect is unknown; else it was asked nothing.
    """

    code = "server_error"
    server: str
    problem: str
    may_have_run: bool = False
    _template = "the server `{server}` {problem}"


class RemoteToolError(MessageError):
    """A server says that its tool failed; `message` is what it says."""

    code = "remote_tool_error"
    server: str
    message: str
    _template = "{message}"


class FrontEndError(MessageError):
    """A front end asks for what cannot be done; the message says why, and `status` is the HTTP status of the answer."""

    code = "front_end_error"
    message: str
    status: int = 400
    _template = "{message}"
