"""Options that a function or a class has not: the error names the one that is meant, or what has it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from datetime import datetime, timedelta
from functools import wraps
from importlib import import_module
from inspect import CO_VARARGS, CO_VARKEYWORDS, iscoroutinefunction, isfunction, unwrap
from os import PathLike
from pathlib import Path, PurePath
from types import BuiltinFunctionType, FunctionType, MappingProxyType, NoneType, UnionType
from typing import Any, Final, ForwardRef, Literal, NamedTuple, TypeVar, Union, cast, get_args, get_origin

from toolcrib.errors._base import asks_for_approval, choice_meant, nearest, suggestion

F = TypeVar("F", bound=Callable[..., Any])

_ROOT: Final = f"{__name__.partition('.')[0]}."
_NOTHING: Mapping[str, str] = MappingProxyType({})
_OWNERS: Final = {
    "Run": "toolcrib.pipeline",
    "Channel": "toolcrib.pipeline",
    "Durability": "toolcrib.pipeline",
    "CallLimits": "toolcrib.pipeline",
    "GuardPolicy": "toolcrib.serving",
    "SandboxLimits": "toolcrib.code",
    "Pipeline": "toolcrib.pipeline",
    "Toolset": "toolcrib.toolsets",
    "ToolOptions": "toolcrib.tools",
    "Session": "toolcrib.rounds",
    "StepKeywords": "toolcrib.rounds",
    "decode_stream": "toolcrib.rounds",
    "Agent": "toolcrib.turns",
    "Toolkit": "toolcrib.code",
}
"""Objects whose options people look for elsewhere, and their places, the likeliest first."""
_FEATURES: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("budget", "budgets", "rate_limit", "rate_limits"), "Run(gates=[Budgets([Limit(calls=10, per='minute')])])"
    ),
    "approvers": "Run(gates=[ApproverRules([...], groups)])",
    "costs": "Run(gates=[Budgets([...], costs=...)])",
    "provenance": "Run(features=[Provenance()])",
    **dict.fromkeys(("callbacks", "record", "recorder", "tracing"), "Run(sinks=[SqliteSink('toolcrib.db')])"),
    "requires_approval": "@tool(requires_approval=True), or toolset.with_approval(names=[...])",
}
"""The use of each feature whose name people try as an option, and which is not one."""
_CALLED: Final = {"ToolOptions": "@tool", "StepKeywords": "Session.run"}
_INNER: Final = {
    **_OWNERS,
    **dict.fromkeys(("HttpOptions", "ServerOptions"), "toolcrib.adapters.mcp_server"),
    "Placement": "toolcrib.adapters.dbos",
}
"""The options, of modules that are imported by then, that have options themselves."""
_APPROVALS: Final = "an approval store, as in SqliteApprovalStore('approvals.db')"
_WANTED: Final[Mapping[str, str]] = {
    "Path": "the path of a file",
    "bool": "True|False",
    "str": "a text",
    "Callable": "a function",
    "Mapping": "values by name, as in {'name': ...}",
    "dict": "values by name, as in {'name': ...}",
    **dict.fromkeys(
        ("Iterable", "Sequence", "Collection", "Set", "tuple", "list", "set", "frozenset"), "a list of them"
    ),
    "datetime": "a datetime, as in datetime.now(UTC)",
    "timedelta": "a timedelta, as in timedelta(hours=1)",
    **dict.fromkeys(
        ("AnswerStore", "ApprovalStore", "ReviewableApprovalStore", "SuspendedCallStore", "WaitableApprovalStore"),
        _APPROVALS,
    ),
    "Budgets": "Budgets([Limit(...)])",
    "Client": "a client, as in Client(url)",
    "Clock": "a clock, as in FakeClock() of toolcrib.testing",
    "CredentialKeys": "CredentialKeys([...])",
    "CredentialStore": "a store, as in SqliteCredentialStore('credentials.db')",
    "Grant": "a grant, as the `standing()` of its store has it",
    "EventLog": "a record, as in SqliteSink('toolcrib.db')",
    "ProgramStore": "a store, as in SqliteProgramStore('programs.db')",
    "Toolkit": "a toolkit, as in Toolkit(tools)",
    "UsageStore": "a store, as in SqliteUsageStore('usage.db')",
    **{
        name: f"{name}(...)"
        for name in (
            "Access",
            "AuthorizationServer",
            "CallLimits",
            "ConsoleOptions",
            "FrontEndLimits",
            "HttpOptions",
            "IdJag",
            "OpenIDLogin",
            "ProgramPolicy",
            "SandboxLimits",
            "ServerOptions",
            "TaskOptions",
        )
    },
}
"""The values of an option in words, `|` between them, by the name of its class; an option of others is not checked."""
_PLAIN: Final = {bool, str, Callable, NoneType}
"""The classes that are checked before the function is called, which does not check them itself."""
_REQUIRED: Final = {*_PLAIN, Path, datetime, timedelta}
"""The classes in whose place None is nothing, where the annotation has no None."""
_CHECKED: Final[Mapping[Any, Any]] = {
    Path: PathLike,
    **dict.fromkeys((Iterable, Sequence, Collection, Set, tuple, list, set, frozenset), Iterable),
}
"""The wider class that an option is checked by, as it takes any object that can be used in the place of its own."""
_FURTHER: Final = {"record": "; a file of its own is sinks=[SqliteSink('calls.db')]"}
"""Another option that is meant by a value of the wrong kind, by the option's name."""
_TEXTS: Final = (str, bytes)
_SECRET: Final = re.compile("credential|header|environment|key|password|secret|token")
"""Options whose values an error does not show."""
_DATA: Final = (*_TEXTS, int, float, Mapping, list, tuple, Set, PurePath, type, FunctionType, BuiltinFunctionType)
"""Values that have the methods of no protocol. Others may have them, whatever their class is."""
_MOST_SHOWN = 4  # options by name, of what was given too many values
_MOST_TAKEN = 100  # kinds of calls of one function that are known to be right
_SEVERAL = re.compile(r"\b(?:Iterable|Sequence|Collection|Set|tuple|list|set|frozenset)\b")
_MOST_STEPS = 3  # from a function to the class that has the option: `run=Run(channel=Channel(errors=...))`


