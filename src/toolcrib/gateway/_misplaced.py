"""Options and sections of Toolcrib that a file of servers has where they have no effect."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from pydantic import BaseModel, ValidationError

from toolcrib.errors import asks_for_approval, choice_meant, nearest
from toolcrib.gateway._fields import EXCLUDING, FilePlace, option_meant, word_of

OF_CLIENTS: Final = frozenset(
    {"alwaysAllow", "autoApprove", "description", "dev", "gallery", "note", "oauth", "timeout", "trust", "version"}
)
"""Fields of clients that say nothing about how a server is reached."""
_OF_FILE: Final = frozenset({"approvals", "approvers", "budgets", "limits", "provenance"})
_GUARDS: Final = ("approval", "approve_sampling", "ask_client", "labels", "pins", "tools", "trusted")
"""Options of a server that beside the servers would seem to guard all of them."""
_OF_CODEX: Final = frozenset({"approval_mode", "approval_policy"})
_OF_WHOLE_CLIENTS: Final = frozenset({"mcp", "name", "openapi", "toolcrib"}) | OF_CLIENTS
"""Names beside the servers that are read, or that clients have there."""
_ASKED: Final = frozenset({"always", "approve", "ask", "confirm", "prompt", "required"})
_OF_PEOPLE: Final = frozenset({"approver", "approvers", "by", "who"})
"""Words beside names of tools for who approves their calls."""
_NOT_OF_WORDS: Final = re.compile(r"[\W_]+")


def refuse_misplaced(
    place: FilePlace,
    document: Mapping[str, Any],
    file_section: type[BaseModel],
    section: type[BaseModel],
    prefixes: Mapping[str, str],
) -> None:
    """Check that no option of Toolcrib, and no misspelt section, is beside the servers.

    Args:
        place: Of the file.
        document: The file, or the part of the settings of a client that has the servers.
        file_section: The model of the section of the file.
        section: The model of the section of a server.
        prefixes: The beginning of the names of the tools of each server.

    Raises:
        TargetError: One is: the error says where to write it.
    """
    defaults: Any = file_section.model_fields["defaults"].annotation
    for name, value in document.items():
        _refuse_near_section(place, name)
        word = word_of(name)
        words = {word} if word in section.model_fields else {word, f"{word}s"}
        option = next((known for known in file_section.model_fields if known in words), None)
        if name in _OF_WHOLE_CLIENTS:
            continue
        if option is not None and (file_section.model_fields[option].annotation is not bool or isinstance(value, bool)):
            raise _misplaced(
                place, name, {option: value} if option in _OF_FILE else _shown(file_section, option, value)
            )
        option, meant = _guard(name, value, section)
        if option in _GUARDS and not isinstance(meant, list) and _fits(defaults, option, meant):
            raise _misplaced(place, name, {"defaults": {option: meant}})
        if option in _GUARDS:
            where = _of_servers(section, option, meant, prefixes)
            raise place.wrong(name, f"it has no effect here; write in {where}{_people(meant)}")
        _refuse_options_inside(place, name, value)


def refuse_misplaced_in_entry(place: FilePlace, given: Any, entry: type[BaseModel], section: type[BaseModel]) -> None:
    """Check that no field of an entry is an option of its section, which is read inside of `toolcrib` alone.

    Fields of clients stay allowed, also those that are named like an option and have another value: the `tools` of
    some are settings of each tool, or `["*"]`.

    Args:
        place: Of the entry.
        given: The entry, as the file has it.
        entry: The model of the entry.
        section: The model of its section.

    Raises:
        TargetError: One is an option: the error says where to write it.
    """
    for name, value in (cast("dict[str, Any]", given) if isinstance(given, dict) else {}).items():
        if name in entry.model_fields or name in OF_CLIENTS:
            continue
        _refuse_near_section(place, name)
        option, meant = _guard(name, value, section)
        if option is None and value not in (None, [], ["*"]) and word_of(name) in _OF_FILE:
            raise _misplaced(place, name, {word_of(name): value}, " beside the servers, for all of them")
        if option is None:
            _refuse_options_inside(place, name, value)
            continue
        if meant is ...:
            raise _misplaced(place, name, {option: ...}, " with the tools to take")
        raise _misplaced(place, name, _shown(section, option, meant), _people(meant))


def _guard(name: str, value: Any, section: type[BaseModel]) -> tuple[str | None, Any]:
    """Return the option of a server that a field outside of its section stands for, and its value.

    The value is `...` for tools to take that the field does not name; the option is None for a field of clients.
    """
    word, option = word_of(name), option_meant(name, section.model_fields)
    if option is None or word in _OF_CODEX or value in (None, [], ["*"]):
        return None, value
    if option == "approval":
        return option, _meant(option, value)
    if word == "tools" and isinstance(value, dict):
        of_tools = cast("dict[str, Any]", value)
        settings = {tool: cast("dict[str, Any]", how) for tool, how in of_tools.items() if isinstance(how, dict)}
        asked = [tool for tool, how in settings.items() if any(_asks(key, setting) for key, setting in how.items())]
        if asked:
            return "approval", asked
        if any(how.get("enabled") is False or how.get("disabled") is True for how in settings.values()):
            return option, ...
    if option == word and not _fits(section, option, value):
        return None, cast("Any", value)
    return option, ... if word in EXCLUDING else cast("Any", value)


def _asks(name: str, value: Any) -> bool:
    """Return whether a field asks for approval."""
    return asks_for_approval(name) and word_of(name) not in _OF_CODEX and value not in (None, False, "never")


def _refuse_near_section(place: FilePlace, name: str) -> None:
    """Check that a name is not a misspelt `toolcrib` or `openapi`; raises TargetError."""
    plain = _NOT_OF_WORDS.sub("", name).casefold()
    is_near = "toolcrib" in plain or bool(nearest(plain, ["toolcrib"], cutoff=0.8))
    if name not in ("toolcrib", "openapi") and (is_near or plain == "openapi"):
        raise place.wrong(name, f"it is not read; write `{'toolcrib' if is_near else plain}`")


def _refuse_options_inside(place: FilePlace, name: str, value: Any) -> None:
    """Check that an unknown object, such as `settings`, holds no options that guard calls; raises TargetError."""
    for inner, setting in cast("dict[str, Any]", value).items() if isinstance(value, dict) else ():
        if _asks(inner, setting) or inner in _OF_FILE - {"limits"}:
            raise place.wrong(name, f"it is not read, and has `{inner}`; write that in the section `toolcrib`")


def refuse_options_of_servers(
    place: FilePlace, given: Any, file_section: type[BaseModel], section: type[BaseModel], prefixes: Mapping[str, str]
) -> None:
    """Check that no option in the file's own section, or in its defaults, is one of a server's section alone.

    Args:
        place: Of the file's own section.
        given: That section, as the file has it.
        file_section: Its model.
        section: The model of the section of a server.
        prefixes: The beginning of the names of the tools of each server.

    Raises:
        TargetError: One is: the error says where to write it.
    """
    defaults: Any = file_section.model_fields["defaults"].annotation
    of_file = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    for prefix, model, options in (("", file_section, of_file), ("defaults.", defaults, of_file.get("defaults"))):
        for name, value in cast("dict[str, Any]", options).items() if isinstance(options, dict) else ():
            option = option_meant(name, section.model_fields)
            is_own = name in model.model_fields
            meant = value if is_own else _meant(option, value)
            is_read = is_own or option != "approval"
            if option is None or _fits(model, name, value) or (is_read and not _fits(section, option, meant)):
                continue
            for_all = '"defaults" here, for all servers, or in ' if _fits(defaults, option, meant) else ""
            where = _of_servers(section, option, meant, prefixes)
            raise place.wrong(
                f"toolcrib.{prefix}{name}", f"it is an option of a server; write in {for_all}{where}{_people(meant)}"
            )


def refuse_options_of_file(place: FilePlace, given: Any, section: type[BaseModel]) -> None:
    """Check that no option in the section of an entry is one of the file's own section alone; raises TargetError."""
    options: Any = cast("dict[str, Any]", given).get("toolcrib") if isinstance(given, dict) else None
    for name, value in cast("dict[str, Any]", options).items() if isinstance(options, dict) else ():
        if name in _OF_FILE and name not in section.model_fields:
            raise _misplaced(place, f"toolcrib.{name}", {name: value}, " beside the servers, for all of them")


