"""HookSet: which hooks there are for a tool, in which order, and what is refused."""

from typing import Any

import pytest
from pydantic import BaseModel

from toolcrib.calls import Ask, Reject
from toolcrib.hooks import HookSet, target_name
from toolcrib.tools import ez_tool, tool_input
from toolcrib.toolsets import Toolset


@ez_tool
async def search(query: str) -> None: ...


@ez_tool
async def delete(path: str) -> None: ...


async def refuse(call: Any, given: Any) -> Reject:
    return Reject("no")


async def ask(call: Any, given: Any) -> Ask:
    return Ask("sure?")


class Policy:
    async def search_hook(self, call: Any, given: Any) -> Ask:
        return Ask("search?")

    async def delete_hook(self, call: Any, given: Any) -> Reject:
        return Reject("no")

    async def search_description_hook(self, definition: Any) -> str:
        return "Search, but carefully."

    async def helper(self) -> None: ...


def test_hooks_are_asked_in_the_order_of_registration() -> None:
    hooks = HookSet()

    hooks.on("search")(refuse)
    hooks.register(ask)
    hooks.on("search")(ask)
    hooks.on("delete")(refuse)

    assert hooks.decisions_for("search") == [refuse, ask, ask]
    assert hooks.decisions_for("delete") == [ask, refuse]


def test_a_policy_object_has_its_hooks_by_name() -> None:
    hooks, policy = HookSet(Toolset([search, delete])), Policy()

    assert hooks.register(policy) is policy

    assert hooks.decisions_for("search") == [policy.search_hook]
    assert hooks.decisions_for("delete") == [policy.delete_hook]
    assert hooks.description_for("search") == policy.search_description_hook


def test_a_policy_for_an_unknown_tool_is_refused_with_the_right_names() -> None:
    class Misspelt:
        async def serch_hook(self, call: Any, given: Any) -> None: ...

    with pytest.raises(ValueError, match=r"`serch_hook`.*`search`.*`delete_hook`, `search_hook`"):
        HookSet([search, delete]).register(Misspelt())


def test_a_misspelt_description_method_is_told_the_names_of_its_kind() -> None:
    class Misspelt:
        async def serch_description_hook(self, definition: Any) -> None: ...

    with pytest.raises(ValueError, match=r"`delete_description_hook`, `search_description_hook`\."):
        HookSet([search, delete]).register(Misspelt())


@pytest.mark.parametrize("name", ["search_hok", "search_hooks", "searchhook", "search_descriptionhook"])
def test_a_method_that_was_meant_to_be_a_hook_is_not_passed_over(name: str) -> None:
    policy = type("Misspelt", (Policy,), {name: Policy.search_hook})()

    with pytest.raises(ValueError, match=f"`{name}` is not a hook. Did you mean `search_.*hook`"):
        HookSet([search, delete]).register(policy)


def test_nothing_of_a_refused_policy_stays() -> None:
    class Half(Policy):
        def vanish_hook(self) -> None: ...

    hooks = HookSet([search, delete])
    with pytest.raises(ValueError, match="vanish_hook"):
        hooks.register(Half())

    assert hooks.decisions_for("search") == []


def test_a_policy_without_hooks_is_refused() -> None:
    with pytest.raises(ValueError, match="_hook"):
        HookSet().register(object())
    with pytest.raises(ValueError, match="`delete_hook`, `search_hook`"):
        HookSet([search, delete]).register(object())


def test_a_policy_class_is_no_policy() -> None:
    with pytest.raises(TypeError, match=r"`Policy\(\)`"):
        HookSet().register(Policy)


def test_a_tool_named_like_a_description_has_hooks_too() -> None:
    class Describing:
        async def search_description_hook(self, call: Any, given: Any) -> Reject:
            return Reject("no")

    alone, both = HookSet(["search_description"]), HookSet(["search", "search_description"])
    alone.register(Describing())

    assert len(alone.decisions_for("search_description")) == 1
    with pytest.raises(ValueError, match=r"may decide for `search_description` or describe `search`"):
        both.register(Describing())


def test_a_hook_that_is_not_async_is_refused_and_not_passed_over() -> None:
    class Forgetful:
        async def search_hook(self, call: Any, given: Any) -> None: ...
        def delete_hook(self, call: Any, given: Any) -> None: ...

    with pytest.raises(TypeError, match="delete_hook"):
        HookSet().register(Forgetful())
    with pytest.raises(TypeError, match="async"):
        HookSet().on("search")(lambda call, given: Reject("no"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="async"):
        HookSet().on("search").description(lambda definition: "x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="async"):
        HookSet().register(lambda call, given: Reject("no"))


def test_a_hook_for_an_unknown_tool_is_refused() -> None:
    with pytest.raises(ValueError, match="`serch`"):
        HookSet([search]).on("serch")
    late = HookSet()
    late.on("serch")(refuse)
    with pytest.raises(ValueError, match="`serch`"):
        Toolset([search], hooks=late)
    with pytest.raises(ValueError, match="`serch`"):
        Toolset([search]).with_hooks(late)


def test_copies_do_not_share() -> None:
    hooks = HookSet()
    hooks.on("search")(refuse)
    other = HookSet()
    other.on("search")(ask)
    other.on("search").description(Policy().search_description_hook)

    both = hooks.with_extended(other)
    more = hooks.with_hooks(ask)

    assert hooks.decisions_for("search") == [refuse]
    assert both.decisions_for("search") == [refuse, ask]
    assert both.description_for("search") is not None
    assert more.decisions_for("search") == [refuse, ask]


def test_extending_checks_the_names() -> None:
    other = HookSet()
    other.on("delete")(refuse)

    with pytest.raises(ValueError, match="`delete`"):
        HookSet([search]).extend(other)


def test_a_tool_is_named_in_any_way() -> None:
    @tool_input(name="read_file")
    class ReadFile(BaseModel): ...

    assert [target_name(t) for t in ("a", search, Toolset([search])["search"], ReadFile)] == [
        "a",
        "search",
        "search",
        "read_file",
    ]
    with pytest.raises(TypeError, match="does not stand for a tool"):
        target_name(3)


def test_a_hook_that_takes_other_parameters_is_refused_when_it_is_registered() -> None:
    async def decide(given: Any) -> Reject:
        return Reject("no")

    async def describe() -> str:
        return "Find."

    class Policy:
        async def search_hook(self, given: Any) -> Reject:
            return Reject("no")

    hooks = HookSet([search])

    for attach in (hooks.register, hooks.on("search")):
        with pytest.raises(TypeError, match=r"the decision hook `decide` is called with \(call, input\)"):
            attach(decide)
    with pytest.raises(TypeError, match=r"the decision hook `search_hook` is called with \(call, input\)"):
        hooks.register(Policy())
    with pytest.raises(TypeError, match=r"the description hook `describe` is called with \(definition\)"):
        hooks.on("search").description(describe)
    assert hooks.decisions_for("search") == []
