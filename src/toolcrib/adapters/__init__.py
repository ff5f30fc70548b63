"""Adapters: other frameworks and protocols that call tools through the pipeline, and their tools in our toolsets.

Each adapter is a package with its own extra, and imports no other. None of them has a gate.
"""

__all__: list[str] = []
