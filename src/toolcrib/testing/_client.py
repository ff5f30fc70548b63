"""Scripted client: answers what tools ask the client that called them, in tests of these tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolcrib.errors import explain_options
from toolcrib.schema import ClientFeature, ClientRoot, Elicited, ElicitRequest, LogLine, Sampled, SampleRequest


@explain_options()
class ScriptedClient:
    """A client that answers from a script: `Run(channel=Channel(client=ScriptedClient(forms=[{"size": 3}])))`.

    Args:
        forms: The answers to questions, in order: the fields, or an `Elicited` for another answer.
        texts: The answers of its model, in order: a text, or a `Sampled`.
        roots: The folders that it names, as URIs.
        lacks: The features that it does not have.

    Attributes:
        asked: The questions it got.
        sampled: The requests that its model got.
        lines: The lines for its log.
    """

    def __init__(
        self,
        forms: Sequence[Mapping[str, Any] | Elicited[dict[str, Any]]] = (),
        texts: Sequence[str | Sampled] = (),
        roots: Sequence[str] = (),
        lacks: Sequence[ClientFeature] = (),
    ) -> None:
        self._forms, self._texts, self._roots, self._lacks = [*forms], [*texts], roots, frozenset(lacks)
        self.asked: list[ElicitRequest] = []
        self.sampled: list[SampleRequest] = []
        self.lines: list[LogLine] = []

    def can(self, feature: ClientFeature) -> bool:
        return feature not in self._lacks

    async def elicit(self, request: ElicitRequest) -> Elicited[dict[str, Any]]:
        self.asked.append(request)
        answer = self._forms.pop(0)
        return answer if isinstance(answer, Elicited) else Elicited("accept", dict(answer))

    async def sample(self, request: SampleRequest) -> Sampled:
        self.sampled.append(request)
        answer = self._texts.pop(0)
        return answer if isinstance(answer, Sampled) else Sampled([{"type": "text", "text": answer}], "scripted")

    async def roots(self) -> Sequence[ClientRoot]:
        return [ClientRoot(uri) for uri in self._roots]

    async def log(self, line: LogLine) -> None:
        self.lines.append(line)
