from __future__ import annotations

import functools
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Required, TypeVar, Unpack

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from toolcrib.errors import SchemaError
from toolcrib.schema import Injectable, Injected, RunContext, ToolSpec

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForCheckers


class Queue(Injectable):
    pass


class Database:
    pass


async def coroutine(city: str) -> int:
    return len(city)


async def stream(city: str) -> AsyncIterator[int]:
    yield len(city)


def plain(city: str) -> int:
    return len(city)


def lines(city: str) -> Iterator[int]:
    yield len(city)


class Office:
    def method(self, city: str) -> int:
        """Of the office."""
        return len(city)

    async def __call__(self, city: str) -> int:
        """When called."""
        return len(city)


def spec_of(fn: Callable[..., Any], **options: Any) -> ToolSpec:
    return ToolSpec.from_function(fn, name="tool", **options)


@pytest.mark.parametrize(
    ("fn", "kinds"),
    [
        (coroutine, (True, False, False, False)),
        (stream, (False, True, False, False)),
        (plain, (False, False, False, True)),
        (lines, (False, False, True, True)),
        (Office().method, (False, False, False, True)),
        (Office(), (True, False, False, False)),
        (functools.partial(coroutine, city="Oslo"), (True, False, False, False)),
    ],
)
def test_the_kind_of_a_function_is_known_at_once(fn: Callable[..., Any], kinds: tuple[bool, ...]) -> None:
    spec = spec_of(fn)

    assert (spec.is_coroutine, spec.is_generator, spec.is_sync_generator, spec.is_sync) == kinds


def test_an_async_wrapper_counts_as_what_it_is() -> None:
    @functools.wraps(plain)
    async def wrapper(*args: Any, **kwargs: Any) -> int:
        return plain(*args, **kwargs)

    spec = spec_of(wrapper)

    assert spec.is_coroutine
    assert spec.parameters["required"] == ["city"]


def test_a_built_in_without_a_signature_is_a_type_error() -> None:
    with pytest.raises(TypeError, match=r"`tool` has no readable signature.*Wrap it in a function"):
        spec_of(max)


def test_accepts_says_which_keywords_can_be_passed() -> None:
    def closed(city: str, /, *, unit: str) -> None: ...
    def opened(city: str, **rest: int) -> None: ...

    assert [spec_of(closed).accepts(name) for name in ("city", "unit", "other")] == [True, True, False]
    assert [spec_of(opened).accepts(name) for name in ("city", "other")] == [True, True]


def test_defining_needs_no_annotation_to_exist() -> None:
    def broken(x: Nowhere) -> Nowhere: ...  # noqa: F821 # pyright: ignore

    spec = spec_of(broken)

    assert spec.bind_host((1,), {}) == ({"x": 1}, ())
    assert spec.signature == "tool(x: Nowhere) -> Nowhere"
    assert spec.return_schema is None


def test_a_name_for_type_checkers_only_is_an_error_that_names_the_parameter() -> None:
    def priced(amount: int, price: OnlyForCheckers) -> None: ...

    with pytest.raises(SchemaError, match=r"parameter `price` is annotated `OnlyForCheckers`.*TYPE_CHECKING") as caught:
        _ = spec_of(priced).parameters

    assert caught.value.parameter == "price"


def test_injected_parameters_are_found_though_their_types_are_for_checkers_only() -> None:
    def tool(ctx: RunContext[OnlyForCheckers], db: Annotated[OnlyForCheckers, Injected], city: str) -> None: ...

    spec = spec_of(tool)

    assert {name: found.kind for name, found in spec.injected.items()} == {"ctx": "context", "db": "injected"}
    assert list(spec.parameters["properties"]) == ["city"]


def test_annotations_see_the_function_around() -> None:
    class Place(BaseModel):
        city: str

    def visit(place: Place) -> Place:
        return place

    spec = spec_of(visit)

    assert spec.return_type is Place
    assert spec.arguments(spec.validate_json('{"place": {"city": "Oslo"}}')) == {"place": Place(city="Oslo")}


