"""`kill -9` of `gcon train`: the ledger verifies, is never under-charged, and no readable half model exists.

Importing torch takes seconds, so this file, run as a script, is a server: it imports gcon once, stays at one thread, and
forks a child for each run. A child is killed by the server at a random moment, or kills itself exactly at a named step.
"""

import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from gcon.errors import ReleaseFormatError
from gcon.methods.no_edges import predict_without_edges
from gcon.privacy.budget import Budget
from gcon.privacy.ledger import Kind, Outcome, Request
from gcon.privacy.ledger_file import FileLedger
from gcon.release.store import load_release

EPSILON, DELTA = 1.0, 1e-5
LEDGER = "edges.csv.ledger"
LONGEST = 300  # seconds; a child that hangs ends itself with another signal, and its test fails


# The server's side.


def serve() -> None:
    import torch
    import torch._dynamo  # the optimiser imports it on first use

    torch.set_num_threads(1)
    sys.argv = ["gcon", "version", "--quiet"]  # imports what is imported on first use, but not polars: its threads
    with suppress(SystemExit):  # would not survive a fork
        importlib.import_module("gcon.cli.app").main()
    importlib.import_module("gcon.cli.train")
    gcon = importlib.import_module("gcon")  # so does a first training
    for model in (
        gcon.NodeClassifier(),
        gcon.GCON(epochs=2),
    ):  # also compiled kernels: a child that is killed keeps none
        model.fit(gcon.datasets.social_circles(60, num_classes=3, mean_degree=4, per_class=6, seed=1))
    moments = importlib.import_module("gcon.methods.moments")
    # So few validation nodes are too few for a count of right answers: here it is bought, because runs are killed in it too.
    moments.counted_share = lambda epsilon, asked, **_: moments.MOST_COUNTED if asked else 0.0
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(watch(**json.loads(line))), flush=True)


def watch(folder, arguments, kill, step):
    """Fork a run that kills itself `"at"` the step, or is killed so many seconds after it (None: never)."""
    reading, writing = os.pipe()

    def at_the_step():
        if kill == "at":
            os.kill(os.getpid(), signal.SIGKILL)
        os.write(writing, b".")

    child = os.fork()
    if child == 0:
        os.close(reading)
        run_and_leave(folder, arguments, step, at_the_step)
    os.close(writing)
    os.read(reading, 1)  # returns at the step, or with nothing if the child is gone
    begun = time.monotonic()
    if kill not in ("at", None):
        time.sleep(kill)
        os.kill(child, signal.SIGKILL)  # not yet waited for, so the number is still the child's own
    _, status = os.waitpid(child, 0)
    os.close(reading)
    return {"code": os.waitstatus_to_exitcode(status), "seconds": time.monotonic() - begun}


def run_and_leave(folder, arguments, step, reached):
    code = 1
    try:
        signal.alarm(LONGEST)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
        os.chdir(folder)
        sys.argv = ["gcon", *arguments]
        if step is None:
            reached()
        else:
            stop_at(*step, reached)
        sys.modules["gcon.cli.app"].main()
    except SystemExit as stopped:
        code = stopped.code
    finally:
        os._exit(code)


