"""Options of `toolset`, and the choice of operations by tag, path and name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias, TypedDict

import httpx2

from toolcrib._numbers import require_number, require_numbers
from toolcrib.clock import SYSTEM_CLOCK, Clock
from toolcrib.errors import ToolConstraintError, explain_options, require_choice, word_in_list
from toolcrib.formats import Refused
from toolcrib.hooks import require_parameters
from toolcrib.openapi._credentials import Credentials
from toolcrib.openapi._operations import METHODS, Operation
from toolcrib.openapi._pages import Pages
from toolcrib.tools import Effect, Source, require_effect, require_prefix, require_source

Choice: TypeAlias = Collection[str] | Callable[[Operation], bool]
"""Operations: a function that says so, or words that each name some.

`tag:repos` is all with that tag, `/repos/*` all with such a path, `DELETE` all with the method, `DELETE /repos/*` both,
and any other word a tool's name or an operation's id. `*` stands for any text.
"""

Approval: TypeAlias = bool | Literal["writes"] | Choice
"""The operations that need approval; `writes` are all that do not only read."""


class OpenApiOptions(TypedDict, total=False):
    """The less usual keywords of `toolset`; `Options` says what each means."""

    name: str
    deprecated: bool
    descriptions: Mapping[str, str]
    effects: Mapping[str, Effect]
    variables: Mapping[str, str]
    headers: Mapping[str, str]
    client: httpx2.AsyncClient | None
    timeout: float
    retries: int
    max_bytes: int
    max_result_chars: int | None
    max_schema_chars: int
    max_description_chars: int
    pages: Pages
    source: Source
    allow_refs: Collection[str]
    credential_hosts: Collection[str]
    sources: Mapping[str, Source]
    refused: Refused
    clock: Clock


@explain_options(name="openapi.toolset")
@dataclass(frozen=True, slots=True)
class Options:
    """The options of `toolset`.

    Attributes:
        name: The server's name in messages, and the id of the toolset; the document's title when empty.
        prefix: The beginning of each tool's name.
        include: The operations that become tools; all when None.
        exclude: Those that do not, even where `include` has them.
        approval: Those that need approval; all that do not only read, unless the host says otherwise.
        server: The server: an address in the place of the document's, or which of these it is, from 0 on.
        credentials: By the name of the security scheme, for all, kept for each principal, or by a function of the
            principal; None sends none.
        deprecated: Whether operations that the document calls deprecated become tools.
        descriptions: Texts in the place of the document's, by tool name or operation id.
        effects: The effects of operations, by tool name or operation id, where their method does not say it.
        variables: Values for the variables in a server's address.
        headers: Sent with each request to the server.
        client: A client that requests are sent with, which keeps its connections; the host closes it. None makes one
            for each call.
        timeout: Seconds for a call, with its retries.
        retries: Of requests that may be made twice: `GET`, `HEAD`, `OPTIONS`, `PUT` and `DELETE`.
        max_bytes: Bytes of an answer; more of it is not read.
        max_result_chars: The most characters of a result that go back to a model.
        max_schema_chars: About the most characters of a schema that a model is shown. Arguments are checked against
            all of it.
        max_description_chars: The most characters of the text that says what an operation is for.
        pages: Whether the arguments of the next page are offered with each, or a number of pages put together.
        source: How far results can be trusted, for a `Provenance` policy.
        sources: The same by tool name or operation id.
        allow_refs: Addresses, or beginnings of addresses, of other documents that references may lead to.
        credential_hosts: Other hosts than the server's that credentials may go to, for operations that the document has
            there. Those that are kept for each principal are of one server each, and need no word.
        refused: The treatment of an operation that cannot be read: `leave_out`, with an error in the log of
            `toolcrib.openapi` that names it; or `raise` that error.
        clock: The clock of the pauses between two tries.
    """

    name: str = ""
    prefix: str = ""
    include: Choice | None = None
    exclude: Choice = ()
    approval: Approval = "writes"
    server: str | int | None = None
    credentials: Credentials | None = field(default=None, repr=False)
    deprecated: bool = True
    descriptions: Mapping[str, str] = field(default_factory=dict[str, str])
    effects: Mapping[str, Effect] = field(default_factory=dict[str, Effect])
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    client: httpx2.AsyncClient | None = None
    timeout: float = 30.0
    retries: int = 2
    max_bytes: int = 8 * 1024 * 1024
    max_result_chars: int | None = None
    max_schema_chars: int = 12_000
    max_description_chars: int = 240
    pages: Pages = "offer"
    source: Source = "untrusted"
    allow_refs: Collection[str] = ()
    credential_hosts: Collection[str] = ()
    sources: Mapping[str, Source] = field(default_factory=dict[str, Source])
    refused: Refused = "leave_out"
    clock: Clock = SYSTEM_CLOCK

    def __post_init__(self) -> None:
        sizes = {"max_bytes": 1, "max_result_chars": 1, "max_schema_chars": 1_000, "max_description_chars": 1}
        require_prefix("openapi.toolset: the prefix", self.prefix)
        require_numbers("openapi.toolset", self, {"retries": 0, **sizes}, seconds=("timeout",))
        if not isinstance(self.server, str):
            require_number("openapi.toolset", "server", self.server, least=0)
        pages: Any = self.pages
        if pages not in ("offer", "off") and not (isinstance(pages, int) and not isinstance(pages, bool) and pages > 0):
            raise ValueError(f"`pages` must be 'offer', 'off' or a number of pages, and is {pages!r}")
        for name in ("include", "exclude", "approval", "credential_hosts"):
            choice: Any = getattr(self, name)
            if not (name == "include" and choice is None):
                choice = choice.upper() if isinstance(choice, str) and choice.upper() in METHODS else choice
                if callable(choice):
                    require_parameters(
                        f"{name} function",
                        choice,
                        "operation",
                        result="True or False",
                        is_awaited=False,
                        takes_none=True,
                    )
                require_choice("openapi.toolset", name, choice, ("writes",) if name == "approval" else None)

    def needs_approval(self, operation: Operation) -> bool:
        """Return whether an operation needs approval."""
        if isinstance(self.approval, bool):
            return self.approval
        if self.approval == "writes":
            return self.effect_of(operation) not in ("none", "fetch")
        return is_chosen(operation, self.approval)

    def effect_of(self, operation: Operation) -> Effect:
        """Return the effect of an operation."""
        return _by_name(self.effects, operation) or operation.effect

    def source_of(self, operation: Operation) -> Source:
        """Return how far an operation's results can be trusted."""
        return _by_name(self.sources, operation) or self.source

    def description_of(self, operation: Operation) -> str | None:
        """Return the host's text for an operation; None where it gives none."""
        return _by_name(self.descriptions, operation)


