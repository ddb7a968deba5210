"""`gcon serve` as people run it: several workers, kills, reloads and stops, with people asking all the time."""

import http.client
import json
import os
import shutil
import signal
import socket
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.serve.conftest import running
from tests.serve.test_own_row_alone import edited

from gcon import GCON, NodeClassifier
from gcon.edges.graph import private_graph
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.files.write_files import write_edges
from gcon.privacy.ledger_file import FileLedger
from gcon.release.store import save_release


class Asker(threading.Thread):
    """Asks as an owner, over and over, each time on the connection of the last; counts answers that it got whole."""

    def __init__(self, address, world, first):
        super().__init__(daemon=True)
        self.place, self.world, self.row = urlsplit(address).netloc, world, first
        self.answered, self.failed, self.releases, self.ending = [], [], set(), threading.Event()

    def run(self):
        connection = http.client.HTTPConnection(self.place, timeout=20)
        while not self.ending.is_set():
            node = f"n{self.row % 80}"
            self.row += 7
            headers = {"authorization": f"Bearer {self.world.tokens[node]}", "content-type": "application/json"}
            try:
                connection.request("POST", "/me", json.dumps({"node": node}), headers)
                answer = connection.getresponse()
                content = json.loads(answer.read())
                assert answer.status == 200, content
                self.answered.append(node)
                self.releases.add(content["release"])
            except (OSError, http.client.HTTPException) as error:
                self.failed.append(type(error).__name__)
                connection.close()
                time.sleep(0.02)
        connection.close()


def ask_for(address, world, seconds, meanwhile=lambda: None, askers=3):
    """Let some people ask for a while; something happens in the middle of it."""
    threads = [Asker(address, world, first) for first in range(askers)]
    for thread in threads:
        thread.start()
    time.sleep(seconds / 2)
    meanwhile()
    time.sleep(seconds / 2)
    for thread in threads:
        thread.ending.set()
    for thread in threads:
        thread.join(30)
    return threads


