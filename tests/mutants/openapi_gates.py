"""The gates around an OpenAPI document, its server, and what a model writes into a request."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["OPENAPI_GATES"]

_HERE = "tests/openapi"
_OF_CREDENTIALS = (f"{_HERE}/test_credentials.py",)
_OF_DOCUMENTS = (f"{_HERE}/test_document.py",)
_OF_GATES = (f"{_HERE}/test_gates.py",)
_OF_KEPT = (f"{_HERE}/test_kept_credentials.py",)
_OF_FILES = ("tests/gateway/test_apis.py",)
_OF_PAGES = (f"{_HERE}/test_pages.py",)
_OF_REQUESTS = (f"{_HERE}/test_requests.py",)
_OF_SCHEMAS = (f"{_HERE}/test_schemas.py",)
_OF_SENDING = (f"{_HERE}/test_sending.py",)

OPENAPI_GATES: tuple[Gate, ...] = (
    # --- what a document may read, and how large it may be
    Gate(
        "place of a document that is referred to",
        "openapi/_document.py",
        "if not self._may_read(address):",
        "if False:",
        _OF_DOCUMENTS,
    ),
    Gate(
        "folder of a document that is referred to",
        "openapi/_document.py",
        "return _path_of(address).is_relative_to(_path_of(self.address).parent)",
        "return True",
        _OF_DOCUMENTS,
    ),
    Gate(
        "links out of the folder of a document",
        "openapi/_document.py",
        "return Path(url2pathname(urlsplit(address).path)).resolve()",
        "return Path(url2pathname(urlsplit(address).path)).absolute()",
        _OF_DOCUMENTS,
    ),
    Gate(
        "host that a document has moved to",
        "openapi/_document.py",
        "if urlsplit(further).hostname != host or not",
        "if False and not",
        _OF_DOCUMENTS,
    ),
    Gate("aliases of YAML that multiply", "openapi/_yaml.py", "if size > _MOST_PARTS:", "if False:", _OF_DOCUMENTS),
    Gate(
        "server on the web", "openapi/_servers.py", "parts.scheme not in", "False and parts.scheme not in", _OF_REQUESTS
    ),
    Gate(
        "values of a server's variable",
        "openapi/_servers.py",
        "if allowed and value not in allowed:",
        "if False:",
        _OF_REQUESTS,
    ),
    # --- arguments
    Gate(
        "arguments held against the whole schema of a document",
        "openapi/_tool.py",
        "return self._check(arguments)",
        "return arguments",
        _OF_SCHEMAS,
    ),
    Gate("part of a path that is none", "openapi/_requests.py", "    if not text:\n", "    if False:\n", _OF_REQUESTS),
    Gate(
        "part of a path that leads out of it",
        "openapi/_requests.py",
        'if segment != wanted and unquote(segment) in (".", ".."):',
        "if False:",
        _OF_REQUESTS,
    ),
    Gate(
        "slashes in a part of a path",
        "openapi/_styles.py",
        "return quote(text, safe=safe)\n    except",
        'return quote(text, safe=safe + "/")\n    except',
        _OF_REQUESTS,
    ),
    Gate(
        "values that end in a query",
        "openapi/_styles.py",
        '_RESERVED = ":/?@!$\'()*,;"',
        '_RESERVED = ":/?@!$\'()*,;&=#"',
        _OF_REQUESTS,
    ),
    Gate(
        "line breaks in a header",
        "openapi/_styles.py",
        "if text and _HEADER.fullmatch(text) is None:",
        "if False:",
        _OF_REQUESTS,
    ),
    Gate(
        "separators in a cookie",
        "openapi/_styles.py",
        '[f"{_encoded(key)}={quote(text, safe=_COOKIE)}" for',
        '[f"{_encoded(key)}={text}" for',
        _OF_REQUESTS,
    ),
    Gate("headers of the host", "openapi/_sending.py", "if name.lower() not in host_names}", "}", _OF_REQUESTS),
    Gate(
        "headers that say where a request goes",
        "openapi/_operations.py",
        "key in _NOT_ARGUMENTS",
        'key == "authorization"',
        _OF_REQUESTS,
    ),
    # --- approval and effects
    Gate(
        "approval of an operation",
        "openapi/_tool.py",
        "requires_approval=options.needs_approval(operation),",
        "requires_approval=False,",
        _OF_GATES,
    ),
    Gate(
        "effect of an operation",
        "openapi/_tool.py",
        "effect=options.effect_of(operation),",
        'effect="none",',
        _OF_GATES,
    ),
    Gate(
        "trust of an answer", "openapi/_tool.py", "source=options.source_of(operation),", 'source="trusted",', _OF_GATES
    ),
    Gate(
        "approval of a document on the command line",
        "cli/_find_toolset.py",
        'approval="writes"',
        "approval=False",
        ("tests/cli/test_api_target.py",),
    ),
    # --- credentials
    Gate(
        "credentials that a principal lacks",
        "openapi/_credentials.py",
        "        raise RemoteToolError(self.name, needs)\n",
        "        return Signing()\n",
        _OF_CREDENTIALS,
    ),
    Gate(
        "credentials of each principal",
        "openapi/_credentials.py",
        "await self._ask(credentials, principal)",
        'await self._ask(credentials, "ann")',
        _OF_CREDENTIALS,
    ),
    Gate(
        "credentials as arguments",
        "openapi/_operations.py",
        "or (where, key) in secret",
        "or (where, key) in ()",
        _OF_CREDENTIALS,
    ),
    Gate(
        "line breaks in credentials",
        "openapi/_credentials.py",
        "if not value.isascii() or not value.isprintable():",
        "if False:",
        _OF_CREDENTIALS,
    ),
    # --- answers
    Gate(
        "credentials on the way to another host",
        "openapi/_sending.py",
        'headers = {"Accept": request.headers["Accept"]}',
        "headers = dict(headers)",
        _OF_SENDING,
    ),
    Gate(
        "redirects into the private net",
        "openapi/_sending.py",
        "return not is_inside(there.hostname) or is_inside(here.hostname)",
        "return True",
        _OF_SENDING,
    ),
    Gate(
        "names that lead into the private net",
        "openapi/_servers.py",
        "return not any(map(is_private, found)) or all(",
        "return True or all(",
        _OF_SENDING,
    ),
    Gate(
        "names that lead to a machine's secrets",
        "openapi/_servers.py",
        "if any(map(_tells_secrets, found)):",
        "if False and found:",
        _OF_SENDING,
    ),
    Gate(
        "names that the document leads to",
        "openapi/_sending.py",
        "await self._places(url, leaders or ()) if is_bound else []",
        "[]",
        _OF_SENDING,
    ),
    Gate(
        "names that no check found an address of",
        "openapi/_sending.py",
        "if not found:  # the next",
        "if False:  # the next",
        _OF_SENDING,
    ),
    Gate(
        "redirects that end encryption",
        "openapi/_sending.py",
        'or (here.scheme == "https" and there.scheme != "https"):',
        "or False:",
        _OF_SENDING,
    ),
    Gate(
        "redirects of what writes",
        "openapi/_sending.py",
        "or not place or request.method not in SAFE:",
        "or not place:",
        _OF_SENDING,
    ),
    Gate(
        "retries of what writes",
        "openapi/_sending.py",
        "retries = self.retries if request.method in IDEMPOTENT else 0",
        "retries = self.retries",
        _OF_SENDING,
    ),
    Gate(
        "size of an answer", "openapi/_sending.py", "if len(data) > self.max_bytes:", "if False and data:", _OF_SENDING
    ),
    Gate(
        "deadline of a request",
        "openapi/_sending.py",
        "async with asyncio.timeout(self.timeout):",
        "async with asyncio.timeout(None):",
        _OF_SENDING,
    ),
    Gate(
        "parameters that a link to the next page may change",
        "openapi/_pages.py",
        'if parameter.place == "query" else []',
        "",
        _OF_PAGES,
    ),
    # --- credentials that are kept, and other hosts
    Gate(
        "other hosts that credentials of an API do not go to",
        "openapi/_credentials.py",
        "elif self.is_elsewhere:",
        "elif False:",
        _OF_KEPT,
    ),
    Gate(
        "consent that an operation needs",
        "openapi/_tool.py",
        "return self._signer.may_need_consent",
        "return False",
        _OF_KEPT,
    ),
    Gate(
        "server that an operation leads to in a private net",
        "openapi/_servers.py",
        "if leads_inside or _tells_secrets(host):",
        "if _tells_secrets(host):",
        _OF_KEPT,
    ),
    Gate(
        "address of a machine about itself as a server",
        "openapi/_servers.py",
        "if leads_inside or _tells_secrets(host):",
        "if leads_inside:",
        _OF_KEPT,
    ),
    Gate(
        "approval that APIs in a file have by default",
        "gateway/_file.py",
        "defaults.items() if name in fields}",
        "defaults.items() if name in fields and name != 'approval'}",
        _OF_FILES,
    ),
)
