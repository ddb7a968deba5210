"""Tokens: only the right one, for the right node, in time; and nothing in the file that opens anything."""

import re
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcon.errors import InputError
from gcon.serve.tokens import TokenStore


@pytest.fixture
def clock():
    return [1_000_000.0]


@pytest.fixture
def store(tmp_path, clock):
    return TokenStore(tmp_path / "tokens.sqlite", new=True, clock=lambda: clock[0])


def test_a_token_opens_its_own_node_until_it_expires(store, clock):
    (_, first), (_, second) = store.issue(["a", "b"], days=1)
    assert re.fullmatch(r"gcon_[A-Za-z0-9_-]{43}", first)
    assert re.fullmatch("[0-9a-f]{12}", store.check(first, "a"))
    assert store.check(first, "b") is store.check(second, "a") is store.check(first, "") is None
    clock[0] += 86_399
    assert store.check(first, "a")
    clock[0] += 1
    assert store.check(first, "a") is None


def test_an_earlier_token_stays_valid_and_each_can_be_revoked(store):
    tokens = [store.issue(["a"], days=1)[0][1] for _ in range(3)]
    assert all(store.check(token, "a") for token in tokens)
    assert store.revoke(name=store.check(tokens[1], "a")) == 1
    assert [bool(store.check(token, "a")) for token in tokens] == [True, False, True]
    assert store.revoke(node="a") == 2
    assert not any(store.check(token, "a") for token in tokens)
    assert store.revoke(node="a") == 0
    assert [each.revoked is None for each in store.facts()] == [False] * 3


def test_another_process_sees_a_revocation_at_once(store, tmp_path):
    token = store.issue(["a"], days=1)[0][1]
    other = TokenStore(tmp_path / "tokens.sqlite", clock=lambda: 1_000_000.0)
    assert other.check(token, "a")
    store.revoke(node="a")
    assert other.check(token, "a") is None


def test_the_files_hold_no_token_and_are_for_their_owner_alone(store, tmp_path):
    tokens = [token for _, token in store.issue(map(str, range(50)), days=1)]
    store.close()
    for path in tmp_path.iterdir():
        content = path.read_bytes()
        assert not any(token[5:].encode() in content for token in tokens)
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path.name


@given(token=st.text(max_size=80), node=st.text(max_size=20))
def test_nothing_else_opens(tmp_path_factory, token, node):
    path = tmp_path_factory.getbasetemp() / "fuzzed.sqlite"
    store = TokenStore(path, new=True)
    if not store.facts():
        store.issue(["", "a", "0"], days=1)
    assert store.check(token, node) is None
    store.close()


def test_broken_files_and_settings_are_refused(tmp_path, store):
    (tmp_path / "text").write_text("not a database, whatever its name says" * 100)
    (tmp_path / "folder").mkdir()
    for name in ("text", "folder", "missing"):
        with pytest.raises(InputError, match="tokens"):
            TokenStore(tmp_path / name)
    assert not (tmp_path / "missing").exists()
    for days in (0, -1, float("nan"), 1e9):
        with pytest.raises(InputError, match="days"):
            store.issue(["a"], days=days)
    for wrong in ({}, {"node": "a", "name": "0" * 12}, {"name": "x"}, {"name": "' OR 1=1"}):
        with pytest.raises(InputError):
            store.revoke(**wrong)
    assert store.facts() == []


def test_of_another_format(tmp_path, store):
    store._file.execute("PRAGMA user_version = 9")
    with pytest.raises(InputError, match="format 9"):
        TokenStore(tmp_path / "tokens.sqlite")


def test_a_thousand_at_once_or_none(store, monkeypatch):
    """Half an issue never stays: a token that exists twice undoes all."""
    monkeypatch.setattr("gcon.serve.tokens.secrets.token_urlsafe", lambda _: "x" * 43)
    with pytest.raises(Exception, match="UNIQUE"):
        store.issue(["a", "b"], days=1)
    assert store.facts() == []


def test_a_file_that_was_taken_away_opens_nothing_and_another_opens_its_own(store, tmp_path):
    path, token = tmp_path / "tokens.sqlite", store.issue(["a"], days=1)[0][1]
    path.rename(tmp_path / "old")
    assert store.check(token, "a") is None
    other = TokenStore(path, new=True, clock=lambda: 1_000_000.0)
    another = other.issue(["a"], days=1)[0][1]
    assert store.check(token, "a") is None
    assert store.check(another, "a")


def test_a_file_that_others_may_read_is_refused(store, tmp_path):
    (tmp_path / "tokens.sqlite").chmod(0o640)
    with pytest.raises(InputError, match="chmod 600"):
        TokenStore(tmp_path / "tokens.sqlite")


def test_a_bad_file_that_is_put_right_is_read_again(store, tmp_path):
    """Also where its content is exchanged and the file stays the same."""
    path, token = tmp_path / "tokens.sqlite", store.issue(["a"], days=1)[0][1]
    store._file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    good = path.read_bytes()
    for bad in (b"not a database at all " * 500, good[:100] + b"\0" * (len(good) - 100)):
        assert store.check(token, "a")
        path.write_bytes(bad)
        assert store.check(token, "a") is None
        path.write_bytes(good)
        for left in tmp_path.glob("tokens.sqlite-*"):
            left.unlink()
        assert store.check(token, "a")
    path.chmod(0o644)
    assert store.check(token, "a") is None
    path.chmod(0o600)
    assert store.check(token, "a")
