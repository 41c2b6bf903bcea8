"""Where the token of a server comes from, and what is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from holdfast.app.data.datadir import DataDir
from holdfast.app.data.token import given_token, kept_token
from holdfast.app.settings import Settings
from holdfast.errors import InvalidSetting, Unavailable

if TYPE_CHECKING:
    from pathlib import Path

NONE = ["", "\n", "one\ntwo\n", "\N{SNOWMAN}", "a\0b"]


def test_a_token_is_made_once_and_kept(tmp_path: Path) -> None:
    first = kept_token(DataDir(tmp_path / "data"))
    (tmp_path / "data" / "token.new").write_text("half a to")  # as a server leaves it that is killed in between
    assert len(first) > 40
    assert kept_token(DataDir(tmp_path / "data")) == first
    (tmp_path / "data" / "token").unlink()
    assert first != kept_token(DataDir(tmp_path / "data")) == kept_token(DataDir(tmp_path / "data"))


@pytest.mark.parametrize("text", NONE)
def test_a_file_without_a_token_is_refused_and_not_replaced(tmp_path: Path, text: str) -> None:
    data = DataDir(tmp_path / "data")
    kept_token(data)
    (data.path / "token").write_text(text)
    with pytest.raises(Unavailable, match="token has no token") as refused:
        kept_token(data)
    assert refused.value.hint == f"remove it, so that a new one is created: rm {data.path / 'token'}"
    with pytest.raises(InvalidSetting, match="has no token"):
        given_token(Settings(token_file=data.path / "token"))


def test_a_setting_gives_a_token_itself_or_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.touch(mode=0o600)
    file.write_text("  from-a-file\r\n")
    assert given_token(Settings()) is None
    assert given_token(Settings(token=SecretStr("itself"))) == "itself"
    assert given_token(Settings(token_file=file)) == "from-a-file"
    with pytest.raises(InvalidSetting, match="HOLDFAST_TOKEN is also set"):
        given_token(Settings(token=SecretStr("itself"), token_file=file))
    with pytest.raises(InvalidSetting, match="No such file or directory") as refused:
        given_token(Settings(token_file=tmp_path / "absent"))
    assert [problem.path for problem in refused.value.problems] == ["HOLDFAST_TOKEN_FILE"]
