"""Keys at rest: what they open and what they do not, and where they are found."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from toolcrib.credentials import CredentialKeys, new_key
from toolcrib.errors import CredentialKeyError


def test_text_is_opened_in_its_place_alone() -> None:
    keys = CredentialKeys([new_key()])
    sealed = keys.sealed(b"secret", b"ann")

    assert keys.opened(sealed, b"ann") == b"secret"
    assert b"secret" not in sealed
    with pytest.raises(CredentialKeyError, match="moved"):
        keys.opened(sealed, b"bob")


def test_another_key_says_so() -> None:
    sealed = CredentialKeys([new_key()]).sealed(b"secret", b"ann")

    with pytest.raises(CredentialKeyError, match="another key") as error:
        CredentialKeys([new_key()]).opened(sealed, b"ann")

    assert "TOOLCRIB_CREDENTIALS_KEY" in str(error.value)


def test_older_keys_open_and_the_first_one_seals() -> None:
    old, new = new_key(), new_key()
    sealed = CredentialKeys([old]).sealed(b"secret", b"ann")
    both = CredentialKeys([new, old])

    assert both.opened(sealed, b"ann") == b"secret"
    assert not both.is_newest(sealed)
    assert CredentialKeys([new]).opened(both.sealed(b"x", b"ann"), b"ann") == b"x"


@pytest.mark.parametrize("bad", ["", "short", "ü" * 43, "A" * 42])
def test_what_is_no_key_is_refused_and_not_shown(bad: str) -> None:
    with pytest.raises(CredentialKeyError) as error:
        CredentialKeys.found({"TOOLCRIB_CREDENTIALS_KEY": f"{bad},"} if bad else {"TOOLCRIB_CREDENTIALS_KEY": ","})

    assert bad == "" or bad not in str(error.value)


def test_key_of_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(new_key())
    path.chmod(0o644)
    variables = {"TOOLCRIB_CREDENTIALS_KEY_FILE": str(path)}

    with pytest.raises(CredentialKeyError, match="chmod 600"):
        CredentialKeys.found(variables)
    path.chmod(0o600)

    assert CredentialKeys.found(variables)


def test_without_any_key_the_error_names_the_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)

    with pytest.raises(CredentialKeyError, match="TOOLCRIB_CREDENTIALS_KEY"):
        CredentialKeys.found({})


def test_keyring_has_one_key_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[tuple[str, str], str] = {}
    ring = SimpleNamespace(
        get_password=lambda service, name: kept.get((service, name)),
        set_password=lambda service, name, value: kept.update({(service, name): value}),
    )
    monkeypatch.setitem(sys.modules, "keyring", ring)  # of another project

    sealed = CredentialKeys.found({}).sealed(b"secret", b"ann")
    after, drop = CredentialKeys.rotated({})
    running = CredentialKeys.found({})
    drop()

    assert after.opened(sealed, b"ann") == b"secret"
    assert len(kept) == 1
    assert not after.is_newest(sealed)
    assert running.opened(after.sealed(b"x", b"ann"), b"ann") == b"x"
    with pytest.raises(CredentialKeyError):
        CredentialKeys.found({}).opened(sealed, b"ann")


def test_file_is_rotated(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(new_key())
    path.chmod(0o600)
    variables = {"TOOLCRIB_CREDENTIALS_KEY_FILE": str(path)}
    running = CredentialKeys.found(variables)

    after, drop = CredentialKeys.rotated(variables)
    drop()

    assert running.opened(after.sealed(b"x", b"ann"), b"ann") == b"x"  # it reads the file again
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(path.read_text().split()) == 1


def test_key_of_the_environment_is_rotated_by_who_sets_it() -> None:
    with pytest.raises(CredentialKeyError, match="NEW,OLD"):
        CredentialKeys.rotated({"TOOLCRIB_CREDENTIALS_KEY": new_key()})
