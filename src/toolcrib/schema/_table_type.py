"""Table types of parameters, such as a DataFrame: a caller gives rows, each an object, and the tool gets the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast, get_args

import pydantic
from pydantic_core import CoreSchema, core_schema

from toolcrib._arrow import is_table_class, table_facts, table_of, table_rows

_COLUMNS: Final = "$columns"  # the key of an object that stands for a table without rows: the names of its columns
_MADE_OF_ROWS: Final = frozenset({"pandas", "polars", "pyarrow"})


def table_type(annotation: Any) -> pydantic.GetPydanticSchema | None:
    """Return how pydantic describes a class of tables; None for anything else."""
    if not isinstance(annotation, type) or annotation.__module__.partition(".")[0] not in _MADE_OF_ROWS:
        return None
    kind: type[Any] = annotation
    return pydantic.GetPydanticSchema(lambda source, handler: _schema(kind)) if is_table_class(kind) else None


def table_names(annotation: Any) -> frozenset[str]:
    """Return the names of the classes of tables in an annotation."""
    if isinstance(annotation, type) and is_table_class(annotation):
        return frozenset({annotation.__name__})
    return frozenset[str]().union(*map(table_names, get_args(annotation)))


def _schema(kind: type[Any]) -> CoreSchema:
    rows = core_schema.list_schema(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))

    def read(value: Any, read_rows: Callable[[Any], Any]) -> Any:
        if isinstance(value, kind):
            return value
        names = cast("dict[str, Any]", value).get(_COLUMNS) if isinstance(value, dict) else None
        if isinstance(names, list) and all(isinstance(name, str) for name in cast("list[Any]", names)):
            return table_of(kind, [], cast("list[str]", names))
        return table_of(kind, read_rows(value))

    return core_schema.no_info_wrap_validator_function(
        read, rows, serialization=core_schema.plain_serializer_function_ser_schema(_written)
    )


def _written(table: Any) -> Any:
    """Return the rows of a table, or of one without any its columns."""
    facts = table_facts(table)
    return table_rows(table) if facts.rows or not facts.columns else {_COLUMNS: [name for name, _ in facts.columns]}