def explain_options(
    words: Mapping[str, str] = _NOTHING, *, missing: str = "", further: str = "", name: str = ""
) -> Callable[[F], F]:
    """Return a decorator by which an unknown option is refused with the one that is meant, or with what has it.

    It is of a class, whose constructor has the options and which it stands above `@dataclass` of, or of a function. A
    type checker knows of none of the words.

    An option that is one of the words of a `Literal`, a text, or true or false is checked, and one that takes several
    values gets a generator, or another iterator, as a tuple: it could be read but once.

    Args:
        words: As for `suggestion`.
        missing: The hint in the error about a class without an argument that it requires.
        further: The hint in the error about values by position that are too many, or that are given by name as well.
        name: The name in errors of a class whose options a function passes on; its own when empty.
    """

    def explain(target: F) -> F:
        function: Any = target.__init__ if isinstance(target, type) else target
        its = _Options(target, function, words, missing, further)
        its.name = name or its.name

        @wraps(function)
        def constructed(*args: Any, **options: Any) -> None:
            if its.takes(args, options):
                function(*args, **options)
                return
            args = its.read(args, options)
            wrong = its.wrong_class(args, options)
            try:
                function(*args, **options)
            except Exception as error:
                if wrong is None or (isinstance(error, TypeError) and _is_own(error)):  # which says more
                    raise
            if wrong is not None:
                raise wrong

        @wraps(function)
        def checked(*args: Any, **options: Any) -> Any:
            if not its.takes(args, options):
                args = its.read(args, options)
                if (wrong := its.wrong_class(args, options)) is not None:
                    raise wrong
            return function(*args, **options)

        @wraps(function)
        async def checked_async(*args: Any, **options: Any) -> Any:
            if not its.takes(args, options):
                args = its.read(args, options)
                if (wrong := its.wrong_class(args, options)) is not None:
                    raise wrong
            return await function(*args, **options)

        if isinstance(target, type):
            setattr(target, "__init__", constructed)  # noqa: B010 -- a type checker keeps the parameters
            return target  # pyright: ignore[reportReturnType] -- it is the class itself
        return checked_async if iscoroutinefunction(function) else checked  # pyright: ignore[reportReturnType] -- it has the same parameters

    return explain


