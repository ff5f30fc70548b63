"""Table types of parameters, such as a DataFrame: a caller gives rows, each an object, and the tool gets the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pydantic import GetPydanticSchema
from pydantic_core import CoreSchema, core_schema

from toolcrib._arrow import is_table_class, table_of, table_rows

__all__ = ["table_type"]

_MADE_OF_ROWS: Final = frozenset({"pandas", "polars", "pyarrow"})


def table_type(annotation: Any) -> GetPydanticSchema | None:
    """Return how pydantic describes a class of tables; None for anything else."""
    if not isinstance(annotation, type) or annotation.__module__.partition(".")[0] not in _MADE_OF_ROWS:
        return None
    kind: type[Any] = annotation
    return GetPydanticSchema(lambda source, handler: _schema(kind)) if is_table_class(kind) else None


def _schema(kind: type[Any]) -> CoreSchema:
    rows = core_schema.list_schema(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))

    def read(value: Any, read_rows: Callable[[Any], Any]) -> Any:
        return value if isinstance(value, kind) else table_of(kind, read_rows(value))

    return core_schema.no_info_wrap_validator_function(
        read, rows, serialization=core_schema.plain_serializer_function_ser_schema(table_rows, return_schema=rows)
    )
