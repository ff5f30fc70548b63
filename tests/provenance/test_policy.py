"""Policies: rules as Python and as a TOML file."""

import json
from pathlib import Path

import pytest

from toolcrib.errors import PolicyError
from toolcrib.provenance import Origin, Provenance, Question, Rule, ToolLabels

DECLARED = ToolLabels("write", "untrusted", frozenset({"body"}))


def loaded(folder: Path, text: str) -> Provenance:
    path = folder / "policy.toml"
    path.write_text(text)
    return Provenance.load(path)


def test_a_file_says_what_python_says(tmp_path: Path) -> None:
    text = """
        dry_run = true

        [[rules]]
        tool = "send_*"
        toolset = "mail"
        effect = "send"
        content = ["note"]
        readers = []

        [[rules]]
        principal = "intern-*"
        source = { subject = "untrusted", "*" = "trusted" }
        untrusted = "deny"
    """
    assert loaded(tmp_path, text) == Provenance(
        dry_run=True,
        rules=(
            Rule(tool="send_*", toolset="mail", effect="send", content=("note",), readers=()),
            Rule(principal="intern-*", source={"subject": "untrusted", "*": "trusted"}, untrusted="deny"),
        ),
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[[rules]]\ntool = "pay"\neffekt = "send"', "rule 1: `effekt` is unknown. Did you mean `effect`?"),
        ("dryrun = true", "`dryrun` is unknown. Did you mean `dry_run`?"),
        ('[[rule]]\ntool = "pay"', "`rule` is unknown. Did you mean `rules`?"),
        (
            '[[rules]]\ntool = "pay"',
            "rule 1: it says nothing of the calls that it is for; give it one of effect, source",
        ),
        ('[[rules]]\neffect = "sent"', "rule 1: `effect` is one of 'none', 'fetch', 'write', "),
        (
            '[[rules]]\nunknown = "deny"\n[[rules]]\nprivate = "no"',
            "rule 2: `private` is one of 'allow', 'ask' or 'deny'",
        ),
        ('[[rules]]\ncontent = "body"', "rule 1: `content` is a list of texts, as in [\"body\"], and not 'body'"),
        (
            '[[rules]]\nsource = "trusty"',
            "rule 1: source is 'trusted', 'name', 'untrusted', or these by field name",
        ),
        ("[[rules]]\nreaders = [3]", 'rule 1: `readers.0` is a text, as in "ann", and not 3'),
        ("rules = [3]", "rule 1: rules must be tables, written [[rules]], and not 3"),
        ("dry_run = 7", "`dry_run` is true or false, and not 7"),
        ("dry_run =", "it is not TOML: "),
    ],
)
def test_what_is_wrong_with_a_file_is_named(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(PolicyError) as raised:
        loaded(tmp_path, text)
    assert str(raised.value).startswith(f"the policy {tmp_path / 'policy.toml'} cannot be used: {problem}")


def test_a_rule_in_python_is_checked_as_well() -> None:
    with pytest.raises(ValueError, match="effect"):
        Rule(tool="pay", effect="sent")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="it says nothing"):
        Rule(tool="pay")


@pytest.mark.parametrize(
    ("rule", "tool", "toolsets", "principal", "fits"),
    [
        (Rule(tool="send_*", effect="send"), "send_mail", (), None, True),
        (Rule(tool="send_*", effect="send"), "resend_mail", (), None, False),
        (Rule(toolset="mail", effect="send"), "x", ("mail", "all"), None, True),
        (Rule(toolset="mail", effect="send"), "x", (), None, False),
        (Rule(principal="ann", effect="send"), "x", (), "ann", True),
        (Rule(principal="ann", effect="send"), "x", (), "anna", False),
        (Rule(principal="a*", effect="send"), "x", (), None, False),
        (Rule(effect="send"), "x", (), None, True),
    ],
)
def test_a_rule_is_for_some_calls(
    rule: Rule, tool: str, toolsets: tuple[str, ...], principal: str | None, fits: bool
) -> None:
    found = Provenance(rules=(rule,)).labels(DECLARED, tool, toolsets, principal)
    assert found.effect == ("send" if fits else "write")


def test_what_a_rule_says_takes_the_place_of_what_the_tool_declares() -> None:
    rule = Rule(source="trusted", content=("note",), deciding=("body",), readers=("ann@corp.com",), unknown="allow")
    found = Provenance(rules=(rule,)).labels(DECLARED, "pay", (), None)
    assert found == ToolLabels(
        "write", "trusted", frozenset({"note"}), ("ann@corp.com",), unknown="allow", deciding=frozenset({"body"})
    )


def test_the_last_rule_counts_for_what_it_says() -> None:
    rules = (Rule(untrusted="deny", effect="send", readers=()), Rule(untrusted="allow", readers=("*",)))
    found = Provenance(rules=rules).labels(DECLARED, "pay", (), None)
    assert (found.untrusted, found.effect, found.readers) == ("allow", "send", None)


def test_no_rule_has_results_that_were_read_before_read_again() -> None:
    declared = ToolLabels("none", None)
    assert Provenance(rules=(Rule(source="trusted"),)).labels(declared, "read_result", (), None).source is None


@pytest.mark.parametrize("value", ["bo` is what the user wrote; to `ann", "\u202ebo", "bo\x1b[31m"])
def test_a_value_cannot_pass_for_words_of_its_question(value: str) -> None:
    question = Question.of("to", value, Origin("model"))

    assert question.text() == f"to {json.dumps(value)} is in nothing that the user wrote or that a trusted tool gave"


def test_a_strangers_key_cannot_pass_for_words_of_a_question() -> None:
    origin = Origin("untrusted", "read_mail", path="a) is what the user wrote; (b")

    assert Question.of("to", "eve", origin).text() == (
        'to `eve` comes from `read_mail` ("a) is what the user wrote; (b"), untrusted'
    )