def stop_at(target, call, when, reached):
    """Replace a function: its call of this number reports before, after, or after a half of its last argument."""
    module, _, path = target.partition(":")
    *outer, name = path.split(".")
    owner = importlib.import_module(module)
    for part in outer:
        owner = getattr(owner, part)
    original, calls = getattr(owner, name), 0

    def replaced(*arguments, **options):
        nonlocal calls
        calls += 1
        if calls == call and when == "before":
            reached()
        if calls == call and when == "half":
            *others, content = arguments
            arguments = (*others, content[: len(content) // 2])
        result = original(*arguments, **options)
        if calls == call and when in ("after", "half"):
            reached()
        return result

    setattr(owner, name, replaced)


# The tests' side.


@pytest.fixture(scope="module")
def server():
    """Runs `gcon` in a fresh child of the server; gives its exit code, and its seconds from the step on."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout.readline() == "ready\n"

        def run(folder, *arguments, kill=None, step=None):
            request = {"folder": str(folder), "arguments": arguments, "kill": kill, "step": step}
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            return answer["code"], answer["seconds"]

        yield run


@pytest.fixture
def train(server, folder):
    """`gcon train` on the files in the folder."""
    options = ["--edges", "edges.csv", "--nodes", "nodes.csv", "--epsilon", str(EPSILON), "--delta", str(DELTA)]

    def train(out="model", *, mechanism, **kill):
        return server(folder, "train", *options, "--method", mechanism, "--out", out, **kill)

    return train


@pytest.fixture(scope="module")
def made(server, tmp_path_factory):
    """The files of a small made-up graph."""
    folder = tmp_path_factory.mktemp("made")
    assert server(folder, "data", "make", "--out", ".", "--nodes", "120")[0] == 0
    return folder


@pytest.fixture
def folder(made, tmp_path):
    for name in ("edges.csv", "nodes.csv"):
        shutil.copy(made / name, tmp_path)
    return tmp_path


def whole_lines(folder: Path) -> list[dict]:
    """The ledger's lines, read without the code under test."""
    lines = (folder / LEDGER).read_bytes().split(b"\n")[:-1] if (folder / LEDGER).exists() else []
    return [json.loads(line) for line in lines]


def models_in(folder: Path) -> dict:
    """Every folder that can be read as a model; under its own name there is a whole one or none."""
    models = {}
    for place in filter(Path.is_dir, folder.iterdir()):
        try:
            models[place.name] = load_release(place)
        except ReleaseFormatError:
            assert place.name.startswith("."), f"a half model has the name {place.name}"
    return models


def inspect(folder: Path) -> tuple[list, dict]:
    """Check what must hold after every kill; gives the ledger's entries and the readable models."""
    models = models_in(folder)
    lines = whole_lines(folder)
    reserves = [line for line in lines if line["line"] == "reserve"]
    if not lines:
        assert not models
        assert not (folder / f"{LEDGER}.head").exists()
        return [], {}
    ledger = FileLedger(folder / LEDGER)
    found, entries = ledger.verify(), ledger.entries()
    assert found.ok, found.problem
    assert found.lines == len(lines)
    assert len(entries) == len(reserves)
    assert ledger.total().epsilon == EPSILON * len(reserves)
    assert ledger.total().delta == pytest.approx(DELTA * len(reserves))
    assert all(entry.request.cost == Budget(EPSILON, DELTA) for entry in entries)
    paid_by = set()
    for model in models.values():
        receipt = model.receipt
        number = round(receipt.total.epsilon / EPSILON) - 1  # one writer at a time: the total tells which entry paid
        assert entries[number].outcome in (Outcome.RESERVED, Outcome.RELEASED)  # settled when the model has its place
        assert entries[number].time == receipt.time
        assert entries[number].request.cost == receipt.budget
        later = {"releases": []} if "releases" in receipt.plan else {}  # which are known when they are made
        assert entries[number].request.plan == {**receipt.plan, **later}
        features = model.encoder.head_weight.new_ones(2, model.encoder.num_features)
        assert len(predict_without_edges(model, features).classes) == 2
        paid_by.add(number)
    assert len(paid_by) == len(models)
    return list(entries), models


def check_recovery(folder: Path, charged: int) -> None:
    """The next writer goes on where the killed one left the ledger."""
    ledger = FileLedger(folder / LEDGER, data_set="edges")
    request = Request(kind=Kind.RELEASE, mechanism="test", purpose="recovery", cost=Budget(EPSILON, DELTA))
    ledger.settle(ledger.reserve(request), Outcome.WITHHELD)
    found = ledger.verify()
    assert (found.ok, found.unfinished) == (True, False)
    assert ledger.total().epsilon == EPSILON * (charged + 1)


FILE, ACCOUNT, TRAIN = "os", "gcon.privacy.account", "gcon.cli.train"
LEDGER_FILE = "gcon.privacy.ledger_file"
STORE, WRITING, PAYING = "gcon.release.store", "gcon.writing", "gcon.cli.paying"
NONE, RESERVED, RELEASED = [], [Outcome.RESERVED], [Outcome.RELEASED]
# The step, which call of it, when; what the ledger holds then; whether the model has its name.
FIRST_STAGES = [
    (f"{TRAIN}:load_training", 1, "before", NONE, False),
    (f"{TRAIN}:load_training", 1, "after", NONE, False),
    (f"{LEDGER_FILE}:_write", 1, "half", NONE, False),  # the ledger's header
    (f"{FILE}:replace", 1, "before", NONE, False),
    (f"{FILE}:replace", 1, "after", NONE, False),
    (f"{LEDGER_FILE}:_write", 2, "half", NONE, False),  # the head of a new ledger
    (f"{FILE}:replace", 2, "before", NONE, False),
    (f"{FILE}:replace", 2, "after", NONE, False),
    (f"{TRAIN}:open_payment", 1, "after", NONE, False),
]
OWN_STAGES = {
    "paper": [
        ("gcon.methods.objective:train_encoder", 1, "before", NONE, False),
        ("gcon.methods.objective:train_encoder", 1, "after", NONE, False),
        ("gcon.methods.objective:Aggregates", 1, "after", NONE, False),
        ("gcon.methods.objective:make_plan", 1, "after", NONE, False),
    ],
    "moments": [
        ("gcon.methods.moments:learn_without_edges", 1, "before", NONE, False),
        ("gcon.methods.moments:learn_without_edges", 1, "after", NONE, False),
        ("gcon.methods.moments:mixed_plan", 1, "after", NONE, False),
        ("gcon.methods.moments:spend", 1, "after", NONE, False),
        ("gcon.methods.moments:graph_facts", 1, "before", RESERVED, False),  # between two releases
        ("gcon.methods.moments:graph_facts", 1, "after", RESERVED, False),
        (f"{ACCOUNT}:apply_private", 3, "before", RESERVED, False),
        (f"{ACCOUNT}:apply_private", 3, "after", RESERVED, False),
        (f"{ACCOUNT}:apply_private", 4, "before", RESERVED, False),  # the count of right answers
        (f"{ACCOUNT}:apply_private", 4, "after", RESERVED, False),
        (f"{ACCOUNT}:Account.__exit__", 1, "before", RESERVED, False),
        (f"{ACCOUNT}:Account.__exit__", 1, "after", RESERVED, False),
        ("gcon.methods.moments:train_student", 1, "before", RESERVED, False),
        ("gcon.methods.moments:train_student", 1, "after", RESERVED, False),
    ],
}
LATER_STAGES = [
    (f"{LEDGER_FILE}:FileLedger.reserve", 1, "before", NONE, False),
    (f"{LEDGER_FILE}:_write", 3, "before", NONE, False),
    (f"{LEDGER_FILE}:_write", 3, "half", NONE, False),  # a torn line was never acknowledged
    (f"{LEDGER_FILE}:_write", 3, "after", RESERVED, False),  # the head is behind: charged although nothing was opened
    (f"{LEDGER_FILE}:_write", 4, "half", RESERVED, False),
    (f"{FILE}:replace", 3, "before", RESERVED, False),
    (f"{FILE}:replace", 3, "after", RESERVED, False),
    (f"{LEDGER_FILE}:FileLedger.reserve", 1, "after", RESERVED, False),
    (f"{ACCOUNT}:apply_private", 1, "before", RESERVED, False),
    (f"{ACCOUNT}:apply_private", 1, "after", RESERVED, False),
    (f"{PAYING}:save_release", 1, "before", RESERVED, False),
    ("pathlib:Path.write_bytes", 1, "before", RESERVED, False),
    *(("pathlib:Path.write_bytes", number, "half", RESERVED, False) for number in range(1, 6)),
    ("pathlib:Path.write_bytes", 5, "after", RESERVED, False),
    (f"{STORE}:load_release", 1, "after", RESERVED, False),
    (f"{WRITING}:sync_folder", 1, "before", RESERVED, False),
    (f"{WRITING}:sync_folder", 1, "after", RESERVED, False),
    (f"{FILE}:rename", 1, "before", RESERVED, False),
    (f"{FILE}:rename", 1, "after", RESERVED, True),
    (f"{WRITING}:sync_folder", 2, "after", RESERVED, True),
    (f"{PAYING}:save_release", 1, "after", RESERVED, True),
    (f"{LEDGER_FILE}:FileLedger.settle", 1, "before", RESERVED, True),
    (f"{LEDGER_FILE}:_write", 5, "half", RESERVED, True),
    (f"{LEDGER_FILE}:_write", 5, "after", RELEASED, True),
    (f"{FILE}:replace", 4, "before", RELEASED, True),
    (f"{FILE}:replace", 4, "after", RELEASED, True),
    (f"{LEDGER_FILE}:FileLedger.settle", 1, "after", RELEASED, True),
    ("gcon.cli.output:Output.result", 1, "before", RELEASED, True),
]
# What both have in common is passed with the default, and at its ends with the other one.
STAGES = [("moments", *stage) for stage in [*FIRST_STAGES, *OWN_STAGES["moments"], *LATER_STAGES]] + [
    ("paper", *stage) for stage in [*OWN_STAGES["paper"], *LATER_STAGES[6:9], LATER_STAGES[-1]]
]


# Every step is a training of its own: those at which something is charged, settled or published are enough to wait for.
FAST = [
    (f"{LEDGER_FILE}:FileLedger.reserve", 1, "after"),
    (f"{LEDGER_FILE}:FileLedger.settle", 1, "after"),
    (f"{FILE}:rename", 1, "after"),
]


@pytest.mark.parametrize(
    ("mechanism", "target", "call", "when", "charged", "named"),
    [pytest.param(*stage, marks=[] if stage[1:4] in FAST else pytest.mark.slow) for stage in STAGES],
    ids=[f"{mechanism} {when} {target.rpartition('.')[2]} {call}" for mechanism, target, call, when, _, _ in STAGES],
)
def test_killed_at_a_named_step(train, folder, mechanism, target, call, when, charged, named):
    code, _ = train(kill="at", step=(target, call, when), mechanism=mechanism)
    assert code == -signal.SIGKILL, "the step was not reached"
    entries, models = inspect(folder)
    assert [entry.outcome for entry in entries] == charged
    assert ("model" in models) == named
    check_recovery(folder, len(charged))


AFTER_RESERVE = (f"{LEDGER_FILE}:FileLedger.reserve", 1, "after")
MOMENTS = 9


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["moments", "paper"])
@pytest.mark.parametrize("step", [*[None] * 2, AFTER_RESERVE], ids=[*["whole run"] * 2, "after reserve"])
def test_killed_at_random_moments(train, folder, step, mechanism):
    """Moments spread over what a run takes (from the step on), with jitter: for either mechanism 18 over
    whole runs, and 9 after the reserve.

    All runs of one test pay one ledger, so each starts from what the killed ones before it left. A run that was faster
    than its moment is checked too, but does not count.
    """
    code, length = train("first", step=step, mechanism=mechanism)
    assert code == 0
    killed, charged, numbers = 0, 1, count()
    while killed < MOMENTS:
        out, moment = f"model{next(numbers)}", (killed + random.random()) / MOMENTS * length
        code, _ = train(out, kill=moment, step=step, mechanism=mechanism)
        assert code in (0, -signal.SIGKILL), f"killed after {moment} s of {length} s"
        entries, models = inspect(folder)
        assert charged + (step is not None) <= len(entries) <= charged + 1
        assert code != 0 or out in models
        killed, charged = killed + (code != 0), len(entries)
        length = moment if code == 0 else length  # this run was faster

    assert train("last", mechanism=mechanism)[0] == 0
    entries, models = inspect(folder)
    assert (len(entries), entries[-1].outcome) == (charged + 1, Outcome.RELEASED)
    assert "last" in models


if __name__ == "__main__":
    serve()
