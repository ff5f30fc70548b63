"""The command line, as `python -m toolcrib`."""

from __future__ import annotations

from toolcrib.cli import main

if __name__ == "__main__":
    main()
