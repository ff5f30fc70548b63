"""Plain English of the source: the words that no docstring begins with, and the names that nothing has."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import toolcrib

SOURCE = Path(toolcrib.__file__).parent
FILES = [*sorted(SOURCE.rglob("*.py")), SOURCE.parent / "toolcrib_pytest.py"]

FIRST_WORDS = frozenset(
    {
        *("Be", "Bring", "Come", "Do", "Get", "Give", "Go", "Have", "Let"),
        *("Look", "Mend", "Note", "Revive", "Say", "Take", "Tell"),
    }
)
"""Verbs that a reference manual does not begin with: say Return, Record, Report, Replace, Run, Pass, Repair."""
VAGUE = re.compile(r"(?:Return|Yield|Record|Read|Write|Keep|Add|Remove) (?:what|whatever|whoever|how it)\b")
"""First words that name no thing: say which value is returned, "Return the page of a turn"."""
NAMES = frozenset({"made", "pass_again", "remember", "take_back", "taken_up", "use_once", "weigh"})
"""Names that say nothing of what is named: a name is a noun of the field, or a verb with its object."""
PHRASES = re.compile(
    r"(?<!there )(?<!There )\b(?:is|are|was|were) (?:none\b|no (?!good|less|longer|more|such|time)\w+)"
    r"|\b[Tt]here (?:is|are) none;"
)
"""Phrases that no text has: say "is not a path", "no key is configured"."""
UNNAMED = re.compile(r"\b[Ww]hat (?:came|comes|became) of\b|\bas (?:it|they) came\b|\bcan be had\b")
"""Phrases that do not name their thing: say "True if the call has ended", "the outcome", "as received", "available"."""
SHOWN = re.compile(
    r"\b(?:is|are|was|were) of (?!course|the same|no use)|\bdo(?:es)? not count\b|\b(?:is|are) said\b"
    r"|\banew\b|\bany more\b|\b[Mm]end (?:its|the|it)\b"
    r"|\b(?:with|has|sent|asks|takes|read|to) what (?:is|are|cannot)\b"
)
"""Phrases that errors, commands and logs do not have: say "belongs to", "is declared", "again", "correct"."""
RULES = re.compile(
    r"^(?!.*\bmust\b).*\b(?:(?:is|are|has|have) (?!not)[^.;]*, and (?:is|are|has|have) value"
    r"|(?:is|are) (?:an?|the|one of) [^.;]*, and not value)"
)
"""Errors that state a rule as a fact and deny it: say that a value "must be" what it is not."""
QUESTIONS = re.compile(r"\A\s*(?:What|Which|Who|Whom|Whose|Where|When|Why|How)\b|^ +\w+: What\b", re.MULTILINE)
"""First words of no text about a thing: say "The tools in force" of it, and not "What tools are in force"."""
VARIABLES = frozenset(
    {
        *("came", "each", "given", "gone", "heard", "held", "kept", "left", "one"),
        *("own", "said", "seen", "settled", "taken", "told", "what", "whole"),
    }
)
"""Variables that do not say what they hold: a variable has the noun of its value."""
PARAMETERS = VARIABLES - {"given", "seen", "taken", "what"}
"""Parameters of functions that a module keeps to itself, which do not say what they are."""
FUNCTIONS = VARIABLES | {"asked", "made"}
"""Functions and classes that do not say what they do or are: such a name is a verb with its object, or a noun."""
EVENTS = frozenset({("toolcrib/record/_call_trace.py", "asked")})
"""Methods of a trace that have the name of the event that they record."""
PUBLIC_NAMES = frozenset(
    {
        *(("toolcrib/calls/_outcome.py", "kept"), ("toolcrib/errors/_turns.py", "what")),
        *(("toolcrib/results/_read.py", "whole"), ("toolcrib/record/_word_index.py", "whole")),
        *(("toolcrib/rounds/_round.py", "settled"), ("toolcrib/adapters/dbos/_program.py", "settled")),
        ("toolcrib/schema/_stub_types.py", "left"),  # beside `right`
    }
)
"""Names of public classes that users write: `Completed.kept`, which records hold, too, `NoResult.what`, `settled`."""
ATTRIBUTES = re.compile(r"^Attributes:\n((?:\n|    .*\n?)+)", re.MULTILINE)
"""The attributes that the docstring of a class names, up to the next section."""


def short(path: Path) -> str:
    """Return the path of a file of the package, for the name of a test."""
    return path.relative_to(SOURCE.parent).as_posix()


def documented(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield each docstring of a module with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, text


def names_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield each name that a module gives, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def private_parameters(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield each parameter of a lambda, or of a function that a module keeps to itself, with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.Lambda(args=arguments):
                pass
            case ast.FunctionDef(name=name, args=arguments) | ast.AsyncFunctionDef(name=name, args=arguments) if (
                name.startswith("_") and not name.startswith("__")
            ):
                pass
            case _:
                continue
        for part in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            yield part.lineno, part.arg


def named_attributes(cls: ast.ClassDef) -> set[str]:
    """Return the attributes that the docstring of a class names."""
    section = ATTRIBUTES.search(ast.get_docstring(cls) or "")
    lines = [] if section is None else re.findall(r"^    (\w[\w, ]*):", section[1], re.MULTILINE)
    return {name.strip() for line in lines for name in line.split(",")}


def attributes_in(cls: ast.ClassDef) -> set[str]:
    """Return whatever may be an attribute of a class: what its body assigns, defines, or lists as a slot."""
    found: set[str] = set()
    for node in ast.walk(cls):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) | ast.FunctionDef(name=name):
                found.add(name)
            case ast.Constant(value=str() as name):
                found.add(name)
            case _:
                pass
    return found


def sentences(tree: ast.Module, *, but: frozenset[int] = frozenset()) -> Iterator[tuple[int, str]]:
    """Yield each text of a module with its line, but for those that begin in some lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.lineno in but:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, " ".join(node.value.split())
        elif isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "value" for part in node.values)
            yield node.lineno, " ".join("".join(map(str, parts)).split())


