"""Answers to the requests of durable work on DBOS."""

from __future__ import annotations

from abc import abstractmethod

from toolcrib.adapters.dbos._client import Client
from toolcrib.adapters.dbos._continuation import continue_approved
from toolcrib.durable import Answers, AnswerStore


class DbosAnswers(Answers):
    """Answers that are put into the store of a client, which enqueues what they let go on."""

    @property
    @abstractmethod
    def client(self) -> Client:
        """The client of the database that the requests are in."""

    @property
    def _approvals(self) -> AnswerStore:
        return self.client.approvals

    async def _continue(self) -> None:
        await continue_approved(self.client, self.client.approvals)
