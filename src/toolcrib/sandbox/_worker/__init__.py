"""The isolated process: its seal (the layers of isolation), the zygote that it is forked from, and its interpreter.

Loaded by a fresh interpreter as `toolcrib_worker`: the standard library only, relative imports, nothing of toolcrib.
The modules without an underscore (`awaiting`, `date_hints`, `export`, `imports`, `launch`, `messages`) are for the
host, too; the others are for the confined process alone.
"""

__all__: list[str] = []
