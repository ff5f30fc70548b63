"""Groups of the caller's token, by the file: the tools that are listed and called, and the budgets that count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.adapters.mcp_client.servers import outcome_of
from tests.adapters.mcp_server.http import command_over_http
from tests.gateway.test_options import written
from tests.gateway.test_servers import ENVIRONMENT
from tests.serving.oauth.login import login
from toolcrib.adapters.mcp_client import connect
from toolcrib.gateway import toolset_of_file
from toolcrib.pipeline import Access, Channel, Run

ONE_CALL_A_DAY: Any = {"limits": [{"calls": 1, "per": "day", "by": "group"}], "groups": ["sales", "fin*"]}


def run_of(principal: str, groups: list[str] | None) -> Run:
    access = None if groups is None else Access(frozenset(), {"groups": groups})
    return Run(principal=principal, channel=Channel(access=access))


@pytest.mark.parametrize(
    ("callers", "expected"),
    [
        ([["sales"], ["sales"], ["finance"]], "crc"),
        ([["sales"], ["finance", "sales"], ["finance"]], "crc"),
        ([["finance", "sales"], ["sales"], ["finance"]], "crr"),
        ([["sales", "everybody"], ["finance", "everybody"]], "cc"),
        ([["everybody"], [], None], "crr"),
    ],
    ids=["apart", "one is over", "in each", "only those of the file", "of none of them"],
)
async def test_a_call_counts_in_each_group_of_the_token_that_the_file_names(
    tmp_path: Path, callers: list[list[str] | None], expected: str
) -> None:
    found = ""

    async with toolset_of_file(written(tmp_path, {"budgets": ONE_CALL_A_DAY}), ENVIRONMENT).open() as tools:
        for number, groups in enumerate(callers):
            found += (await outcome_of(tools, "add", run=run_of(f"p{number}", groups), a=1, b=1)).kind[0]

    assert found == expected


async def test_over_http_tools_are_listed_and_counted_by_the_groups_of_the_token(tmp_path: Path) -> None:
    listed: dict[str, list[str]] = {}
    kinds: dict[str, str] = {}
    with login() as server:
        section = {
            "auth": {"issuer": server.issuer, "audience": "gateway"},
            "groups": {"add": ["finance", "sales"]},
            "group_claim": "realm.roles",
            "budgets": ONE_CALL_A_DAY,
        }
        with command_over_http(tmp_path, str(written(tmp_path, section)), **ENVIRONMENT) as url:
            for sub, group in (("ann", "finance"), ("bob", "finance"), ("cid", "sales"), ("dee", "support")):
                token = server.token("gateway", sub=sub, realm={"roles": [group]})
                async with connect(url, headers={"authorization": f"Bearer {token}"}).open() as tools:
                    listed[sub] = [*tools.names()]
                    if "add" in listed[sub]:
                        kinds[sub] = (await outcome_of(tools, "add", a=1, b=1)).text()

    assert ["add" in listed[sub] for sub in ("ann", "bob", "cid", "dee")] == [True, True, True, False]
    assert "facts" in listed["dee"]
    assert ["over its limit" in kinds[sub] for sub in ("ann", "bob", "cid")] == [False, True, False]
