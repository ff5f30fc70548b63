"""The gates of results that are kept, each with the patch that removes it."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["RESULTS_GATES"]

_STORES = ("tests/results/test_stores.py",)
_READ = ("tests/results/test_read.py",)
_KEEP = ("tests/results/test_keep.py",)

RESULTS_GATES: tuple[Gate, ...] = (
    Gate(
        "principal of a kept result",
        "results/_store.py",
        'where = "handle = ? AND principal = ? AND',
        'where = "handle = ? AND (principal = ? OR 1 = 1) AND',
        _STORES,
    ),
    Gate(
        "principal that a result is read for",
        "results/_read_result.py",
        "principal = None if ctx.run is None else ctx.run.principal",
        "principal = None",
        ("tests/test_ways.py",),
    ),
    Gate(
        "expiry of a kept result",
        "results/_store.py",
        "identity IS NOT NULL AND expires > ?",
        "identity IS NOT NULL AND expires > 0 * ?",
        _STORES,
    ),
    Gate(
        "removal of what has expired",
        "results/_store.py",
        "WHERE expires <= ?",
        "WHERE expires <= 0 * ?",
        _STORES,
    ),
    Gate(
        "result that is not whole yet",
        "results/_store.py",
        "principal = ? AND identity IS NOT NULL AND",
        "principal = ? AND",
        _STORES,
    ),
    Gate(
        "bytes of one principal's results",
        "results/_store.py",
        '("WHERE principal = ?", (principal,), self.max_principal_bytes),',
        "",
        _STORES,
    ),
    Gate(
        "bytes of all results",
        "results/_store.py",
        '("", (), self.max_bytes),',
        "",
        _STORES,
    ),
    Gate(
        "result that is longer than its store",
        "results/_store.py",
        "fits = shape.size <= min(self.max_bytes, self.max_principal_bytes)",
        "fits = True",
        _STORES,
    ),
    Gate(
        "one handle for one result",
        "results/_store.py",
        "if same is not None:",
        "if False:",
        _STORES,
    ),
    Gate(
        "characters of a path",
        "results/_read.py",
        "if len(path) > _MOST_CHARS:",
        "if False:",
        _READ,
    ),
    Gate(
        "steps of a path",
        "results/_read.py",
        "if found is None or len(steps) == _MOST_STEPS:",
        "if found is None:",
        _READ,
    ),
    Gate(
        "characters of a word that is looked for",
        "results/_read.py",
        "if len(query.search) > _MOST_WORD:",
        "if False:",
        _READ,
    ),
    Gate(
        "places of a word",
        "results/_read.py",
        "if count == _MOST_PLACES:",
        "if False:",
        _READ,
    ),
    Gate(
        "characters that are read as one value",
        "results/_read.py",
        "if sum(map(len, texts)) > _MOST_PARSED:",
        "if False:",
        _READ,
    ),
    Gate(
        "characters of a page",
        "results/_read.py",
        "(rows and chars > query.most_chars)",
        "False",
        _READ,
    ),
    Gate(
        "characters of a value for a program",
        "results/_read_result.py",
        "if chars <= query.most_chars and not (found.more and len(found.rows) != query.limit):",
        "if True:",
        _KEEP,
    ),
    Gate(
        "result that is removed while it is read",
        "results/_read_result.py",
        "            else:\n                if self._store.find(handle, principal) is not None:",
        "            else:\n                if True:",
        _KEEP,
    ),
    Gate(
        "what reads results keeps none",
        "toolsets/_members.py",
        "if entry.results is not None or isinstance(entry.tool.source, _results.ReadResult):",
        "if entry.results is not None:",
        _KEEP,
    ),
    Gate(
        "offer to read a result",
        "toolsets/_gates.py",
        "if not run.offers(reader):",
        "if False:",
        _KEEP,
    ),
    Gate(
        "length of a result that is kept",
        "results/_keep.py",
        "            return True\n    return False",
        "            return False\n    return False",
        _KEEP,
    ),
)
