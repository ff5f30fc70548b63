"""Subtools: scoped names, short names, clashes."""

import pytest

from toolcrib.errors import DuplicateNameError
from toolcrib.tools import ToolRegistry, tool


def test_a_subtool_has_a_scoped_name_and_a_short_one() -> None:
    @tool()
    async def users() -> None:
        """Manage users."""

    @users.subtool()
    async def create(name: str) -> None:
        """Create one."""

    @create.subtool(lock=True, tags=["io"])
    async def draft() -> None:
        """Only a draft."""

    assert ToolRegistry.names() == ["users", "users.create", "users.create.draft"]
    assert (create.__name__, create.name, create.metadata.name) == ("users.create", "users__create", "create")
    assert draft.tags == {"io"}
    assert users.doc_tree() == {
        "name": "users",
        "description": "Manage users.",
        "subtools": [
            {
                "name": "create",
                "description": "Create one.",
                "subtools": [{"name": "draft", "description": "Only a draft.", "subtools": []}],
            }
        ],
    }
    assert ToolRegistry.definitions() == [users.doc_tree()]


def test_a_subtool_may_be_made_bare() -> None:
    @tool
    async def users() -> None: ...

    @users.subtool
    async def create(name: str) -> None: ...

    assert users.subtools == [create]
    assert ToolRegistry.get("users.create") is create


def test_a_sync_subtool_is_called_by_its_own_name() -> None:
    @tool
    async def users() -> None: ...

    with pytest.raises(TypeError, match=r"`plain` is a sync function.*`async def plain"):

        @users.subtool
        def plain() -> None: ...


def test_one_short_name_under_two_parents() -> None:
    @tool()
    async def users() -> None: ...

    @tool()
    async def posts() -> None: ...

    for parent in (users, posts):

        @parent.subtool()
        async def create() -> None: ...

    assert "users.create" in ToolRegistry
    assert "posts.create" in ToolRegistry


def test_two_subtools_with_one_name_are_an_error_that_names_both() -> None:
    @tool()
    async def users() -> None: ...

    @users.subtool(name="create")
    async def first() -> None: ...

    with pytest.raises(DuplicateNameError, match=r"first.*second"):

        @users.subtool(name="create")
        async def second() -> None: ...

    assert users.subtools == [first]


def test_a_subtool_is_replaced_when_asked() -> None:
    @tool()
    async def users() -> None: ...

    @users.subtool(name="create")
    async def first() -> None: ...

    @users.subtool(name="create", replace=True)
    async def second() -> None: ...

    assert users.subtools == [second]
    assert ToolRegistry.get("users.create") is second


def test_what_models_would_see_under_one_name_is_an_error() -> None:
    @tool()
    async def users() -> None: ...

    @tool()
    async def users__create() -> None: ...

    with pytest.raises(DuplicateNameError):

        @users.subtool()
        async def create() -> None: ...
