"""A sample of `benchmarks/faults.py`: faults that struck after a charge and lost what was paid for, or said nothing."""

import errno
import json
import shutil
import signal
import sys

import pytest
from tests.faults.cases import GRAPH, LEDGER, VERBS, Seen, judge, make_world
from tests.faults.runs import Fault, server

from gcon.privacy.ledger import Outcome
from gcon.privacy.ledger_file import FileLedger
from gcon.release.store import load_release
from gcon.writing import work_folder

FULL = {"error": errno.ENOSPC, "lasts": True}
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc"), reason="the shim needs Linux and a C compiler"
)


@pytest.fixture(scope="module")
def run():
    with server() as run:
        yield run


@pytest.fixture(scope="module")
def template(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("template")
    make_world(run, folder)
    return folder


@pytest.fixture
def world(template, tmp_path):
    shutil.copytree(template, tmp_path / "world")
    return tmp_path / "world"


@pytest.fixture
def strike(run, world, template):
    """Run a verb into a fault; everything that holds after every fault is checked, on a copy."""

    def strike(name, fault, code):
        ended = run(world, *VERBS[name].arguments, fault=fault)
        assert ended.code == code, ended.err
        copy = world.with_name("copy")
        shutil.copytree(world, copy)
        assert judge(VERBS[name], Seen(copy, template, ended, fault)) == []
        return ended.err

    return strike


def outcomes(world):
    return [entry.outcome for entry in FileLedger(world / LEDGER).entries()]


def test_a_full_disk_under_out_keeps_the_model_beside_the_ledger(run, world, strike):
    said = strike("train", Fault("out", "write", 4, **FULL), code=9)
    assert "No space left on device" in said
    assert f"Charged: epsilon 1, delta 1e-05, entry 1 (reserved) of {world / LEDGER}" in said
    assert not list((world / "out").iterdir())
    listed = json.loads(run(world, "ledger", "recover", LEDGER, "--json").out)
    assert [(each["entry"], each["out"]) for each in listed["kept"]] == [(1, str(world / "out" / "model"))]
    assert run(world, "ledger", "recover", LEDGER, "--out", "out/model").code == 0
    assert load_release(world / "out" / "model").receipt.total.epsilon == 2
    assert outcomes(world) == [Outcome.RELEASED] * 2
    assert not (world / f"{LEDGER}.recovery").exists()


def test_a_name_that_is_not_confirmed_takes_no_model_away(run, world, strike):
    said = strike("train", Fault("out", "sync", 7, errno.EIO), code=9)  # of the folder that holds the release
    assert "Input/output error" in said
    load_release(world / "out" / "model")
    assert run(world, "ledger", "recover", LEDGER, "--out", "out/model").code == 0  # it is there: only settled
    assert outcomes(world) == [Outcome.RELEASED] * 2


def test_a_ledger_that_cannot_be_told_is_told_by_the_next_command(run, world, strike):
    said = strike("train", Fault(f"{LEDGER}", "write", 3, errno.EIO), code=0)
    assert "entry 1 stays reserved, which counts as spent" in said
    assert outcomes(world) == [Outcome.RELEASED, Outcome.RESERVED]
    assert run(world, *VERBS["evaluate"].arguments).code == 0
    assert outcomes(world) == [Outcome.RELEASED] * 3


@pytest.mark.parametrize("name", ["evaluate", "advise"])
@pytest.mark.parametrize("kind", ["pipe", "stdout"])
def test_a_number_that_could_not_be_printed_is_in_the_ledger(run, world, strike, name, kind):
    said = strike(name, Fault(kind=kind), code=9)
    assert "The result is kept with the entry: gcon ledger show" in said
    shown = json.loads(run(world, "ledger", "show", LEDGER, "--json").out)
    assert {"evaluate": "micro_f1", "advise": "homophily"}[name] in shown["entries"][1]["result"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(("place", "call", "more"), [(LEDGER, 2, ""), ("out", 4, "The model is whole, and kept in")])
def test_a_stopped_training_says_what_it_was_charged(world, strike, number, code, place, call, more):
    said = strike("train", Fault(place, "write", call, signal=number), code=code)
    assert f"Charged: epsilon 1, delta 1e-05, entry 1 (reserved) of {world / LEDGER}" in said
    assert more in said


def test_a_disk_that_is_full_everywhere_is_told(strike):
    assert "could not be kept beside the ledger either, and is lost" in strike(
        "train", Fault("", "write", 6, **FULL), 9
    )


def test_no_room_is_found_out_before_anything_is_charged(world, strike):
    assert "No space left on device" in strike("train", Fault("out", room=1_000_000), code=10)
    assert outcomes(world) == [Outcome.RELEASED]


def test_a_second_training_into_one_place_is_refused_at_once(run, world):
    with work_folder(world / "out" / "model"):
        ended = run(world, *VERBS["train"].arguments)
    assert ended.code == 2
    assert "one command at a time writes there" in ended.err
    assert outcomes(world) == [Outcome.RELEASED]


def test_a_full_disk_is_no_secret_of_the_edges(strike):
    assert "No space left on device" in strike("predict own-edges", Fault("out", "write", 1, **FULL), code=10)


def test_tokens_that_could_not_be_handed_out_are_taken_back(strike):
    assert "was taken back" in strike("tokens issue", Fault("out", "write", 1, errno.EIO), code=10)


def test_a_revocation_says_whether_it_holds(strike):
    assert "NOTHING WAS REVOKED" in strike("tokens revoke", Fault("t.sqlite", "write", 1, **FULL), code=10)


@pytest.mark.parametrize("name", ["data make", "data convert parquet", "predict parquet"])
def test_no_traceback_and_no_half_files_on_a_full_disk(strike, name):
    strike(name, Fault("out", room=500), code=10 if name != "data convert parquet" else 2)


def test_nothing_of_the_users_is_overwritten(run, world):
    before = {path.name: path.read_bytes() for path in world.iterdir() if path.is_file()}
    for call in (
        ("predict", "release", *GRAPH, "--out", "edges.csv"),
        ("predict", "release", *GRAPH, "--out", "edges.csv", "--overwrite"),
        ("predict", "release", *GRAPH, "--out", "tokens.csv"),
        ("data", "make", "--out", ".", "--nodes", "60", "--classes", "2"),
        ("data", "make", "--out", ".", "--nodes", "60", "--classes", "2", "--overwrite"),
        ("serve", "tokens", "issue", "t.sqlite", "--nodes", "nodes.csv", "--out", "tokens.csv"),
    ):
        ended = run(world, *call)
        assert (ended.code, ended.err.startswith("error: out:")) == (2, True), (call, ended.err)
    assert {path.name: path.read_bytes() for path in world.iterdir() if path.is_file()} == before
    assert run(world, "predict", "release", *GRAPH, "--out", "tokens.csv", "--overwrite").code == 0


@pytest.mark.parametrize("kind", ["stdout", "pipe"])
def test_an_object_that_could_not_be_printed_is_told_in_words(world, strike, kind):
    said = strike("evaluate", Fault(kind=kind, json=True), code=9)
    assert "Charged: epsilon 0.5, delta 0, entry 1 (released)" in said


@pytest.mark.parametrize("name", ["train", "tune", "advise"])
def test_nobody_pays_for_progress_that_cannot_be_told(run, world, strike, name):
    strike(name, Fault(kind="stderr"), code=0)
    assert outcomes(world) == [Outcome.RELEASED] * 2
