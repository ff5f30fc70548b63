"""Registries: names, versions, and a scope of a test's own."""

import gc

import pytest

from toolcrib.errors import DuplicateNameError, UnregisteredError, UnregisteredToolError
from toolcrib.registry import Registry, registry_scope


def test_what_is_registered_is_found_in_order() -> None:
    registry: Registry[object] = Registry()
    one, two = object(), object()

    registry.register("two", two)
    registry.register("one", one)

    assert registry.get("one") is one
    assert (registry.all(), registry.names(), len(registry)) == ([two, one], ["two", "one"], 2)
    assert "one" in registry
    assert list(registry) == [two, one]


def test_an_unknown_name_is_the_registrys_own_key_error() -> None:
    registry: Registry[object] = Registry(UnregisteredToolError)
    registry.register("search", object())

    with pytest.raises(UnregisteredToolError, match="`search`") as raised:
        registry.get("serch")

    assert isinstance(raised.value, KeyError)


def test_a_name_is_taken_once() -> None:
    registry: Registry[object] = Registry()

    def first() -> None: ...
    def second() -> None: ...

    registry.register("a", first)
    registry.register("a", first)

    with pytest.raises(DuplicateNameError, match=r"first.*second") as raised:
        registry.register("a", second)

    assert isinstance(raised.value, ValueError)
    assert registry.get("a") is first


def test_a_name_is_taken_over_when_asked() -> None:
    registry: Registry[str] = Registry()
    registry.register("a", "old")

    registry.register("a", "new", replace=True)

    assert registry.get("a") == "new"


class Thing:
    def __init__(self) -> None:
        self.me = self  # a cycle, which only the garbage collector finds


def test_a_weak_registry_gives_a_name_back_when_nothing_refers_to_its_object() -> None:
    registry: Registry[Thing] = Registry(weak=True, mend="Let go of it.")
    first = Thing()
    registry.register("a", first)

    with pytest.raises(DuplicateNameError, match="Let go of it"):
        registry.register("a", Thing())
    del first
    second = registry.register("a", Thing())

    assert registry.get("a") is second
    assert (registry.holds("a", second), registry.holds("a", Thing()), registry.holds("b", second)) == (
        True,
        False,
        False,
    )


def test_a_scope_keeps_a_weak_registry_weak() -> None:
    registry: Registry[Thing] = Registry(weak=True)

    with registry_scope():
        registry.register("a", Thing())
        gc.collect()

        assert registry.names() == []


def test_every_change_is_a_new_version() -> None:
    registry: Registry[str] = Registry()
    versions = [registry.version]

    for change in (lambda: registry.register("a", "x"), lambda: registry.unregister("a"), registry.clear):
        change()
        versions.append(registry.version)

    assert versions == sorted(set(versions))


def test_what_is_forgotten_is_unknown() -> None:
    registry: Registry[str] = Registry()
    registry.register("a", "x")

    registry.unregister("a")

    assert "a" not in registry
    with pytest.raises(UnregisteredError):
        registry.unregister("a")


def test_a_scope_sets_the_contents_aside_and_puts_them_back() -> None:
    registry: Registry[str] = Registry()
    registry.register("a", "x")

    with registry_scope():
        assert registry.all() == []
        registry.register("b", "y")

    assert registry.names() == ["a"]


def test_a_scope_may_begin_with_what_there_is() -> None:
    registry: Registry[str] = Registry()
    registry.register("a", "x")

    with registry_scope(inherit=True):
        registry.register("b", "y")
        assert registry.names() == ["a", "b"]

    assert registry.names() == ["a"]


def test_an_error_leaves_the_scope_all_the_same() -> None:
    registry: Registry[str] = Registry()
    registry.register("a", "x")
    before = registry.version

    with pytest.raises(KeyError), registry_scope():
        raise KeyError

    assert registry.names() == ["a"]
    assert registry.version > before
