"""Flows of programs: what may come into each argument, as the text says."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from toolcrib.code._flows import flows_of
from toolcrib.code._program_tools import ProgramTool
from toolcrib.tools import ez_tool


def tools() -> dict[str, ProgramTool]:
    @ez_tool
    def mail(folder: str = "") -> Any:
        """Read."""

    @ez_tool
    def people() -> Any:
        """List."""

    @ez_tool
    def send(to: str, text: str = "") -> None:
        """Send."""

    return {tool.name: ProgramTool(tool.name, tool, tool.name) for tool in (mail, people, send)}


TOOLS = tools()


def flow(code: str, argument: str = "to", line: int = 0) -> str:
    """Return what may come into an argument of `send`: results, then literals; `?` where that is not known."""
    found = flows_of(code, TOOLS, is_early=True).at("send", line).get(argument)
    if found is None:
        return "?"
    results = sorted(".".join(filter(None, each)) for each in found.results)
    return " ".join([*results, *sorted(map(repr, found.literals))])


@pytest.mark.parametrize(
    ("code", "came"),
    [
        ("send('ann')", "'ann'"),
        ("send(to='Ann')", "'ann'"),
        ("send(people()[3]['mail'])", "people.mail"),
        ("send(mail()['items'][0]['from'].strip().lower())", "mail.items.from"),
        ("send(mail().get('to', 'ann'))", "mail.to 'ann'"),
        ("r = people()\nt = r[0]\nsend(t['mail'])", "people.mail"),
        ("for each in people():\n    if each['name'] == mail():\n        send(each['mail'])", "people.mail"),
        ("send(f'{mail()}@x.com')", "mail '@x.com'"),
        ("send(people()[int(mail()['n'])]['mail'])", "mail.n people"),
        ("found = [each['mail'] for each in people() if each]\nsend(found[0])", "people.mail"),
        ("xs = sorted(people(), key=lambda each: each['name'])\nsend(xs[0]['mail'])", "people.mail people.name.mail"),
        ("a, b = mail(), people()\nsend(b['x'])", "mail.x people.x"),
        ("import asyncio\na = (await asyncio.gather(people()))[0]\nsend(a['x'])", "people.x"),
        ("def f(x, y='d'):\n    return x + y\nsend(f(people()))", "people 'd'"),
        ("f = lambda x: x['k']\nsend(f(people()))", "people.k"),
        ("def f(x):\n    yield x\nsend(list(f(mail()))[0])", "mail"),
        ("xs = []\nys = xs\nys.append(mail())\nsend(xs[0])", "mail"),
        ("xs = []\nouter = {'k': xs}\nouter['k'].append(mail())\nsend(xs[0])", "mail"),
        ("rows = []\nxs = []\nrows.append(xs)\nrows[0].append(mail())\nsend(xs[0])", "mail"),
        ("x = {}\nd = {}\nd['q'] = x\ny = d['q']\ny['z'] = mail()\nsend(x['z'])", "mail 'z'"),
        ("out = []\na = people()[0]['mail']\nout.append(a)\nout.append(mail())\nsend(a, str(out))", "people.mail"),
        ("import heapq\nh = []\nheapq.heappush(h, mail())\nsend(h[0])", "mail"),
        ("t = ''\nfor each in people():\n    t += each['mail']\nsend(t)", "people.mail ''"),
        ("with mail() as m:\n    send(m)", "mail"),
        ("match mail():\n    case {'to': to}:\n        send(to)", "mail"),
        ("if m := mail():\n    send(m)", "mail"),
        ("try:\n    mail()\nexcept Exception as error:\n    send(str(error))", "mail.error"),
        ("try:\n    r = mail()\nexcept Exception as error:\n    r = str(error)\nsend(r['id'])", "mail.error mail.id"),
        (
            "try:\n    r = mail()\nexcept Exception as e:\n    r = str(e)\n"
            "try:\n    send(r['id'])\nexcept Exception as e:\n    x = e",
            "mail.error mail.id",
        ),
        ("x = mail()\ntry:\n    people(x)\nexcept Exception as error:\n    send(str(error))", "mail people.error"),
        ("list(map(send, [each['mail'] for each in people()]))", "people.mail"),
        ("parallel((send, people()), (send, 'ann'))", "people 'ann'"),
        ("send(*[mail()])", "mail"),
        ("d = {'id': mail()}\nsend(d['id']['to'])", "mail 'id'"),
        ("send(1.0 + 2)", "1.0 2.0"),
        ("send(max(people(), default=3)['age'])", "people.age 3.0"),
    ],
)
def test_what_may_come_into_an_argument_is_found(code: str, came: str) -> None:
    assert flow(code) == came


@pytest.mark.parametrize(
    "code",
    [
        "exec('x = 1')\nsend('ann')",
        "class A:\n    pass\nsend('ann')",
        "x = open('f').read()\nsend(x)",
        "import os\nsend(os.environ['X'])",
        "import pathlib\nsend(pathlib.Path('f').read_text())",
        "send(left_by_an_earlier_program)",
        "send(search_tools('mail'))",
        "f = send\nf(mail())\nsend('ann')",
        "from functools import partial\np = partial(send, 'ann')\np()",
        "def f(x):\n    send(x)\ntable = {'k': f}\ntable['k'](mail())",
        "send('ann'",
        f"send({'+'.join(['mail()'] * 5_000)})",
        f"x = mail()\n{'x = [x, x]' * 1}\n"
        + "\n".join(f"x{n} = [x{n - 1 if n else ''}, mail()]" for n in range(5_000)),
        "import json\njson.x = mail()\nsend(json.x)",
        "@print\ndef f(x):\n    return x\nsend(f('ann'))",
    ],
)
def test_nothing_is_known_of_what_cannot_be_followed(code: str) -> None:
    assert flow(code) == "?"


def test_the_names_of_a_function_and_of_a_comprehension_are_its_own() -> None:
    code = "for m in mail():\n    pass\nsend([m['mail'] for m in people()][0], (lambda m: m)('x'))"
    assert flow(code) == "people.mail"


def test_the_line_says_which_call_it_is() -> None:
    code = "send(\n  mail())\nsend('ann'); send(people())\nx = [(send, 'bob')]\nparallel(*x)"
    assert [flow(code, line=line) for line in range(1, 5)] == [
        "mail 'bob'",
        "mail 'bob'",
        "people 'ann' 'bob'",
        "mail people 'ann' 'bob'",
    ]


_VALUES = st.sampled_from(["mail()", "people()", "'ann'", "a", "b", "c", "[a, b]", "{'k': c}", "a + b", "f(c)", "g(a)"])
_LINES = st.one_of(
    st.builds(lambda name, value: f"{name} = {value}", st.sampled_from("abc"), _VALUES),
    st.builds(lambda name, value: f"{name}.append({value})", st.sampled_from("abc"), _VALUES),
    st.builds(lambda name, value: f"{name} += [{value}]", st.sampled_from("abc"), _VALUES),
    st.builds(lambda name, value: f"for {name} in [{value}]:\n    b = {name}", st.sampled_from("abc"), _VALUES),
    st.builds(lambda name: f"send({name})", st.sampled_from("abc")),
)
_START = "def f(x):\n    return [x]\ndef g(x):\n    x.append(c)\n    return x\na, b, c = [], [], []\n"


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(_LINES, max_size=12))
def test_what_comes_when_a_program_runs_was_found_before(lines: list[str]) -> None:
    code = _START + "\n".join(lines)
    came: set[str] = set()

    def take(value: Any, seen: frozenset[int] = frozenset()) -> None:
        if isinstance(value, str):
            came.add(value)
        elif id(value) not in seen:
            for part in value.values() if isinstance(value, dict) else value:
                take(part, seen | {id(value)})

    names = {"mail": lambda: ["from mail"], "people": lambda: ["from people"], "send": take}
    with suppress(AttributeError, TypeError):  # it may come to its end at a line that cannot work
        exec(compile(code, "program", "exec"), names)
    found = flow(code).split()
    assert {"from mail": "mail", "from people": "people", "ann": "'ann'"}.keys() >= came
    assert all({"from mail": "mail", "from people": "people", "ann": "'ann'"}[each] in found for each in came)
