"""The error tree: codes, parents, messages, pickling."""

import pickle
import re
from datetime import timedelta
from inspect import isclass

import pytest

from toolcrib import errors
from toolcrib.errors import FieldProblem, ToolcribError, closest

EXAMPLES = [
    errors.ApprovalDenied("pay", "too much"),
    errors.ApprovalError("pay", "it expired"),
    errors.ApprovalRequired({"sum": 3}),
    errors.CodeError("invalid syntax", 3),
    errors.CommitError(("there is no result for `pay` (c1)",)),
    errors.CompletionCheckReturnError("done", "str"),
    errors.DatabaseError("a.db", "there is no folder b", "Make it first"),
    errors.DuplicateNameError("pay", "a.pay", "b.pay", "Rename one."),
    errors.DocumentError("pets.yaml", "cannot be read: No such file or directory"),
    errors.EngineError("no engine runs in this process"),
    errors.FormatError("pay", "openai", "its name is too long"),
    errors.FrontEndError("this conversation is being answered", 409),
    errors.HookError("pay", "pre hook", "check", "KeyError: 'x'"),
    errors.InvalidArguments("pay", (FieldProblem("sum", "must be an integer"),)),
    errors.InvalidOutput("pay", (FieldProblem("sum", "must be an integer"),)),
    errors.InvalidSchema("pay", FieldProblem("properties.sum.type", "'text' is no type")),
    errors.CallStateError("pay", "call_1", "executed"),
    errors.LimitReached("pay", "in total", 3),
    errors.SpendLimitReached("`gpt-5` is over its limit", 60.0),
    errors.ToolCancelled("pay"),
    errors.ExitError("SystemExit", "2"),
    errors.LockHeldError("pay", "its lock"),
    errors.MissingExtraError("search", "search"),
    errors.MissingProvided("pay", "db", "Database"),
    errors.ModelRetry("write the full name"),
    errors.NoResult("the call of `pay`", "it was refused", "see `reason`"),
    errors.NotAvailable("pay", "it is night"),
    errors.NewerForm("Call", 2, 1),
    errors.NotCallable("pay"),
    errors.NotPortableError("the turn of `pay`", "the argument `db`", "Database"),
    errors.PendingLimitReached("pay", "ann", 100, timedelta(days=7)),
    errors.PolicyError("policy.toml", ("rule 1: `effekt` is unknown",)),
    errors.RemoteToolError("bank", "the account is closed"),
    errors.ResultNotSerializable("pay", "Lock", "no JSON form"),
    errors.RetriesExhausted("pay", 3, "sum: missing"),
    errors.RoundError(("the model made no call",)),
    errors.SafeExecutionError("it runs"),
    errors.SandboxError("the worker died"),
    errors.SandboxLost("it was killed"),
    errors.SandboxUnavailable("no kernel support"),
    errors.SchemaError("pay", "db", "has a type that pydantic cannot describe"),
    errors.SchemaTooLarge("pay"),
    errors.ServerError("bank", "was lost", may_have_run=True),
    errors.InsufficientScope("pay", ("pay:write",)),
    errors.ClientUnavailable("pay", "a person", "the call came from a program"),
    errors.ClientAnswerError("pay", "`sum` is missing"),
    errors.ConsentError("the link was used"),
    errors.CredentialError("https://bank.example", "they cannot be renewed now"),
    errors.CredentialKeyError("there is none"),
    errors.TargetError("tools.py", "there is no such file"),
    errors.ToolConstraintError("pay", "it is required and not available"),
    errors.ToolTimeoutError("pay", 1.5),
    errors.TurnTimeoutError("pay", 2.0),
    errors.UnknownTool("pey", ("pay", "book")),
    errors.UnregisteredAgentError("a"),
    errors.UnregisteredHookError("h"),
    errors.UnregisteredToolError("pey", ("pay",)),
    errors.WorkerError("w1", "it runs already"),
    errors.WrongRunMethodError("use yielding()"),
]
ABSTRACT = (errors.ToolcribError, errors.UnregisteredError)


def test_every_error_has_an_example_here() -> None:
    classes = {
        item for name in errors.__all__ if isclass(item := getattr(errors, name)) and issubclass(item, ToolcribError)
    }

    assert classes - set(ABSTRACT) <= {type(error) for error in EXAMPLES}


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_survives_pickling(error: ToolcribError) -> None:
    again = pickle.loads(pickle.dumps(error))

    assert (type(again), str(again), again.args) == (type(error), str(error), error.args)
    assert vars(again) == vars(error)


@pytest.mark.parametrize("kind", [*map(type, EXAMPLES), *ABSTRACT, FieldProblem], ids=lambda kind: kind.__name__)
def test_an_error_goes_by_its_public_name(kind: type) -> None:
    assert kind.__module__ == "toolcrib.errors"


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_that_knows_its_tool_names_it(error: ToolcribError) -> None:
    tool = getattr(error, "tool", None)

    assert str(error)
    assert tool is None or tool in str(error)


def test_codes_tell_errors_apart() -> None:
    codes = [type(error).code for error in EXAMPLES]

    assert len(codes) == len(set(codes))


@pytest.mark.parametrize(
    ("name", "parents"),
    [
        ("InvalidArguments", (TypeError, ValueError)),
        ("UnknownTool", (KeyError,)),
        ("UnregisteredToolError", (KeyError,)),
        ("ToolTimeoutError", (TimeoutError,)),
        ("TurnTimeoutError", (TimeoutError,)),
        ("DuplicateNameError", (ValueError,)),
        ("ApprovalDenied", (PermissionError,)),
        ("WrongRunMethodError", (TypeError,)),
        ("MissingExtraError", (ImportError,)),
    ],
)
def test_errors_are_caught_as_what_python_has_for_them(name: str, parents: tuple[type, ...]) -> None:
    assert all(issubclass(getattr(errors, name), parent) for parent in parents)


def test_a_timed_out_thread_is_said_to_go_on() -> None:
    assert "was stopped" in str(errors.ToolTimeoutError("pay", 2))
    assert "may go on in the background" in str(errors.ToolTimeoutError("pay", 2, None))
    assert "goes on" in str(errors.ToolTimeoutError("pay", 2, True))


@pytest.mark.parametrize(
    ("name", "names", "said"),
    [
        ("serch", ["search", "pay"], "Did you mean `search`?"),
        ("functions.search", ["search", "se", "pay"], "Did you mean `search`?"),
        ("unknown_functions_get_user", ["get_user", "get_users"], "Did you mean `get_user`?"),
        ("x", [], "There are none."),
        ("zzz", ["b", "a"], "There are: `a`, `b`."),
        ("zzz", [f"t{n:02}" for n in range(20)], "There are 20, among them `t00`"),
    ],
)
def test_a_misspelt_name_is_helped(name: str, names: list[str], said: str) -> None:
    assert closest(name, names).startswith(said)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("approver", "Did you mean `by`?"),
        ("system_prompt", "Here it is Session(system=...)."),
        ("mesage", "Did you mean `message`?"),
        ("colour", "There are: `by`, `message`."),
    ],
)
def test_what_is_not_an_option_is_told_by_what_it_is_here(option: str, said: str) -> None:
    words = {"approver": "by", "system_prompt": "Session(system=...)"}

    with pytest.raises(TypeError, match=re.escape(f"a grant has no option `{option}`. {said}")):
        errors.refuse_unknown_options("a grant", {"by": 1, option: 2}, ["by", "message"], words)
