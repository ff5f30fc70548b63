"""The base class of all errors, and the sentence that helps with a misspelt name."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib import import_module
from inspect import Parameter, Signature
from typing import Any, ClassVar, Final, cast, dataclass_transform
from unicodedata import category, normalize

_WORD_STARTS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\W_]+")
_ALONE: Final = frozenset(  # words that ask for approval without another
    {"approval", "approve", "approved", "approves", "confirm", "confirmation", "confirmations", "confirmed"}
    | {"confirms", "consent", "foureyes", "hitl", "signoff"}
)
_HEADS: Final = _ALONE.union(
    ("ask", "asks", "authorization", "human", "interrupt", "ok", "oversight", "permission", "review")
)
_DEMANDS: Final = frozenset(  # words that make any of the heads a demand for approval
    {"after", "always", "ask", "asks", "before", "each", "enabled", "every", "explicit", "feedback", "first", "from"}
    | {"input", "interrupt", "loop", "manual", "must", "need", "needed", "needs", "pause", "require", "required"}
    | {"requires", "should", "until", "wait"}
)
_APPROVAL_WORDS: Final = (
    _HEADS
    | _DEMANDS
    | {"a", "be", "by", "call", "calls", "execution", "for", "func", "handler", "in", "is", "mode", "of", "off", "on"}
    | {"only", "person", "policy", "prompt", "request", "run", "stop", "the", "time", "to", "tool", "use", "user"}
    | {"with"}
)

_ALL_OR_NONE: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("all", "always", "any", "every", "on", "required", "true", "yes"), True),
    **dict.fromkeys(("false", "never", "no", "none", "off"), False),
}
_OF_WRITES: Final = frozenset({"unless_read_only", "writes"})
_OF_OTHERS: Final = {  # words of other products, for the words that an option takes
    **dict.fromkeys(("account", "caller", "client", "user"), "principal"),
    **dict.fromkeys(("role", "team"), "group"),
    **dict.fromkeys(("chat", "session", "thread"), "conversation"),
}


def nearest(name: str, names: Iterable[str], most: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return at most so many of `names` that are near to a misspelt `name`, the nearest first.

    Args:
        name: The misspelt name.
        names: The names that there are.
        most: How many to return.
        cutoff: How near they are at least: 1.0 is the same name.
    """
    difflib: Any = import_module("difflib")  # which only a mistake needs
    return difflib.get_close_matches(name, [*names], n=most, cutoff=cutoff)


def closest(name: object, names: Iterable[str]) -> str:
    """Return a sentence that helps with a misspelt `name`: the nearest of `names`, or all of them when they are few.

    The nearest is one that `name` ends with, as `functions.get_weather` does, or those that end with `name`. A tool or
    another object in the place of a name counts by the name that it has.
    """
    name = name if isinstance(name, str) else str(getattr(name, "name", name))
    known = sorted(names)
    ends = [other for other in known if other and name.endswith(other) and not name[: -len(other)][-1:].isalnum()]
    longer = [other for other in known if name and other.endswith(name) and not other[: -len(name)][-1:].isalnum()]
    near = [max(ends, key=len)] if ends else longer[:3] or nearest(name, known, most=3)
    if near:
        return "Did you mean " + " or ".join(f"`{n}`" for n in near) + "?"
    if not known:
        return "There are none."
    if len(known) <= 12:
        return "There are: " + ", ".join(f"`{n}`" for n in known) + "."
    return f"There are {len(known)}, among them " + ", ".join(f"`{n}`" for n in known[:6]) + "."


def asks_for_approval(name: str) -> bool:
    """Return whether an option's name says that a person has to approve, as `needsApproval` or `human_in_the_loop`.

    All of its words are of approval, and one of them, or two together, say so: `get_consent`, `confirmation_code`,
    `approved_by` and `is_human` are other things.
    """
    plain = "".join(char for char in normalize("NFKC", name) if category(char) != "Cf")
    spelt = _WORD_STARTS.sub("_", plain).casefold().replace("sign_off", "signoff").replace("four_eyes", "foureyes")
    words = [word for word in spelt.split("_") if word]
    heads = _HEADS.intersection(words)
    if not heads or not _APPROVAL_WORDS.issuperset(words):
        return False
    if len(words) == 1:
        return words[0] in _ALONE | {"human", "interrupt", "permission"}
    if len(heads) > 1 or not _DEMANDS.isdisjoint(words):
        return True
    return not _ALONE.isdisjoint(words) and words[-1] not in ("by", "of")


def suggestion(name: str, known: Iterable[str], words: Mapping[str, str]) -> str:
    """Return a sentence that helps with a name that is not known here.

    Args:
        name: The name.
        known: The names that there are.
        words: The word to use here, by the words of other frameworks: a known name, or the way it is written.
            `requires_approval` stands for every name that `asks_for_approval`.
    """
    known = [*known]
    here = words.get(name)
    if here is None and asks_for_approval(name):
        here = words.get("requires_approval", "requires_approval" if "requires_approval" in known else None)
    if here is None:
        return closest(name, known)
    return f"Did you mean `{here}`?" if here in known else f"Here it is {here}."


