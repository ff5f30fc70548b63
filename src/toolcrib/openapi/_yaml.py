"""YAML as JSON shapes: texts stay texts (`NO`, `2024-01-01`), keys are texts, and aliases cannot multiply for ever."""

from __future__ import annotations

import json
import re
from typing import Any, cast

import yaml

_MOST_PARTS = 5_000_000  # with each alias written out
_DEEPEST = 500  # objects and lists in one another; libyaml's own recursion ends the process somewhere beyond 5,000

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the former where libyaml is there


class _Loader(_Base):
    """A safe loader with the scalars of YAML 1.2: it knows no dates, and no `yes` or `no`."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 -- as yaml declares it


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+", "-+0123456789."),
    ("merge", r"<<", "<"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})\\Z"), list(_first))


def read_json_shapes(text: str) -> Any:
    """Return the value of a text that is JSON or YAML.

    Raises:
        ValueError: It is neither; it holds what is not JSON, leads into itself, or comes to too much.
    """
    try:
        if text.lstrip().startswith(("{", "[")):
            try:
                return json.loads(text)
            except ValueError:  # it may be YAML that looks like JSON
                pass
        # reading events takes no recursion
        depth = 0
        for event in cast("Any", yaml).parse(text, Loader=_Loader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > _DEEPEST:
                    raise ValueError("it is nested too deep")
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
        return _Shapes().of(yaml.load(text, Loader=_Loader))
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())[:300]) from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None


class _Shapes:
    """Values of YAML on their way to JSON shapes; what an alias shares stays shared."""

    def __init__(self) -> None:
        self._converted: dict[int, tuple[Any, int]] = {}
        self._open: set[int] = set()

    def of(self, value: Any) -> Any:
        """Return a value as JSON shapes."""
        return self._of(value)[0]

    def _of(self, value: Any) -> tuple[Any, int]:
        if value is None or isinstance(value, str | bool | int | float):
            return value, 1
        if not isinstance(value, dict | list):
            raise ValueError(f"{value!r:.60} is not JSON")
        key = id(cast("object", value))
        if key in self._open:
            raise ValueError("it has an alias that leads into itself")
        if key not in self._converted:
            self._open.add(key)
            self._converted[key] = self._container(value)
            self._open.discard(key)
        return self._converted[key]

    def _container(self, value: Any) -> tuple[Any, int]:
        container: Any
        if isinstance(value, dict):
            named = cast("dict[Any, Any]", value)
            parts = {_key(name): self._of(part) for name, part in named.items()}
            container = {name: part for name, (part, _) in parts.items()}
            size = 1 + sum(size for _, size in parts.values())
        else:
            items = [self._of(part) for part in value]
            container = [part for part, _ in items]
            size = 1 + sum(size for _, size in items)
        if size > _MOST_PARTS:
            raise ValueError("it comes to too much when its aliases are written out")
        return container, size


def _key(name: Any) -> str:
    if isinstance(name, str):
        return name
    if name is None or isinstance(name, bool | int | float):
        return json.dumps(name)
    raise ValueError(f"the key {name!r:.60} is not text")