def _meant(option: str | None, value: Any) -> Any:
    """Return the approval that is meant by a text, or by tools with whether or how each is asked about."""
    if option != "approval" or not isinstance(value, str | dict):
        return value
    if isinstance(value, str):
        return choice_meant(value, ("unless_read_only",))
    asked = cast("dict[str, Any]", value)
    if _people(asked):
        return asked
    if all(isinstance(how, bool | dict | str) for how in asked.values()) and not {"always", "never"} & asked.keys():
        return [name for name, how in asked.items() if (how in _ASKED if isinstance(how, str) else how is not False)]
    return asked


def _people(asked: Any) -> str:
    """Return where it is said who approves, where that stands beside names of tools."""
    several = cast("list[Any]", asked) if isinstance(asked, list) else [asked]
    names = {word_of(name) for entry in several if isinstance(entry, dict) for name in cast("dict[str, Any]", entry)}
    if not names & _OF_PEOPLE:
        return ""
    return (
        '. Who may approve is declared beside the servers: "toolcrib": {"approvers": "approvers.toml"}, a file of rules'
    )


def _of_servers(section: type[BaseModel], option: str, value: Any, prefixes: Mapping[str, str]) -> str:
    """Return where an option is written, and how: names of tools are those of a server, without its prefix."""
    found: dict[str, list[str]] = {}
    for name in cast("list[str]", value) if isinstance(value, list) and _fits(section, option, value) else ():
        fitting = (server for server, prefix in prefixes.items() if name.startswith(prefix))
        alone = next(iter(prefixes)) if len(prefixes) == 1 else ""
        of = max(fitting, key=lambda server: len(prefixes[server]), default=alone)
        found.setdefault(of, []).append(name.removeprefix(prefixes.get(of, "")))
    written = [
        f"the server{f' `{of}`' if of else ''}, which has its tools without a prefix: "
        f"{_written(_shown(section, option, names))}"
        for of, names in (found or {"": value}).items()
    ]
    return f'the section "toolcrib" of {"; and of ".join(written)}'


def _shown(section: type[BaseModel], option: str, value: Any) -> dict[str, Any]:
    return {option: value if section.model_fields[option].repr and _fits(section, option, value) else ...}


def _written(option: Mapping[str, Any]) -> str:
    return json.dumps(option, default=lambda _: "...").replace('"..."', "...")


def _misplaced(place: FilePlace, name: str, option: Mapping[str, Any], rest: str = "") -> Exception:
    return place.wrong(name, f'it has no effect here; write "toolcrib": {_written(option)}{rest}')


def _fits(section: type[BaseModel], option: str, value: Any) -> bool:
    try:
        section.model_validate({option: value})
    except ValidationError:
        return False
    return True
