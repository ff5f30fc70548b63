"""The confined process: the seal around it, the zygote it is forked from, and the interpreter of programs inside.

Loaded by a fresh interpreter as `toolcrib_worker`: the standard library only, relative imports, nothing of toolcrib.
"""

__all__: list[str] = []
