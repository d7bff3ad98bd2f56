"""Only their owner can access files and folders, whatever the umask is."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidings.files import (
    SecretError,
    check_secret,
    make_folder,
    make_private,
    open_private,
    private_file,
    read_secret,
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def _lenient() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def test_what_is_made_is_for_its_owner(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_folder(tmp_path / "a" / "b")
    with private_file(tmp_path / "a" / "one", "wb") as file:
        file.write(b"1")
    os.close(open_private(tmp_path / "a" / "two", os.O_WRONLY | os.O_CREAT))
    assert make_private(tmp_path / "a" / "three") == tmp_path / "a" / "three"
    assert {one.name: mode(one) for one in tmp_path.rglob("*")} == {
        "a": 0o700, "b": 0o700, "one": 0o600, "two": 0o600, "three": 0o600,
    }  # fmt: skip
    assert mode(tmp_path) == 0o755


def test_what_is_there_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir(0o775)
    make_folder(tmp_path / "shared")
    (tmp_path / "shared" / "file").touch(0o664)
    make_private(tmp_path / "shared" / "file")
    assert mode(tmp_path / "shared") == 0o775
    assert mode(tmp_path / "shared" / "file") == 0o664
    with pytest.raises(FileExistsError):
        make_folder(tmp_path / "shared" / "file")


@pytest.mark.parametrize("others", [0o640, 0o604, 0o620, 0o602, 0o644])
def test_a_secret_that_others_can_read(tmp_path: Path, others: int) -> None:
    path = tmp_path / "my token"
    path.write_text("secret\n")
    path.chmod(others)
    with pytest.raises(SecretError) as found:
        read_secret(path)
    assert str(found.value).endswith(f"expected 0600: chmod 600 '{path}'")
    assert "secret" not in str(found.value).replace(str(path), "")
    path.chmod(0o600)
    assert read_secret(path) == ("secret", "")
    path.chmod(0o400)
    assert read_secret(path) == ("secret", "")


def test_a_secret_that_is_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mounted"
    path.write_text("secret")
    monkeypatch.setattr("tidings.files.secret.os.geteuid", lambda: path.stat().st_uid + 1)
    for given, warned in ((0o644, True), (0o640, False), (0o600, False)):
        path.chmod(given)
        token, warning = read_secret(path)
        assert token == "secret"
        assert ("anybody on this machine may read it" in warning) == warned


def test_a_secret_that_is_mounted_to_be_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mounted"
    path.write_text("secret")
    path.chmod(0o644)
    found = os.statvfs(path)
    fixed = os.statvfs_result((*found[:8], found.f_flag | os.ST_RDONLY, *found[9:10], 0)[:11])
    monkeypatch.setattr("tidings.files.secret.os.statvfs", lambda _: fixed)
    assert "ask its owner to change that" in check_secret(path)


@pytest.mark.parametrize("text", ["", "\n", "two words", "x" * 5000, b"\xff\xfe"])
def test_what_is_no_token(tmp_path: Path, text: str | bytes) -> None:
    path = tmp_path / "token"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(0o600)
    with pytest.raises(SecretError, match="expected"):
        read_secret(path)
