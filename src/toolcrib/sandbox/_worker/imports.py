"""The modules that a program may import: all are loaded before the worker is sealed, and none after."""

from __future__ import annotations

import builtins
import importlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

__all__ = ["MODULES", "MODULE_NAMES", "PACKAGES", "UNLISTED", "guarded_import", "load_all", "some_of"]

MODULE_NAMES = """
    __future__ _strptime abc annotationlib array ast asyncio base64 binascii bisect builtins bz2 calendar cmath
    codecs collections collections.abc colorsys concurrent.futures contextlib contextvars copy csv dataclasses
    datetime decimal difflib email.message email.utils enum errno fnmatch fractions functools gc getpass glob
    graphlib gzip hashlib heapq hmac html html.entities html.parser inspect io ipaddress itertools json keyword
    linecache locale logging lzma math mimetypes numbers operator os os.path pathlib pickle platform posixpath
    pprint queue quopri random re reprlib sched secrets selectors shlex shutil signal sqlite3 stat statistics string
    string.templatelib stringprep struct sys tempfile textwrap threading time timeit token tokenize tomllib
    traceback types typing unicodedata unittest.mock urllib.parse uuid warnings weakref xml.etree.ElementTree
    zipfile zlib zoneinfo
"""
UNLISTED = frozenset(
    {
        *("_strptime", "builtins", "errno", "gc", "getpass", "glob", "linecache", "locale", "mimetypes", "pickle"),
        *("platform", "posixpath", "selectors", "signal", "stat", "stringprep", "tempfile", "unittest.mock", "quopri"),
    }
)
"""Modules that are not listed in messages, being loaded for other modules; a program may import them, too."""
_USED_MOST = "math datetime json re itertools collections statistics decimal asyncio csv"
_MOST_SHOWN = 10
_ENCODINGS = """
    ascii base64_codec big5 bz2_codec charmap cp1250 cp1251 cp1252 cp1253 cp1254 cp1256 cp437 cp850 euc_jp euc_kr
    gb18030 gb2312 gbk hex_codec idna iso2022_jp iso8859_1 iso8859_15 iso8859_2 koi8_r latin_1 mac_roman punycode
    quopri_codec raw_unicode_escape rot_13 shift_jis unicode_escape utf_16 utf_16_be utf_16_le utf_32 utf_32_be
    utf_32_le utf_7 utf_8 utf_8_sig zlib_codec
"""
_PARENTS: set[str] = set()
_import = builtins.__import__

MODULES: set[str] = set()
"""The modules of this Python, once they are loaded."""

PACKAGES: set[str] = set()
"""The packages of the host's that were loaded for programs, with all modules that are in them and loaded."""


def load_all() -> None:
    """Load every module that a program may import, while files can still be read."""
    for name in MODULE_NAMES.split():
        try:
            importlib.import_module(name)
        except ImportError:  # not in this Python
            continue
        MODULES.add(name)
    for name in _ENCODINGS.split():
        importlib.import_module(f"encodings.{name}")
    for name in list(MODULES):
        while name := name.rpartition(".")[0]:
            _PARENTS.add(name)


def some_of(modules: Collection[str], packages: Collection[str] = ()) -> str:
    """Return some of the modules that a program may import, packages and what is used most before others, as text."""
    listed = [name for name in (*sorted(packages), *_USED_MOST.split(), *sorted(modules)) if name in modules]
    shown = [*dict.fromkeys(listed)][:_MOST_SHOWN]
    more = len(modules) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def guarded_import(
    name: str,
    globals: Mapping[str, Any] | None = None,
    locals: Mapping[str, Any] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    """Import a loaded module, as a program's `import` does.

    Raises:
        ImportError: The module is neither in `MODULES` nor in one of `PACKAGES`; the message names some.
    """
    known_name = name in MODULES or name in _PARENTS or name == "__main__" or name.partition(".")[0] in PACKAGES
    if level or not known_name:
        known = some_of({name for name in PACKAGES if "." not in name} | MODULES - UNLISTED, PACKAGES)
        message = f"`{name}` cannot be imported. A program can import {known}. For anything else call a tool."
        raise ModuleNotFoundError(message, name=name)
    return _import(name, globals, locals, fromlist or (), 0)