def _is_own(error: BaseException) -> bool:
    """Return whether an error is of a `raise` in this package, which says what is wrong, and not of Python itself."""
    last: Any = error.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    is_raised = last.tb_frame.f_code.co_code[last.tb_lasti] == import_module("dis").opmap["RAISE_VARARGS"]
    return is_raised and last.tb_frame.f_globals.get("__name__", "").startswith(_ROOT)


class _Options:
    """The options of a function, or of the constructor of a class.

    Args:
        target: The function or the class.
        function: The function, or the constructor.
        words: As for `explain_options`, like `missing` and `further`.
    """

    def __init__(self, target: Any, function: Any, words: Mapping[str, str], missing: str, further: str) -> None:
        code, names = function.__code__, function.__code__.co_varnames
        is_class, of_model = isinstance(cast("object", target), type), None
        self.name = target.__name__ if is_class else f"{target.__qualname__.rpartition('<locals>.')[2]}()"
        self._words, self._missing, self._mend = words, missing, f". {further}" if further else ""
        self._first = int(names[:1] == ("self",))  # of a method
        self._positional: tuple[str, ...] = names[: code.co_argcount]
        self._required = names[self._first : code.co_argcount - len(function.__defaults__ or ())]
        self._taken: set[tuple[Any, ...]] = set()  # classes of values, and names, that were found right
        self._most = len(names) if code.co_flags & CO_VARARGS else code.co_argcount
        if code.co_flags & CO_VARKEYWORDS:
            of_model = getattr(target, "__dataclass_fields__", None)  # of pydantic's
        by_name = names[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]
        self._known = frozenset(by_name if of_model is None else of_model)
        self._refuses_itself = bool(code.co_flags & CO_VARKEYWORDS) and of_model is None
        self._annotations: dict[str, Any] = {**(target.__annotations__ if is_class else {}), **function.__annotations__}
        self._kinds = OptionKinds(self._annotations, target.__module__)
        self._methods: Mapping[str, Any] = vars(target) if is_class else _NOTHING
        self._by_name_alone = [name for name in names[code.co_argcount :] if name in self._known and name[0] != "_"]

    def takes(self, args: tuple[Any, ...], options: dict[str, Any]) -> bool:
        """Return whether options are known to be right by their names and classes: such were given before."""
        try:
            return (*map(type, args), *options, *map(type, options.values())) in self._taken
        except TypeError:  # a class whose own class has no hash
            return False

    def read(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...]:
        """Check options, and return the values by position; in the place of an iterator there is a tuple of its values.

        Raises:
            TypeError: There are too many values, one is given twice, is missing or is of another kind, or an option is
                unknown.
            ValueError: An option is not one of its words.
        """
        first = self._first
        if len(args) > self._most:
            raise self._too_many()
        if options and not (options.keys() <= self._known or self._refuses_itself):
            public = {key: self._annotations.get(key) for key in self._known - {"self"} if not key.startswith("_")}
            refuse_unknown_options(self.name, options, public, self._words, self._methods)
        if self._mend and len(args) > first and (option := self._positional[first]) in options:
            raise TypeError(f"{self.name} is given its `{option}` twice, by position and by name{self._mend}")
        if self._missing:
            lacking = [name for name in self._required[max(0, len(args) - first) :] if name not in options]
            if lacking:
                raise TypeError(f"{self.name} needs its `{lacking[0]}`. {self._missing}")
        if not options and len(args) == first:
            return args
        self._kinds.read(self.name, options)
        named = dict(zip(self._positional, args, strict=False))
        self._kinds.read(self.name, named)
        return (*named.values(), *args[len(named) :])

    def wrong_class(self, args: tuple[Any, ...], options: Mapping[str, Any]) -> TypeError | None:
        """Return the error for the first option whose value is of another class than it takes; None for none."""
        by_name = (*zip(self._positional, args, strict=False), *options.items())
        for option, value in by_name:
            wrong = self._kinds.wrong_class(self.name, option, value)
            if wrong is not None:
                return wrong
        if len(self._taken) < _MOST_TAKEN and all(self._kinds.looks_at_classes(*item) for item in by_name):
            with suppress(TypeError):  # as above
                self._taken.add((*map(type, args), *options, *map(type, options.values())))
        return None

    def _too_many(self) -> TypeError:
        positional = self._positional[self._first :]
        placed = f"{', '.join(positional)} by position, and " if positional else ""
        named = ", ".join(f"{option}=..." for option in self._by_name_alone[:_MOST_SHOWN])
        return TypeError(f"{self.name} takes {placed}its options by name: {named}{self._mend}")


