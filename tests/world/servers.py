"""Servers that `make world` uses: packages of npm and PyPI, how each is started, and what it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["NPM", "PYPI", "RealServer"]

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class RealServer:
    """A server that a package brings.

    Attributes:
        package: Its name in the registry.
        words: The rest of its command line; `{folder}` is a folder of its own.
        env: Its environment; `{folder}` likewise.
        calls: Calls that change nothing outside of the folder, in this order.
        program: The program of a package from PyPI; the package's own name when empty.
    """

    package: str
    words: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    calls: tuple[Call, ...] = ()
    program: str = ""


FILE = "{folder}/a.txt"
NPM = (
    RealServer(
        "@modelcontextprotocol/server-everything",
        calls=(
            ("echo", {"message": "hi"}),
            ("get-sum", {"a": 1, "b": 2}),
            ("get-tiny-image", {}),
            ("get-annotated-message", {"messageType": "error", "includeImage": True}),
            ("get-resource-links", {}),
            ("get-structured-content", {"location": "New York"}),
        ),
    ),
    RealServer(
        "@modelcontextprotocol/server-filesystem",
        ("{folder}",),
        calls=(
            ("write_file", {"path": FILE, "content": "one\ntwo\n"}),
            ("read_text_file", {"path": FILE, "head": 1}),
            ("list_directory", {"path": "{folder}"}),
            ("get_file_info", {"path": FILE}),
            ("read_text_file", {"path": "/etc/hostname"}),
        ),
    ),
    RealServer(
        "@modelcontextprotocol/server-memory",
        env={"MEMORY_FILE_PATH": "{folder}/memory.jsonl"},
        calls=(
            ("create_entities", {"entities": [{"name": "Ann", "entityType": "person", "observations": ["maps"]}]}),
            ("search_nodes", {"query": "maps"}),
            ("read_graph", {}),
        ),
    ),
    RealServer(
        "@modelcontextprotocol/server-sequential-thinking",
        calls=(
            (
                "sequentialthinking",
                {"thought": "a", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
            ),
        ),
    ),
    RealServer("@playwright/mcp", ("--headless",), calls=(("browser_close", {}),)),
    RealServer("@upstash/context7-mcp"),
    RealServer("@notionhq/notion-mcp-server", env={"NOTION_TOKEN": "none"}),
    RealServer("chrome-devtools-mcp"),
    RealServer("@sentry/mcp-server", ("--access-token=none",)),
    RealServer("mcp-server-kubernetes", calls=(("kubectl_context", {"operation": "list"}),)),
    RealServer(
        "@wonderwhy-er/desktop-commander",
        ("--no-onboarding",),
        calls=(("create_directory", {"path": "{folder}/inner"}), ("list_directory", {"path": "{folder}"})),
    ),
    RealServer("@antv/mcp-server-chart"),
    RealServer("@eslint/mcp", calls=(("lint-files", {"filePaths": ["{folder}/none.js"]}),)),
    RealServer("mongodb-mcp-server", ("--readOnly",), calls=(("list-connections", {}),)),
    RealServer("tavily-mcp", env={"TAVILY_API_KEY": "none"}),
    RealServer("exa-mcp-server", env={"EXA_API_KEY": "none"}),
    RealServer("firecrawl-mcp", env={"FIRECRAWL_API_KEY": "none"}),
    RealServer("figma-developer-mcp", ("--stdio", "--figma-api-key=none")),
    RealServer("@hubspot/mcp-server", env={"PRIVATE_APP_ACCESS_TOKEN": "none"}),
)
SHEET = {"path": "{folder}/a.xlsx"}
PYPI = (
    RealServer(
        "mcp-server-time",
        ("--local-timezone", "Europe/Oslo"),
        calls=(
            ("get_current_time", {"timezone": "Asia/Tokyo"}),
            ("convert_time", {"source_timezone": "Europe/Oslo", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
            ("get_current_time", {"timezone": "Nowhere"}),
        ),
    ),
    RealServer(
        "mcp-server-git",
        calls=(
            ("git_status", {"repo_path": "{folder}"}),
            ("git_log", {"repo_path": "{folder}"}),
            ("git_create_branch", {"repo_path": "{folder}", "branch_name": "b"}),
            ("git_branch", {"repo_path": "{folder}", "branch_type": "local"}),
        ),
    ),
    RealServer("mcp-server-fetch", calls=(("fetch", {"url": "http://127.0.0.1:9/"}),)),
    RealServer(
        "excel-mcp-server",
        ("stdio",),
        calls=(("create_workbook", SHEET), ("describe_workbook", SHEET), ("list_workbooks", {})),
    ),
    RealServer(
        "mcp-alchemy",
        env={"DB_URL": "sqlite:///{folder}/a.db"},
        calls=(
            ("execute_query", {"query": "create table t (a)"}),
            ("all_table_names", {}),
            ("execute_query", {"query": "select 1 as a, 'x' as b"}),
            ("schema_definitions", {"table_names": ["t"]}),
        ),
    ),
    RealServer(
        "office-word-mcp-server",
        calls=(
            ("create_document", {"filename": "{folder}/a.docx"}),
            ("add_paragraph", {"filename": "{folder}/a.docx", "text": "Hello."}),
            ("get_document_text", {"filename": "{folder}/a.docx"}),
        ),
        program="word_mcp_server",
    ),
    RealServer("wikipedia-mcp"),
    RealServer(
        "awslabs-aws-documentation-mcp-server",
        calls=(("read_documentation", {"url": "https://example.org/"}),),
        program="awslabs.aws-documentation-mcp-server",
    ),
)
