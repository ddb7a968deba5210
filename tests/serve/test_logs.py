"""Lines about the service: nobody waits for whoever reads them, and what is lost is counted."""

import json
import os
import socket
import time

import pytest

from gcon.serve.logs import Log


@pytest.fixture
def standard_error(monkeypatch):
    """Put another file in the place of standard error."""

    def put(file):
        monkeypatch.setattr("gcon.serve.logs._STANDARD_ERROR", file)

    return put


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_a_reader_who_stopped_reading_holds_nobody_up(standard_error, kind):
    if kind == "pipe":
        reader, writer = os.pipe()
    else:
        reader, writer = (each.detach() for each in socket.socketpair())
    standard_error(writer)
    log, start = Log(), time.monotonic()
    for _ in range(5000):
        log.request("/me", 200, None)
    assert time.monotonic() - start < 5
    got = b""
    while not got.endswith(b"\n") or len(got) < 4000:
        got += os.read(reader, 2**20)
    before = got.count(b"\n")
    os.set_blocking(reader, False)
    with pytest.raises(BlockingIOError):
        while part := os.read(reader, 2**20):
            before += part.count(b"\n")
    log.event("at last")
    lines = [json.loads(line) for line in os.read(reader, 2**20).splitlines()]
    assert [line["event"] for line in lines] == ["lines lost", "at last"]
    assert lines[0]["count"] + before == 5000
    assert os.get_blocking(writer)  # others who share it notice nothing
    os.close(reader)
    os.close(writer)


def test_a_file_gets_every_line(standard_error, tmp_path):
    with (tmp_path / "log").open("w") as file:
        standard_error(file.fileno())
        log = Log()
        for number in range(100):
            log.event("x", number=number)
        log.event("x", number="y" * 5000)  # too long for a line
        log.event("z")
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [line.get("number") for line in lines[:100]] == list(range(100))
    assert [(line["event"], line.get("count")) for line in lines[100:]] == [("lines lost", 1), ("z", None)]


def test_a_reader_who_is_gone_is_no_failure(standard_error):
    reader, writer = os.pipe()
    os.close(reader)
    standard_error(writer)
    Log().event("x")
    os.close(writer)
