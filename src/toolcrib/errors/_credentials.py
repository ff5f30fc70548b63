"""Errors about credentials for other servers. None of them holds a secret."""

from __future__ import annotations

from toolcrib.errors._base import MessageError


class CredentialError(MessageError, ConnectionError):
    """A credential for a server cannot be had now; the message says why and what would mend it."""

    code = "credential_error"
    server: str
    problem: str
    _template = "the credentials for `{server}`: {problem}"


class CredentialKeyError(MessageError, ValueError):
    """The key that credentials are encrypted with is missing, or is another one."""

    code = "credential_key_error"
    problem: str
    _template = "the key of the credentials: {problem}"


class ConsentError(MessageError, PermissionError):
    """A page or an authorization server's answer that gives no access: the message is for the person who sees it."""

    code = "consent_error"
    problem: str
    _template = "{problem}"
