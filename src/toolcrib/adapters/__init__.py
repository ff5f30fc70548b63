"""Adapters: other frameworks as ways in to the pipeline, and their tools as members of a toolset.

Each is a package of its own, needs an extra of its own, and knows nothing of the others. Nothing here is a gate.
"""

__all__: list[str] = []