@pytest.mark.parametrize("path", FILES, ids=short)
def test_texts_and_names_are_those_of_a_reference_manual(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))

    openers = [
        (line, text)
        for line, text in documented(tree)
        if text.split()[0].rstrip(",") in FIRST_WORDS or text.startswith("Whether ") or VAGUE.match(text)
    ]
    names = [(line, name) for line, name in names_in(tree) if name in NAMES or name[1:] in NAMES - {"made"}]
    phrases = [(line, text) for line, text in sentences(tree) if PHRASES.search(text) or UNNAMED.search(text)]
    docs = frozenset(
        node.lineno for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )
    phrases += [(line, text) for line, text in sentences(tree, but=docs) if SHOWN.search(text) or RULES.search(text)]

    assert (openers, names, phrases) == ([], [], [])


@pytest.mark.parametrize("path", FILES, ids=short)
def test_things_and_variables_are_described_by_nouns(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))

    questions, variables = list[tuple[int, str]](), list[tuple[int, str]]()
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str() as text), lineno=line) if QUESTIONS.search(text):
                questions.append((line, text))
            case ast.Name(id=name, ctx=ast.Store(), lineno=line) if (
                name.strip("_") in VARIABLES and (short(path), name) not in PUBLIC_NAMES
            ):
                variables.append((line, name))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name) if (
                name.strip("_").lower() in FUNCTIONS and (short(path), name) not in EVENTS | PUBLIC_NAMES
            ):
                variables.append((node.lineno, name))
            case _:
                pass
    variables += [(line, name) for line, name in private_parameters(tree) if name.strip("_") in PARAMETERS]

    assert (questions, variables) == ([], [])


def test_docstrings_of_classes_name_attributes_that_there_are() -> None:
    trees = [(path, ast.parse(path.read_text("utf-8"))) for path in FILES]
    classes = [(path, node) for path, tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    own: dict[str, set[str]] = {}
    for _, cls in classes:
        own.setdefault(cls.name, set()).update(attributes_in(cls))

    above = {
        cls.name: [ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in cls.bases] for _, cls in classes
    }

    def inherited(name: str) -> set[str]:
        return own.get(name, set()).union(*(inherited(base) for base in above.get(name, ()) if base != name))

    def attributes_of(cls: ast.ClassDef) -> set[str]:
        return attributes_in(cls).union(*map(inherited, above[cls.name]))

    named = [(short(path), cls, named_attributes(cls)) for path, cls in classes]
    assert sum(len(names) for _, _, names in named) > 500  # the section is found

    assert [
        (path, cls.name, names - attributes_of(cls)) for path, cls, names in named if names - attributes_of(cls)
    ] == []


_COUNTED = re.compile(r"count_text\([^\n]*['\"](?:more |other |wrong )?(\w+)['\"]\)")
_NOT_HELD = frozenset({"byte", "character", "token", "answer", "wait"})
"""Measures, of which a text says how many may be at most, and nouns whose plural is a verb, too."""
_OWN_PROCESS = "toolcrib/sandbox/_worker/"  # which has nothing else of the package


@functools.cache
def nouns() -> frozenset[str]:
    """Return the nouns that are counted somewhere in the source."""
    return frozenset(noun for path in FILES for noun in _COUNTED.findall(path.read_text("utf-8"))) - _NOT_HELD


def plurals_after_numbers(tree: ast.Module, nouns: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Yield each noun in the plural that stands in a text behind a value that may be 1, with its line."""
    for node in ast.walk(tree):
        parts = node.values if isinstance(node, ast.JoinedStr) else []
        for value, text in pairwise(parts):
            if not isinstance(value, ast.FormattedValue) or not isinstance(text, ast.Constant):
                continue
            if isinstance(value.value, ast.IfExp) or ast.unparse(value.value).isupper():  # words, or a constant
                continue
            found = re.match(r" (?:more |other |wrong )?(\w+)s\b", str(text.value))
            if found and found[1] in nouns:
                yield node.lineno, found[0]


@pytest.mark.parametrize("path", [path for path in FILES if _OWN_PROCESS not in path.as_posix()], ids=short)
def test_one_call_is_not_called_1_calls(path: Path) -> None:
    assert [*plurals_after_numbers(ast.parse(path.read_text("utf-8")), nouns())] == []
