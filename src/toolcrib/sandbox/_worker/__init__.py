"""The confined process: the seal around it, the zygote it is forked from, and the interpreter of programs inside.

Loaded by a fresh interpreter as `toolcrib_worker`: the standard library only, relative imports, nothing of toolcrib.
The modules without an underscore (`awaiting`, `date_hints`, `export`, `imports`, `launch`, `messages`) are for the
host, too; the others are for the confined process alone.
"""

__all__: list[str] = []