def require_values(options: Options) -> None:
    """Check what options say of operations and headers by name; raises TypeError or ValueError."""
    for name, effect in options.effects.items():
        require_effect(f"openapi.toolset: `{name}`", effect)
    for name, source in options.sources.items():
        require_source(f"openapi.toolset: `{name}`", source)
    for name, text in options.headers.items():
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError(
                f"openapi.toolset: the header {name!r} is a value of the type {type(text).__name__}; give a text"
            )


def _by_name(table: Mapping[str, Any], operation: Operation) -> Any:
    found = table.get(operation.name)
    return table.get(operation.operation_id) if found is None else found


def chosen(operations: Iterable[Operation], options: Options) -> list[Operation]:
    """Return the operations that become tools.

    Raises:
        ToolConstraintError: An option names one that the document does not have.
    """
    listed = list(operations)
    named: dict[str, Any] = {"include": options.include, "exclude": options.exclude, "approval": options.approval}
    for option, choice in named.items():
        for word in () if choice is None or isinstance(choice, bool | str) or callable(choice) else choice:
            _require(option, word, listed, is_chosen)
    tables: dict[str, Mapping[str, Any]] = {
        "descriptions": options.descriptions,
        "effects": options.effects,
        "sources": options.sources,
    }
    for option, table in tables.items():
        for word in table:
            _require(option, word, listed, lambda operation, words: _by_name({words[0]: True}, operation) is not None)
    return [
        operation
        for operation in listed
        if (options.include is None or is_chosen(operation, options.include))
        and not is_chosen(operation, options.exclude)
        and (options.deprecated or not operation.deprecated)
    ]


def _require(
    option: str, word: str, operations: Sequence[Operation], fits: Callable[[Operation, Sequence[str]], bool]
) -> None:
    if not any(fits(operation, (word,)) for operation in operations):
        method = word.upper() if word.upper() in {operation.method for operation in operations} else ""
        meant = f"; write {method!r} for the method" if method else word_in_list(option, word, ("writes",))
        problem = f"`{option}` names it, and the document has no such operation{meant}"
        raise ToolConstraintError(word, problem, () if meant else tuple(operation.name for operation in operations))


def is_chosen(operation: Operation, choice: Choice) -> bool:
    """Return whether a choice has an operation."""
    if callable(choice):
        return bool(choice(operation))
    return any(_fits(operation, word) for word in choice)


def _fits(operation: Operation, word: str) -> bool:
    if word.startswith("tag:"):
        return any(fnmatchcase(tag, word[4:]) for tag in operation.tags)
    method, _, path = word.rpartition(" ")
    if path.startswith("/"):
        return fnmatchcase(operation.path, path) and fnmatchcase(operation.method, method.upper() or "*")
    if word in METHODS and operation.method == word:
        return True
    return fnmatchcase(operation.name, word) or (bool(operation.operation_id) and operation.operation_id == word)
