"""Gateway: a file that lists MCP servers and APIs, read as one toolset with options for all. Needs the extra `mcp`."""

from __future__ import annotations

from toolcrib._extras import Extra

with Extra(
    "a gateway", "mcp", ("anyio", "cryptography", "httpx2", "jsonschema", "jwt", "mcp", "mcp_types", "starlette")
):
    from toolcrib.gateway._credentials import CredentialPlace
    from toolcrib.gateway._file import GatewayFile, read_document, read_gateway, toolset_of_file
    from toolcrib.gateway._options import GatewayOptions

__all__ = ["CredentialPlace", "GatewayFile", "GatewayOptions", "read_document", "read_gateway", "toolset_of_file"]
