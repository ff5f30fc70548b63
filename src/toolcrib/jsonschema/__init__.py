"""JSON Schema: functions that visit, resolve, merge, bound, repair and describe schemas.

The schemas are those of servers and documents, or go to providers. The checker of values, which needs the extra
`schema`, is in `toolcrib.jsonschema.checker`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.jsonschema._composition import as_one, branches
    from toolcrib.jsonschema._references import arguments_schema
    from toolcrib.jsonschema._repair import drops_keywords, of_newer_version, satisfiable
    from toolcrib.jsonschema._shape import PYTHON_TYPES, describe_shape
    from toolcrib.jsonschema._shown import shown_arguments, shown_value
    from toolcrib.jsonschema._visitor import (
        ABOUT,
        CHOICES,
        HOLDERS,
        alternatives,
        children,
        definitions_in,
        kind_of,
        kinds_of,
        pointed_at,
        properties_of,
        ref_of,
        rewrite,
        subschemas,
        values_of,
        wrapped,
    )
    from toolcrib.jsonschema._walk import SchemaWalk, check_nesting, check_size, written_out
    from toolcrib.jsonschema._well_formed import keyword_fits, well_formed
    from toolcrib.jsonschema._words import brief, described, in_prose, path_of, schema_texts, type_words
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "._composition": "as_one branches",
            "._references": "arguments_schema",
            "._repair": "drops_keywords of_newer_version satisfiable",
            "._shape": "PYTHON_TYPES describe_shape",
            "._shown": "shown_arguments shown_value",
            "._visitor": (
                "ABOUT CHOICES HOLDERS alternatives children definitions_in kind_of kinds_of pointed_at properties_of "
                "ref_of rewrite subschemas values_of wrapped"
            ),
            "._walk": "SchemaWalk check_nesting check_size written_out",
            "._well_formed": "keyword_fits well_formed",
            "._words": "brief described in_prose path_of schema_texts type_words",
        },
    )

__all__ = [
    "ABOUT",
    "CHOICES",
    "HOLDERS",
    "PYTHON_TYPES",
    "SchemaWalk",
    "alternatives",
    "arguments_schema",
    "as_one",
    "branches",
    "brief",
    "check_nesting",
    "check_size",
    "children",
    "definitions_in",
    "describe_shape",
    "described",
    "drops_keywords",
    "in_prose",
    "keyword_fits",
    "kind_of",
    "kinds_of",
    "of_newer_version",
    "path_of",
    "pointed_at",
    "properties_of",
    "ref_of",
    "rewrite",
    "satisfiable",
    "schema_texts",
    "shown_arguments",
    "shown_value",
    "subschemas",
    "type_words",
    "values_of",
    "well_formed",
    "wrapped",
    "written_out",
]
