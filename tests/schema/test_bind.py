from __future__ import annotations

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from toolcrib.errors import InvalidArguments
from toolcrib.schema import Injected, RunContext, ToolSpec


def spec_of(fn: Any, **options: Any) -> ToolSpec:
    return ToolSpec.from_function(fn, name="tool", **options)


def simple(city: str, unit: str = "c", *, day: int = 1) -> dict[str, Any]:
    return locals()


def mixed(first: int, /, second: int = 2, *rest: int, third: int, **others: int) -> dict[str, Any]:
    return locals()


def with_context(ctx: RunContext, city: str, unit: str = "c") -> None: ...


CONTEXT = RunContext(deps=None, call_id="call_1", tool_name="tool", run_id="s")


@pytest.mark.parametrize(
    ("args", "kwargs", "bound", "dropped"),
    [
        (("Oslo",), {}, {"city": "Oslo"}, ()),
        ((), {"city": "Oslo", "day": 2}, {"city": "Oslo", "day": 2}, ()),
        (("Oslo", "f", "more"), {}, {"city": "Oslo", "unit": "f"}, ("argument 3",)),
        (("Oslo",), {"wind": 3}, {"city": "Oslo"}, ("wind",)),
        ((), {"city": "Oslo", "wind": 3}, {"city": "Oslo"}, ("wind",)),
    ],
)
def test_extra_arguments_are_dropped_and_reported(
    args: tuple[Any, ...], kwargs: dict[str, Any], bound: dict[str, Any], dropped: tuple[str, ...]
) -> None:
    assert spec_of(simple).bind_host(args, kwargs) == (bound, dropped)


def test_a_missing_argument_is_a_type_error_that_names_tool_and_parameter() -> None:
    with pytest.raises(TypeError, match="`tool` cannot take these arguments: city: missing, it is required"):
        spec_of(simple).bind_host((), {"unit": "f"})


def test_every_missing_argument_is_named() -> None:
    with pytest.raises(InvalidArguments) as caught:
        spec_of(mixed).bind_host((), {})

    assert [problem.field for problem in caught.value.problems] == ["first", "third"]


def test_an_argument_given_twice_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="city: given twice"):
        spec_of(simple).bind_host(("Oslo",), {"city": "Rome"})


def test_variadic_arguments_keep_their_place() -> None:
    spec = spec_of(mixed)

    bound, dropped = spec.bind_host((1, 2, 3, 4), {"third": 5, "extra": 6})

    assert bound == {"first": 1, "second": 2, "rest": (3, 4), "third": 5, "extra": 6}
    assert dropped == ()
    assert spec.split(bound) == ([1, 2, 3, 4], {"third": 5, "extra": 6})
    assert not spec.plain


def test_variadic_arguments_may_be_named() -> None:
    spec = spec_of(mixed)

    bound, _ = spec.bind_host((), {"first": 1, "third": 5, "rest": [3]})

    assert spec.split(bound) == ([1, 2, 3], {"third": 5})


def test_named_variadic_arguments_must_be_a_list() -> None:
    with pytest.raises(TypeError, match="rest: must be a list or a tuple"):
        spec_of(mixed).bind_host((), {"first": 1, "third": 5, "rest": 3})


def test_positional_only_parameters_can_be_named() -> None:
    def power(base: int, exponent: int = 2, /) -> None: ...

    spec = spec_of(power)

    assert spec.bind_host((), {"base": 3}) == ({"base": 3}, ())
    assert spec.split({"base": 3}) == ([3, 2], {})
    assert spec.split({"exponent": 3}) == ([], {"exponent": 3})  # the call then says what is missing


def test_a_plain_function_is_called_by_name() -> None:
    spec = spec_of(simple)

    assert spec.plain
    assert spec.split({"city": "Oslo"}) == ([], {"city": "Oslo"})


def test_positional_values_pass_over_what_the_run_fills() -> None:
    spec = spec_of(with_context)

    assert spec.bind_host(("Oslo", "f"), {}) == ({"city": "Oslo", "unit": "f"}, ())
    assert spec.bind_host((CONTEXT, "Oslo"), {}) == ({"ctx": CONTEXT, "city": "Oslo"}, ())
    assert spec.bind_host((), {"ctx": CONTEXT, "city": "Oslo"}) == ({"ctx": CONTEXT, "city": "Oslo"}, ())


def test_fixed_and_injected_arguments_are_never_missing() -> None:
    def fetch(url: str, api_key: str, db: Annotated[dict[str, int], Injected]) -> None: ...

    spec = spec_of(fetch, fixed=frozenset({"api_key"}))

    assert spec.bind_host(("x",), {}) == ({"url": "x"}, ())
    assert spec.bind_host(("x",), {"api_key": "k"}) == ({"url": "x", "api_key": "k"}, ())


def test_defaults_in_a_field_are_filled_in() -> None:
    def search(
        query: str,
        top: int = Field(default=3, ge=1),
        tags: list[str] = Field(default_factory=list),  # noqa: B008
    ) -> None: ...

    assert spec_of(search).bind_host(("x",), {}) == ({"query": "x", "top": 3, "tags": []}, ())


def test_defaults_in_a_field_of_an_annotation_are_filled_in() -> None:
    def search(
        query: str,
        top: Annotated[int, Field(default=3, ge=1)],
        tags: Annotated[list[str], Field(default_factory=list)],
        more: Annotated[str | None, Field(default=None)],
    ) -> None: ...

    spec = spec_of(search)

    expected = {"query": "x", "top": 3, "tags": [], "more": None}
    assert spec.bind_host(("x",), {}) == (expected, ())
    assert spec.arguments(spec.validate_json('{"query": "x"}')) == expected


def test_a_field_without_a_default_is_required() -> None:
    def search(query: str = Field(description="what")) -> None: ...

    with pytest.raises(TypeError, match="query: missing"):
        spec_of(search).bind_host((), {})


def test_an_input_model_binds_its_fields_in_order() -> None:
    class Query(BaseModel):
        text: str
        top: int = 3

    spec = ToolSpec.from_model(Query, name="search")

    assert spec.bind_host(("x",), {"other": 1}) == ({"text": "x", "top": 3}, ("other",))


VALUES = st.integers(0, 3)


@given(
    args=st.lists(VALUES, max_size=5),
    kwargs=st.dictionaries(st.sampled_from(["city", "unit", "day", "first", "second", "third", "x"]), VALUES),
    fn=st.sampled_from([simple, mixed]),
)
def test_binding_agrees_with_python_where_python_binds(args: list[int], kwargs: dict[str, int], fn: Any) -> None:
    try:
        expected = fn(*args, **kwargs)
    except TypeError:
        return
    clash = "first" in kwargs and fn is mixed  # it would go into **others under the name of another parameter

    bound, dropped = spec_of(fn).bind_host(args, kwargs)
    positional, keywords = spec_of(fn).split(bound)

    assert dropped == (("first",) if clash else ())
    assert clash or fn(*positional, **keywords) == expected