class OptionKinds:
    """The kinds of values that options take, by their annotations, each read when its option is given a value first.

    None is taken by each `X | None` unread, so that an option without a value does not load the room of X.

    Args:
        annotations: The annotations by option.
        module: The name of the module that they are written in.
    """

    def __init__(self, annotations: Mapping[str, Any], module: str) -> None:
        self._annotations, self._module = annotations, module
        self._kinds: dict[str, _OptionKind | None] = {}

    def of(self, option: str, value: Any) -> _OptionKind | None:
        """Return the kind of an option that has this value; None where no value is refused or replaced."""
        if option in self._kinds:
            return self._kinds[option]
        annotation = self._annotations.get(option)
        if isinstance(annotation, ForwardRef):  # of a TypedDict
            annotation = annotation.__forward_arg__
        if value is None and isinstance(annotation, str) and annotation.endswith("| None"):
            return None
        kind = _kind_of(annotation, vars(sys.modules[self._module]))
        self._kinds[option] = kind if kind.words or kind.takes_several or kind.classes else None
        return self._kinds[option]

    def looks_at_classes(self, option: str, value: Any) -> bool:
        """Return whether nothing but its class says if an option takes a value, and nothing is put in its place."""
        kind = self.of(option, value)
        return kind is None or not (kind.words or kind.takes_several or kind.has_texts)

    def wrong_class(self, owner: str, option: str, value: Any) -> TypeError | None:
        """Return the error for a value of another class, where `read` leaves it; of its `fn` a decorator says more."""
        kind = self.of(option, value)
        if kind is None or not kind.classes or kind.is_plain or option == "fn":
            return None
        return kind.wrong_class(owner, option, value)

    def read(self, owner: str, options: dict[str, Any]) -> None:
        """Check options, and put a tuple in the place of a generator, or of another iterator.

        Raises:
            TypeError: A value is of another kind, as a text is where true or false is wanted.
            ValueError: An option is not one of its words.
        """
        for option, value in options.items():
            kind = self.of(option, value)
            if kind is not None:
                options[option] = kind.read(owner, option, value)


