"""Errors about credentials for other servers. None of them holds a secret."""

from __future__ import annotations

from toolcrib.errors._base import ToolcribError


class CredentialError(ToolcribError, ConnectionError):
    """A credential for a server cannot be had now; the message says why and what would mend it."""

    code = "credential_error"

    def __init__(self, server: str, problem: str) -> None:
        super().__init__(server, problem)
        self.server, self.problem = server, problem

    def __str__(self) -> str:
        return f"the credentials for `{self.server}`: {self.problem}"


class CredentialKeyError(ToolcribError, ValueError):
    """The key that credentials are encrypted with is missing, or is another one."""

    code = "credential_key_error"

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"the key of the credentials: {self.problem}"


class ConsentError(ToolcribError, PermissionError):
    """A page or an authorization server's answer that gives no access: the message is for the person who sees it."""

    code = "consent_error"

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return self.problem