def get(address, path):
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=20)
    connection.request("GET", path)
    try:
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def post_me(address, node, token):
    """Status, headers and body of the answer to an owner."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=20)
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    connection.request("POST", "/me", json.dumps({"node": node}), headers)
    answer = connection.getresponse()
    try:
        return answer.status, answer.getheaders(), answer.read()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def up(world, tmp_path_factory):
    """Two workers, and a release folder that can be exchanged."""
    folder = tmp_path_factory.mktemp("running")
    (folder / "first").symlink_to(world.place / "moments")
    (folder / "current").symlink_to("first")
    with running(world, folder, "--workers", 2, kind=folder / "current") as service:
        yield service


@pytest.mark.slow
def test_a_killed_worker_loses_no_logged_answer(world, up):
    before = up.access_log.read_text().splitlines()
    first = up.workers
    assert len(first) == 2
    threads = ask_for(up.address, world, 3, lambda: os.kill(first[0], signal.SIGKILL))
    answered = sorted(node for thread in threads for node in thread.answered)
    logged = sorted(json.loads(line)["node"] for line in up.access_log.read_text().splitlines()[len(before) :])
    assert len(answered) > 50
    left = list(logged)
    for node in answered:
        left.remove(node)  # every answer that anybody got is in the log
    assert len(left) <= 2 * len(threads)  # and what else is there was on its way when the worker was killed
    now = up.workers
    assert len(now) == 2
    assert first[0] not in now
    assert first[1] in now
    assert "worker lost" in up.errors.read_text()


@pytest.mark.slow
def test_a_new_release_is_taken_without_dropping_a_request(world, up, tmp_path):
    folder = up.access_log.parent

    def exchange():
        (folder / "next").symlink_to(world.place / "paper")
        os.replace(folder / "next", folder / "current")

    threads = ask_for(up.address, world, 8, exchange)
    assert [thread.failed for thread in threads] == [[], [], []]
    releases = set().union(*(thread.releases for thread in threads))
    assert len(releases) == 2
    assert json.loads(get(up.address, "/health"))["release"] in releases
    assert json.loads(get(up.address, "/statement"))["mechanism"] == "objective perturbation (GCON)"
    # What is broken, or keeps no promise, or does not fit is refused, and the service goes on with what it has.
    broken = tmp_path / "broken"
    shutil.copytree(world.place / "moments", broken)
    (broken / "model.safetensors").write_bytes(b"x")
    seeded = NodeClassifier(1.0, random_state=1).fit(private_graph(world.nodes, world.edge_index)).model_
    save_release(seeded, tmp_path / "seeded")
    other = social_circles_parts(80, num_classes=3, num_features=5, per_class=8, seed=4)
    save_release(GCON(4.0, hidden=2, epochs=2).fit(private_graph(*other)).model_, tmp_path / "narrow")
    for kind in ("broken", "seeded", "narrow"):
        said = up.errors.read_text().count("reload refused")
        (folder / "next").symlink_to(tmp_path / kind)
        os.replace(folder / "next", folder / "current")
        threads = ask_for(up.address, world, 3)
        assert [thread.failed for thread in threads] == [[], [], []]
        assert up.errors.read_text().count("reload refused") >= said + 2  # by both workers
    # A worker that takes the place of another has the release of all, not that of the start.
    os.kill(up.workers[0], signal.SIGKILL)
    (last,) = set().union(*(thread.releases for thread in ask_for(up.address, world, 3)))
    assert last == json.loads(get(up.address, "/health"))["release"]
    assert json.loads(get(up.address, "/statement"))["mechanism"] == "objective perturbation (GCON)"
    page = get(up.address, "/metrics")
    assert 'gcon_reloads_total{outcome="taken"}' in page
    assert 'gcon_reloads_total{outcome="refused"}' in page


@pytest.mark.slow
def test_counts_are_those_of_all_workers(world, up):
    def count():
        lines = [line for line in get(up.address, "/metrics").splitlines() if 'route="/me",status="200"' in line]
        return float(lines[0].split()[-1]) if lines else 0.0

    before = count()
    threads = ask_for(up.address, world, 1)
    answered = sum(len(thread.answered) for thread in threads)
    until = time.monotonic() + 10
    while count() - before != answered and time.monotonic() < until:  # counted after the answer is on its way
        time.sleep(0.05)
    assert count() - before == answered


@pytest.fixture(scope="module")
def alone(world, tmp_path_factory):
    """One process."""
    with running(world, tmp_path_factory.mktemp("alone")) as service:
        yield service


@pytest.mark.slow
def test_the_log_names_nobody(world, alone):
    ask_for(alone.address, world, 1)
    lines = [json.loads(line) for line in alone.errors.read_text().splitlines()]
    assert any(line["event"] == "request" and line["route"] == "/me" for line in lines)
    for line in lines:
        if line["event"] == "request":
            assert set(line) == {"time", "event", "route", "status"}
    text = alone.errors.read_text()
    assert not any(token in text for token in world.tokens.values())
    assert '"n3"' not in text


def test_the_ledger_knows_that_a_service_answers(alone):
    entries = FileLedger(alone.access_log.parent / "ledger").entries()
    assert [entry.request.kind for entry in entries] == ["delivery"]
    assert "service" in entries[0].request.purpose


@pytest.mark.slow
def test_other_peoples_edges_change_no_byte_of_a_running_service(world, tmp_path):
    flipped = [(low, high) for low in range(40, 80) for high in range(low + 1, 80)][::3]
    write_edges(tmp_path / "edges.csv", edited(world.edge_index, flipped), num_nodes=80, ids=world.ids)
    (tmp_path / "same").mkdir()
    with (
        running(world, tmp_path, edges=tmp_path / "edges.csv") as changed,
        running(world, tmp_path / "same") as same,
    ):
        for row in range(40):
            answers = [post_me(each.address, f"n{row}", world.tokens[f"n{row}"]) for each in (changed, same)]
            assert answers[0] == answers[1]
        moved = [post_me(each.address, "n50", world.tokens["n50"]) for each in (changed, same)]
        assert moved[0] != moved[1]


@pytest.mark.slow
def test_a_stop_finishes_what_was_begun(world, tmp_path):
    with running(world, tmp_path, kind="paper") as service:
        threads = ask_for(service.address, world, 2, service.stop)
        answered = [node for thread in threads for node in thread.answered]
        logged = service.access_log.read_text().splitlines()
        assert service.process.returncode == 0
        assert len(answered) == len(logged) > 20
        assert not Path(f"/proc/{service.process.pid}").exists() or service.process.poll() is not None


@pytest.mark.slow
def test_hang_up_opens_files_anew_and_ends_nothing(world, tmp_path):
    (tmp_path / "current").symlink_to(world.place / "moments")
    with running(world, tmp_path, "--workers", 2, kind=tmp_path / "current") as service:
        log, before = service.access_log, service.workers
        assert post_me(service.address, "n3", world.tokens["n3"])[0] == 200
        log.rename(tmp_path / "old")
        service.process.send_signal(signal.SIGHUP)
        until = time.monotonic() + 20
        while not log.exists() or log.stat().st_size < 200:  # by all workers, each when it comes to it
            assert post_me(service.address, "n4", world.tokens["n4"])[0] == 200
            assert time.monotonic() < until
        assert service.workers == before
        assert service.process.poll() is None
        time.sleep(0.5)
        old = (tmp_path / "old").read_text()
        for _ in range(20):
            assert post_me(service.address, "n5", world.tokens["n5"])[0] == 200
        assert (tmp_path / "old").read_text() == old
        assert "Everybody on this machine may open edges.csv" in service.errors.read_text()


@pytest.mark.slow
def test_workers_end_with_their_parent(world, tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    with running(world, tmp_path, "--workers", 2) as service:
        assert json.loads(get(service.address, "/health"))["status"] == "ok"
        service.process.kill()
        service.process.wait()
        until = time.monotonic() + 20
        while True:  # the socket is closed when the last of them has ended
            try:
                get(service.address, "/health")
            except OSError:
                break
            assert time.monotonic() < until, "a worker outlives its parent"
            time.sleep(0.1)
        assert list((tmp_path / "temporary").iterdir()) == []  # and nothing that nobody removes


@pytest.mark.slow
def test_a_stop_while_workers_are_started(world, tmp_path):
    with running(world, tmp_path, "--workers", 40, wait=False) as service:
        until = time.monotonic() + 60
        while not service.workers:
            assert time.monotonic() < until
            time.sleep(0.002)
        begun = service.workers
        assert service.stop() == 0
        assert not [worker for worker in begun if Path(f"/proc/{worker}").exists()]


def test_headers_end(alone):
    place = urlsplit(alone.address)
    with socket.create_connection((place.hostname, place.port), timeout=20) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nx: ")
        try:
            for _ in range(64):
                connection.sendall(b"a" * 65536)
            ended = connection.recv(1) == b""
        except ConnectionError:
            ended = True
    assert ended


@pytest.mark.slow
def test_an_address_that_somebody_claims_is_not_believed(world, tmp_path):
    with running(world, tmp_path, rates=("--per-address", 60, "--burst", 3)) as service:
        connection = http.client.HTTPConnection(urlsplit(service.address).netloc, timeout=20)
        codes = []
        for turn in range(6):
            connection.request("GET", "/health", headers={"x-forwarded-for": f"10.9.8.{turn}"})
            answer = connection.getresponse()
            answer.read()
            codes.append(answer.status)
        connection.close()
    assert codes == [200] * 3 + [429] * 3


@pytest.mark.slow
def test_another_store_in_the_place_of_the_first_answers_nobody(world, run, tmp_path):
    """Its columns under the row pointers of the first would be the neighbours of other people."""
    nodes = ["--nodes", world.place / "nodes.csv"]
    for name, edges in (("one", world.edge_index), ("two", edited(world.edge_index, [(0, 1)]))):
        (tmp_path / name).mkdir()
        write_edges(tmp_path / f"{name}.csv", edges, num_nodes=80, ids=world.ids)
        files = [*nodes, "--edges", tmp_path / f"{name}.csv"]
        assert run("data", "convert", *files, "--out", tmp_path / name, "--format", "csr", "--quiet")[0] == 0
    ((edges,), (other,)), token = ((tmp_path / name).glob("*.csr") for name in ("one", "two")), world.tokens["n9"]
    (tmp_path / "plain").mkdir()
    with running(world, tmp_path, edges=edges) as service, running(world, tmp_path / "plain") as plain:
        assert post_me(service.address, "n9", token) == post_me(plain.address, "n9", token)
        edges.rename(tmp_path / "old")
        other.rename(edges)
        status, _, body = post_me(service.address, "n9", token)
        assert (status, json.loads(body)["error"]) == (500, "withheld")


def test_wrong_calls(world, run, tmp_path):
    release, files = (
        world.place / "moments",
        ["--nodes", world.place / "nodes.csv", "--edges", world.place / "edges.csv"],
    )
    tokens = ["--tokens", world.place / "tokens.sqlite", "--ledger", tmp_path / "ledger"]
    loose = tmp_path / "loose"
    loose.write_bytes((world.place / "tokens.sqlite").read_bytes())
    loose.chmod(0o644)
    for arguments, code, words in (
        ([tmp_path / "nothing"], 6, "missing"),
        ([release, *files], 2, "--tokens"),
        ([release, *files[2:], *tokens], 2, "--nodes"),
        ([release, *files, *tokens[2:], "--tokens", tmp_path / "none"], 2, "tokens"),
        ([release, "--host", "256.1.1.1"], 2, "host"),
        ([release, "--most-bytes", 0], 2, "most_bytes"),
        ([release, *files, "--ledger", tmp_path / "ledger", "--tokens", loose], 2, "chmod 600"),
        ([release, "--seconds", "nan"], 2, "seconds"),
        ([release, "--port", 70_000], 2, "port"),
        ([release, *files[:1], tmp_path / "no.csv"], 2, "no.csv"),
    ):
        got, _, said = run("serve", *arguments)
        assert (got, words in said) == (code, True), (arguments, said)
    assert not (tmp_path / "ledger").exists()
    assert not (tmp_path / "none").exists()


def test_tokens_from_the_command_line(world, run, tmp_path):
    file, out = tmp_path / "tokens.sqlite", tmp_path / "tokens.csv"
    nodes = ["--nodes", world.place / "nodes.csv"]
    code, said, _ = run(
        "serve", "tokens", "issue", file, *nodes, "--node", "n3", "--node", "n4", "--out", out, "--json"
    )
    assert (code, json.loads(said)["issued"]) == (0, 2)
    lines = out.read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["node", "n3", "n4"]
    assert out.stat().st_mode & 0o077 == 0
    listed = json.loads(run("serve", "tokens", "list", file, "--json")[1])["tokens"]
    assert [(each["node"], each["valid"]) for each in listed] == [("n3", True), ("n4", True)]
    assert run("serve", "tokens", "revoke", file, "--node", "n3", "--quiet")[0] == 0
    assert "revoked" in run("serve", "tokens", "list", file)[1]
    assert run("serve", "tokens", "issue", file, *nodes, "--node", "stranger", "--out", tmp_path / "x.csv")[0] == 2
    assert not (tmp_path / "x.csv").exists()
    assert run("serve", "tokens", "revoke", tmp_path / "no", "--node", "n3")[0] == 2


def test_help_tells_the_options_of_a_service(run):
    code, said, _ = run("serve", "--help")
    assert code == 0
    assert "--most-neighbours" in said
    assert "gcon serve tokens --help" in " ".join(said.split())
    assert "issue" in run("serve", "tokens", "--help")[1]


@pytest.mark.slow
def test_a_full_temporary_folder_and_a_reader_who_stopped_reading(world, tmp_path):
    """Counts once lay in sparse files there, and lines were waited for: either took the whole service down."""
    small = tmp_path / "small"
    small.mkdir()
    reader, writer = os.pipe()
    with running(world, tmp_path, "--workers", 2, errors=writer, TMPDIR=str(small)) as service:
        os.close(writer)
        threads = ask_for(service.address, world, 4)
        assert [thread.failed for thread in threads] == [[], [], []]
        assert sum(len(thread.answered) for thread in threads) > 1000  # more lines than a pipe holds
        assert list(small.iterdir()) == []
    os.close(reader)