def choice_meant(given: str, words: Collection[str] = ()) -> Any:
    """Return the value that is meant by a text, of an option that takes a bool, some words or a list of names.

    Args:
        given: The text: `always` and the like are a bool, and a typing error is one of the words.
        words: The words that the option takes; `writes` and `unless_read_only` stand for each other.

    Returns:
        A bool, one of the words, or a list of the text, as the name of one thing.
    """
    if (word := given.lower()) in _ALL_OR_NONE:
        return _ALL_OR_NONE[word]
    near = nearest(word, {*words, *_OF_WRITES} if words else (), cutoff=0.8)
    return next((known for known in words if near and (known in near or {known, *near} <= _OF_WRITES)), [given])


def require_choice(who: str, name: str, given: object, words: Collection[str] | None = None) -> None:
    """Check that an option which chooses tools is a list of names or a function, and where it has words, one or a bool.

    Args:
        who: The function that has the option.
        name: The option.
        given: Its value.
        words: The words that it takes beside a bool, the default first; None for an option that takes neither.

    Raises:
        TypeError: It is something else: a text, None, or a list with other things than names in it.
    """
    if callable(given) or (words is not None and (isinstance(given, bool) or given in words)):
        return
    if isinstance(given, str):
        meant = [given] if words is None else choice_meant(given, words)
        raise TypeError(f"{who}: {name} is a list of names or a function; write {name}={meant!r}")
    if given is None and words is not None:
        default = "".join(f", or leave it out for {word!r}" for word in [*words][:1])
        raise TypeError(f"{who}: {name} is None; write {name}=False where nothing needs it{default}")
    is_list = isinstance(given, Collection) and not isinstance(given, Mapping | bytes)
    if not is_list or not all(isinstance(word, str) for word in cast("Collection[object]", given)):
        others = "" if words is None else "".join(f", {other!r}" for other in (True, False, *words))
        raise TypeError(f"{who}: {name} is {given!r:.80}; give a list of names, a function{others}")


def word_in_list(option: str, word: str, words: Collection[str] = ()) -> str:
    """Return the remedy for a word of an option, as `always`, in its list of names; empty for a name."""
    meant = choice_meant(word, words)
    return "" if option != "approval" or meant == [word] else f"; {meant!r} is not a name: write it without the list"


def value_problem(details: Sequence[Mapping[str, Any]]) -> str:
    """Return the problem of a value in a file: what it should be, what it is, and the list that is meant by a text.

    Args:
        details: The details of a `ValidationError` about the value, one for each type that it may have.
    """
    texts = [f"{detail['msg'][:1].lower()}{detail['msg'][1:]}" for detail in details]
    problem = " or ".join([texts[0], *(text.removeprefix("input should be ") for text in texts[1:])])
    if details[0]["type"] == "missing":
        return problem
    value, is_list = details[0]["input"], any(detail["type"] in ("list_type", "tuple_type") for detail in details)
    meant: Any = None
    if isinstance(value, str):
        expected = [str(detail.get("ctx", {}).get("expected", "")) for detail in details]
        is_bool = any(detail["type"] == "bool_type" for detail in details)
        words = re.findall("'([^']*)'", " ".join(expected))
        if is_bool:
            meant = choice_meant(value, words)
        elif words:  # a list has these words, too
            near = [_OF_OTHERS.get(value.lower(), ""), *nearest(value, words)]
            meant = next((word for word in near if word in words), None)
        else:
            meant = [value]
        meant = None if meant == [value] and not is_list else meant
    elif is_list and isinstance(value, dict) and all(flag is True for flag in cast("Any", value).values()):
        meant = [*cast("Any", value)]
    mend = "" if meant is None else f"; write {json.dumps(meant, ensure_ascii=False)}"
    return f"{problem}; got {value!r:.60}{mend}"


class ToolcribError(Exception):
    """Root of the tree. Subclasses pass every constructor argument on, so that they pickle."""

    code: ClassVar[str] = "toolcrib_error"


@dataclass_transform(eq_default=False)
class MessageError(ToolcribError):
    """An error whose fields, the annotated attributes of its class, are what it is made of and what its message says.

    A field with a value in the class may be left out.
    """

    _template: ClassVar[str] = ""  # of the message, by the names of the fields; a class may have a `__str__` instead
    _signature: ClassVar[Signature] = Signature()

    def __init_subclass__(cls) -> None:
        fields = dict(cls._signature.parameters)
        for name, kind in cls.__annotations__.items():
            if not kind.startswith("ClassVar"):
                default: Any = getattr(cls, name, Parameter.empty)
                fields[name] = Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind)
        cls._signature = Signature([*fields.values()])
        cls.__signature__ = None if "__init__" in vars(cls) else cls._signature

    def __init__(self, *args: Any, **named: Any) -> None:
        fields = self._signature.bind(*args, **named)
        fields.apply_defaults()
        super().__init__(*fields.arguments.values())
        vars(self).update(fields.arguments)

    def __str__(self) -> str:
        return self._template.format_map(vars(self))