class _OptionKind(NamedTuple):
    """The values that an option takes.

    Attributes:
        words: The words of its `Literal`; empty where it may be another text, or a list as well.
        is_closed: Whether it takes nothing but these.
        takes_several: Whether it takes several values, as a list.
        classes: The classes of its values, where these are of `_WANTED` alone; empty where there are others.
        refused: The classes that it does not take, though they are of `classes`.
        wanted: The values that it takes, in words.
        is_plain: Whether its classes are of `_PLAIN` alone, which `read` checks.
        has_texts: Whether it takes several texts.
        has_words: Whether some of its several values are texts, so that a text in their place is meant as one of them.
    """

    words: tuple[Any, ...]
    is_closed: bool
    takes_several: bool
    classes: tuple[type, ...] = ()
    refused: tuple[type, ...] = ()
    wanted: str = ""
    is_plain: bool = False
    has_texts: bool = False
    has_words: bool = False

    def wrong_class(self, owner: str, option: str, value: Any) -> TypeError | None:
        """Return the error for a value of another class than the option takes; None for one that it takes."""
        if not isinstance(value, self.classes) or isinstance(value, self.refused):
            is_secret = _SECRET.search(option) is not None
            shown = f"a value of the type {type(value).__name__}" if is_secret else f"{value!r:.80}"
            if isinstance(value, str) and self.has_words and not is_secret:
                meant = choice_meant(value) if bool in self.classes else [value]
                return TypeError(f"{owner}: {option} is {shown}; write {option}={meant!r:.80}")
            wanted = f"{self.wanted}, as in {option}=[...]" if self.refused == _TEXTS else self.wanted
            return TypeError(f"{owner}: {option} is {shown}; give {wanted}{_FURTHER.get(option, '')}")
        other = next((item for item in value or () if not isinstance(item, str)), None) if self.has_texts else None
        if other is None:
            return None
        name = getattr(other, "name", None)
        shown = f"a value of the type {type(other).__name__}" if _SECRET.search(option) else f"{other!r:.80}"
        example = f", as in {option}=[{name!r}]" if isinstance(name, str) else ""
        return TypeError(f"{owner}: {option} has {shown}; give texts{example}")

    def read(self, owner: str, option: str, value: Any) -> Any:
        """Return a value, a generator or another iterator as a tuple; raises as `OptionKinds.read`."""
        if self.is_plain and (wrong := self.wrong_class(owner, option, value)) is not None:
            raise wrong
        if self.words and value not in self.words and (self.is_closed or isinstance(value, str)):
            near = nearest(str(value), map(str, self.words))
            hint = f"did you mean {near[0]!r}? There are" if near else "give one of"
            shown = ", ".join(repr(word) for word in self.words if word is not None)
            raise ValueError(f"{owner}: {option} is {value!r:.80}; {hint} {shown}")
        return tuple(cast("Iterator[Any]", value)) if self.takes_several and isinstance(value, Iterator) else value


def _kind_of(annotation: Any, names: dict[str, Any]) -> _OptionKind:
    """Return the kind of an option by its annotation, with the names of the module that it is written in."""
    if isinstance(annotation, str):
        try:
            annotation = _evaluated(annotation, names)
        except (NameError, TypeError):  # a name for type checkers alone, or for later
            return _OptionKind((), is_closed=False, takes_several=bool(_SEVERAL.search(annotation)))
    members = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    literals = [member for member in members if get_origin(member) is Literal]
    others = [member for member in members if member is not NoneType and member not in literals]
    words = tuple(word for literal in literals for word in get_args(literal))
    if not all(isinstance(member, type) and member not in (str, object) for member in others):
        words = ()
    words += (None,) if words and NoneType in members else ()
    takes_several = any(_SEVERAL.search(str(member)) for member in members)
    kind = _OptionKind(words, is_closed=not others, takes_several=takes_several)
    if literals and others:
        others += [type(word) for literal in literals for word in get_args(literal)]
    return _with_classes(kind, others, is_optional=NoneType in members)


def _evaluated(annotation: str, names: dict[str, Any]) -> Any:
    """Return an annotation; its outer classes alone, where a name within brackets is unknown."""
    try:
        return eval(annotation, names)
    except NameError:
        outer, before = annotation, ""
        while outer != before:
            before, outer = outer, re.sub(r"\[[^\[\]]*\]", "", outer)
        return eval(outer, names)


