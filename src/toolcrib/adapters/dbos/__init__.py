"""DBOS: turns and programs that outlive their process, on a SQLite file or Postgres. The extra `durable`."""

from __future__ import annotations

from toolcrib._extras import Extra

with Extra("durable work", "durable", ("dbos", "psycopg", "sqlalchemy")):
    import dbos as _dbos

from toolcrib.adapters.dbos._admin import cancel_work, find_work, resume_work, retry_work, show_work
from toolcrib.adapters.dbos._agent import DurableAgent
from toolcrib.adapters.dbos._client import Client
from toolcrib.adapters.dbos._engine import Engine, standing_routines
from toolcrib.adapters.dbos._fork import fork_work
from toolcrib.adapters.dbos._handle import TurnHandle
from toolcrib.adapters.dbos._health import serve_health
from toolcrib.adapters.dbos._listing import list_work
from toolcrib.adapters.dbos._lost_work import keep_closing_lost_work
from toolcrib.adapters.dbos._migrate import grant_use, migrate, table_versions
from toolcrib.adapters.dbos._operator import WorkOperator
from toolcrib.adapters.dbos._placement import Placement, Queue, turn_id_of
from toolcrib.adapters.dbos._program import DurableProgram, DurableToolkit, enqueue_program
from toolcrib.adapters.dbos._prune import prune
from toolcrib.adapters.dbos._schedules import (
    Schedule,
    ScheduledWork,
    backfill_schedule,
    delete_schedule,
    pause_schedule,
    resume_schedule,
    schedules,
    trigger_schedule,
)
from toolcrib.adapters.dbos._takeover import keep_recovering, keep_returning
from toolcrib.adapters.dbos._work import WORK_STATES, Work
from toolcrib.adapters.dbos._workers import Worker, recover, workers
from toolcrib.durable import DurableFailure, RetryPolicy

__all__ = [
    "WORK_STATES",
    "Client",
    "DurableAgent",
    "DurableFailure",
    "DurableProgram",
    "DurableToolkit",
    "Engine",
    "Placement",
    "Queue",
    "RetryPolicy",
    "Schedule",
    "ScheduledWork",
    "TurnHandle",
    "Work",
    "WorkOperator",
    "Worker",
    "backfill_schedule",
    "cancel_work",
    "delete_schedule",
    "enqueue_program",
    "find_work",
    "fork_work",
    "grant_use",
    "list_work",
    "migrate",
    "pause_schedule",
    "prune",
    "recover",
    "resume_schedule",
    "resume_work",
    "retry_work",
    "schedules",
    "serve_health",
    "show_work",
    "table_versions",
    "trigger_schedule",
    "turn_id_of",
    "workers",
]

standing_routines += [keep_closing_lost_work, keep_returning, keep_recovering]

del _dbos
