"""BaseTool: a tool with state or context, written as a class."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from toolcrib import calls
from toolcrib.schema import RunContext


@dataclass(frozen=True, slots=True)
class Instruction:
    """Text for the system prompt; of several with one `group`, only the first is used."""

    group: str
    content: str


class BaseTool:
    """A tool as a class: override `call`, and what else it needs.

    A subclass may set any option of `@tool` as a class attribute (`requires_approval = True`, `timeout = 5`), and
    `name` and `description`, which default to the class name in snake case and the docstring. It is not registered.
    """

    name: ClassVar[str] = ""
    description: ClassVar[str] = ""
    auto_inherit: ClassVar[bool] = False
    """Whether `subset(..., include_auto_inherit=True)` takes it without being named."""
    reports: ClassVar[bool] = False
    """Whether it says with `ctx.report` how far it has come: an agent gives these values before its result."""

    call: Callable[..., Any]
    """`async def call(self, ctx, ...)`: runs the tool; the parameters after `ctx` are what the model gives. It may be
    an async generator, too."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not cls.__dict__.get("name"):
            stem = cls.__name__.removesuffix("Tool") or cls.__name__
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", stem).lower()

    def is_available(self, ctx: RunContext[Any]) -> bool | Awaitable[bool]:
        """Return whether it may be offered and called now; sync or async."""
        return True

    def get_instruction(self, ctx: RunContext[Any]) -> str | Instruction | Awaitable[str | Instruction | None] | None:
        """Return text for the system prompt, or None; a plain text's group is the tool's name. Sync or async."""
        return None

    def get_approval_metadata(self) -> dict[str, Any] | None:
        """Return facts for the person who approves, besides the arguments."""
        return None

    def get_call_metadata(self, arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return facts about one call for the person who approves; by default those of `get_approval_metadata`.

        Args:
            arguments: Those that the person is shown, as JSON shapes: secrets are hidden.
        """
        return self.get_approval_metadata()

    async def get_settler(self, request: calls.ApprovalRequest) -> str | None:
        """Return who has settled by other means what a suspended call waited for; None while its request is open.

        Asked when the call comes back, and no policy asks about it any more. The name is that of the call's approver.
        """
        return None

    async def wait_for_settler(self, request: calls.ApprovalRequest) -> str | None:
        """Wait until `get_settler` names someone, and return the name; None at once where it never will.

        A server that holds a suspended call waits for this beside the answer.
        """
        return None

    @property
    def may_need_consent(self) -> bool:
        """True if `get_consent` is asked at all."""
        return type(self).get_consent is not BaseTool.get_consent

    def get_consent(self, ctx: RunContext[Any]) -> calls.Consent | Awaitable[calls.Consent | None] | None:
        """Return the consent that the principal must give elsewhere before the tool can act for them; None for none.

        The call is suspended until this returns None: no approval takes its place. Sync or async.
        """
        return None

    def get_definition(self) -> Mapping[str, Any] | None:
        """Return a third party's statements about the tool, such as a server's, beside description and parameters.

        These are JSON shapes; None for the host's own code. An approval holds for this definition, and for description
        and parameters: when one of them changes, a person is asked again.
        """
        return None

    def get_identity(self) -> Mapping[str, Any] | None:
        """Return the identity of the server behind the tool, as JSON shapes; None for the host's own code.

        An approval holds for this server alone. It is kept as a digest, which is not shown to anybody.
        """
        return None

    def get_listing(self) -> Mapping[str, Any] | None:
        """Return fields for lists of tools, by their names in MCP; None for those of the tool itself.

        There may be `title`, `icons`, `annotations`, `_meta`, `inputSchema` and `outputSchema`.
        """
        return None

    def process_user_input(self, ctx: RunContext[Any], user_input: Any) -> Any:
        """Return `ctx.user_input` for the person's input; sync or async."""
        return user_input