def test_injected_parameters_are_hidden_and_described() -> None:
    def tool(
        city: str,
        ctx: RunContext[Database],
        bare: RunContext | None,
        queue: Queue,
        maybe: Queue | None,
        spare: Queue | None = None,
        db: Annotated[Database, Injected] = Database(),  # noqa: B008
        other: Annotated[Database | None, Injected()] = None,
    ) -> None: ...

    spec = spec_of(tool)

    assert list(spec.parameters["properties"]) == ["city"]
    assert spec.signature == "tool(city: str) -> None"
    found = {name: (p.kind, p.type, p.optional, p.has_default) for name, p in spec.injected.items()}
    assert found == {
        "ctx": ("context", RunContext, False, False),
        "bare": ("context", RunContext, True, False),
        "queue": ("injectable", Queue, False, False),
        "maybe": ("injectable", Queue, True, False),
        "spare": ("injectable", Queue, True, True),
        "db": ("injected", Database, True, True),
        "other": ("injected", Database, True, True),
    }


def test_context_first_takes_any_annotation() -> None:
    def call(ctx: Any, city: str) -> None: ...

    spec = spec_of(call, context_first=True)

    assert spec.injected["ctx"].kind == "context"
    assert list(spec.parameters["properties"]) == ["city"]


def test_fixed_arguments_are_hidden() -> None:
    def fetch(url: str, api_key: str) -> None: ...

    spec = spec_of(fetch, fixed=frozenset({"api_key"}))

    assert spec.signature == "tool(url: str) -> None"
    assert list(spec.parameters["properties"]) == ["url"]


def test_a_docstring_is_found_on_methods_partials_and_callable_objects() -> None:
    assert spec_of(Office().method).description == "Of the office."
    assert spec_of(functools.partial(Office().method, "Oslo")).description == "Of the office."
    assert spec_of(Office()).description == "When called."


def test_return_types_of_generators_and_awaitables_are_of_what_comes_out() -> None:
    def later(city: str) -> Awaitable[int]: ...

    assert [spec_of(fn).return_type for fn in (coroutine, stream, lines, later)] == [int] * 4
    assert spec_of(stream).signature == "tool(city: str) -> AsyncIterator[int]"


def test_a_thousand_tools_cost_no_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    specs = [spec_of(coroutine) for _ in range(1000)]

    assert all("_resolved" not in vars(spec) and spec._input is None for spec in specs)  # pyright: ignore[reportPrivateUsage]


class Options(TypedDict, total=False):
    limit: Required[int]
    city: str


def test_unpacked_keywords_may_be_required() -> None:
    def search(**options: Unpack[Options]) -> None: ...

    spec = spec_of(search)

    assert spec.parameters["required"] == ["limit"]
    assert spec.bind_host((), {"limit": 1, "other": 2}) == ({"limit": 1}, ("other",))
    with pytest.raises(TypeError, match="limit: missing"):
        spec.bind_host((), {"city": "Oslo"})


def test_a_class_is_called_like_a_function() -> None:
    class Point:
        def __init__(self, x: int, y: int = 0) -> None:
            self.x, self.y = x, y

    spec = spec_of(Point)

    assert spec.is_sync
    assert spec.arguments(spec.validate_json('{"x": 1}')) == {"x": 1, "y": 0}


@pytest.mark.parametrize("annotation", ["list['Nowhere']", "sys.Nowhere", "int +", "1 / 0"])
def test_an_annotation_that_fails_is_an_error_that_names_the_parameter(annotation: Any) -> None:
    def broken(x: Any) -> None: ...

    broken.__annotations__["x"] = annotation

    with pytest.raises(SchemaError, match=r"parameter `x` (has an annotation|is annotated)"):
        _ = spec_of(broken).parameters


def test_names_of_a_generic_function_are_known() -> None:
    space: dict[str, Any] = {"Sequence": Sequence, "TypeVar": TypeVar}
    exec("T = TypeVar('T')\ndef first(items: 'Sequence[T]') -> 'T': ...", space)

    assert spec_of(space["first"]).parameters["properties"]["items"] == {"type": "array", "items": {}}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters are new in 3.12")
def test_type_parameters_are_known_to_string_annotations() -> None:
    space: dict[str, Any] = {}
    exec("def first[T: int](items: 'list[T]') -> 'T': ...", space)

    spec = spec_of(space["first"])

    assert spec.parameters["properties"]["items"] == {"type": "array", "items": {"type": "integer"}}
