"""Passwords are hidden in every form that names a database."""

from __future__ import annotations

import pytest

from toolcrib._passwords import hide_passwords
from toolcrib.errors import DatabaseError

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://ann:hunter2@db:5432/crib", "postgresql://ann:***@db:5432/crib"),
        ("postgresql://:hunter2@db/crib", "postgresql://:***@db/crib"),
        ("postgresql+psycopg://ann:hunter2@db/crib?sslmode=require", "postgresql+psycopg://ann:***@db/crib?sslmode=require"),
        ("postgresql://ann:a@hunter2@db/crib", "postgresql://ann:***@db/crib"),
        ("postgresql://ann:a/hunter2@db/crib", "postgresql://ann:***@db/crib"),
        ("postgresql://ann:a hunter2@db/crib", "postgresql://ann:***@db/crib"),
        ("postgresql://ann:%68unter2@db/crib", "postgresql://ann:***@db/crib"),
        ("postgresql://db/crib?user=ann&password=hunter2&sslmode=off", "postgresql://db/crib?user=ann&password=***&sslmode=off"),
        ("postgresql://db/crib?pass%77ord=hunter2", "postgresql://db/crib?pass%77ord=***"),
        ("postgresql://db/crib?PassWord=hunter2", "postgresql://db/crib?PassWord=***"),
        ("postgresql://db/crib?sslpassword=hunter2", "postgresql://db/crib?sslpassword=***"),
        ("postgresql:/ann:hunter2@db/crib", "postgresql:***@db/crib"),
        ("postgresql:ann:hunter2@db/crib", "postgresql:***@db/crib"),
        ("ann:hunter2@db/crib", "ann:***@db/crib"),
        ("cannot open 'ann:hunter2@db/crib'", "cannot open 'ann:***@db/crib'"),
        ("host=db password=hunter2 dbname=crib", "host=db password=*** dbname=crib"),
        ("host=db password = 'a \\' hunter2' dbname=crib", "host=db password = *** dbname=crib"),
        ("password=a\\ hunter2 host=db", "password=*** host=db"),
        ("password='hunter2", "password=***"),
        ("two: postgresql://a:hunter2@b/c and postgresql://d:hunter2@e/f", "two: postgresql://a:***@b/c and postgresql://d:***@e/f"),
    ],
)  # fmt: skip
def test_a_password_is_hidden_and_the_rest_is_not(text: str, shown: str) -> None:
    assert hide_passwords(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "a=b.db",
        "postgresql://db:5432/crib",
        "sqlite:////tmp/a.db",
        "the password is wrong",
        "a note: ann@db",
        "postgresql://ann@db/crib",
    ],
)
def test_a_text_without_one_stays(text: str) -> None:
    assert hide_passwords(text) == text


def test_a_known_password_is_hidden_wherever_it_stands() -> None:
    assert (
        hide_passwords('invalid port number: "hun/ter2" (hun%2Fter2)', "hun/ter2") == 'invalid port number: "***" (***)'
    )


def test_an_error_of_a_database_hides_what_it_is_given() -> None:
    error = DatabaseError("host=db password=hunter2", "cannot reach postgresql://a:hunter2@b/c")

    assert SECRET not in str(error)
    assert SECRET not in repr(error.args)


def test_hiding_takes_time_in_step_with_the_text() -> None:
    for piece in ("a", "a:", "a:a@", " ", "://", "://a:", "password=", "'", "\\", "%"):
        assert hide_passwords(piece * 200_000) is not None