def _with_classes(kind: _OptionKind, members: list[Any], *, is_optional: bool) -> _OptionKind:
    """Return a kind with the classes of its values, where these are of `_WANTED`."""
    plain = [get_origin(member) or member for member in members]
    is_pair = any(get_origin(member) is tuple and ... not in get_args(member) for member in members)
    if not plain or is_pair or not all(getattr(member, "__name__", "") in _WANTED for member in plain):
        return kind
    several = [member for member in plain if _CHECKED.get(member) is Iterable]
    concrete = [_CHECKED.get(member, member) for member in plain if not getattr(member, "_is_protocol", False)]
    is_protocol = len(concrete) < len(plain)
    data = tuple(cls for cls in _DATA if not any(issubclass(cls, of) or issubclass(of, cls) for of in concrete))
    is_plain = _PLAIN.issuperset(plain) and not {bool, str}.isdisjoint(plain)
    in_lists = [get_args(member)[:1] for member in members if (get_origin(member) or member) in several]
    *words, last = dict.fromkeys(word for member in plain for word in _WANTED[member.__name__].split("|"))
    takes_none = is_optional or not (is_plain or _REQUIRED.issuperset(plain))  # None is nothing in a list's place
    return kind._replace(
        classes=(*((object,) if is_protocol else concrete), *((NoneType,) if takes_none else ())),
        refused=data if is_protocol else _TEXTS if several and str not in plain else (),
        wanted=f"{', '.join(words)} or {last}" if words else last,
        is_plain=is_plain,
        has_texts=plain == several and all(get_args(member)[:1] == (str,) for member in members),
        has_words=any(args in ((), (str,)) or get_origin(args[0]) is Literal for args in in_lists),
    )


def refuse_unknown_options(
    who: str,
    given: Iterable[str],
    known: Collection[str],
    words: Mapping[str, str],
    methods: Mapping[str, Any] = _NOTHING,
) -> None:
    """Check that every keyword is an option; one that is not would have no effect.

    Args:
        who: The owner of the options, as `a session`.
        given: The keywords.
        known: The names of the options; a mapping has their annotations, by which an option of an option is found.
        words: As for `suggestion`.
        methods: The methods of the object that is made, by name, and its other attributes: one of them may have the
            option.

    Raises:
        TypeError: One is not an option.
    """
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        words = {**_FEATURES, **words}
        is_near = unknown in words or asks_for_approval(unknown) or nearest(unknown, known, cutoff=0.8)
        there = "" if is_near else _of_method(who, unknown, methods) or _elsewhere(unknown, known)
        raise TypeError(f"{who} has no option `{unknown}`{there or f'. {suggestion(unknown, known, words)}'}")


def _of_method(owner: str, option: str, methods: Mapping[str, Any]) -> str:
    """Return the rest of a sentence, which says what public method of an object has an option; empty for none."""
    for name, method in methods.items():
        code: Any = getattr(unwrap(method), "__code__", None) if isfunction(method) and name[0] != "_" else None
        if code is not None and option in code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]:
            return f". Here it is {owner.lower()}.{name}(..., {option}=...)."
    return ""


def _elsewhere(option: str, known: Collection[str]) -> str:
    """Return the rest of a sentence, which says what has an option; empty where nothing that is looked in has it."""
    annotations = cast("Mapping[str, Any]", known) if isinstance(known, Mapping) else dict[str, Any]()
    if found := _written(option, annotations, _MOST_STEPS):
        return f": it is one of {found[0]}. Write {found[1]}."
    owners = [_CALLED.get(name, name) for name in _OWNERS if option in _options_of(name)]
    return f": it is one of {' and of '.join(owners[:3])}." if owners else ""


def _written(option: str, annotations: Mapping[str, Any], steps: int) -> tuple[str, str] | None:
    """Return the class that has an option and is that of another option, and how both are written; None for none."""
    inner = [
        (name, owner, _options_of(owner))
        for name, annotation in annotations.items()
        for owner in re.findall(r"\w+", str(annotation))
        if owner in _INNER and owner[0].isupper()
    ]
    for name, owner, options in inner:
        if option in options:
            return owner, f"{name}={owner}({option}=...)"
    for name, owner, options in inner:
        if steps > 1 and (found := _written(option, options, steps - 1)):
            return found[0], f"{name}={owner}({found[1]})"
    return None


def _options_of(name: str) -> dict[str, Any]:
    """Return the annotations of the options of a class or a function, by name."""
    target: Any = getattr(import_module(_INNER[name]), name)
    function: Any = getattr(target, "__init__", None) if isinstance(target, type) else target
    code: Any = getattr(unwrap(function), "__code__", None)
    if code is None:  # of a TypedDict
        return dict(target.__annotations__)
    names = code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]
    return {key: function.__annotations__.get(key) for key in names if key != "self"}
