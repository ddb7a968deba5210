"""Everything that can be seen of a run but the released numbers, on neighbouring graphs.

`watched_runs.py` runs the verbs and writes down what was told, touched, left behind and kept. Training is compared with the
same forced noise, less the noisy numbers. Then all verbs are compared with what the gate gives held equal, so that nothing
is left out: every byte must be the same. Time is not compared: `benchmarks/timing_channel.py` measures it.
"""

import json
import os
import pickle
import re
import struct
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import polars
import pytest
import torch

from gcon import GCON, NodeClassifier
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.methods.method import PrivateMethod
from gcon_lab.methods import METHODS

NODES = 90
FILES = ["--edges", "edges.csv", "--nodes", "nodes.csv"]
TRAIN = ["train", *FILES, "--epsilon", "4", "--method"]
OWN = [*FILES, "--access", "own-edges"]
FORCED = [[*TRAIN, "moments", "--out", "moments"], [*TRAIN, "paper", "--out", "paper", "--json"]]  # forced noise
VERBS = [  # the rest: the released numbers are held equal
    *FORCED,
    [*TRAIN, "moments", "--out", "m", "--json"],
    [*TRAIN, "paper", "--out", "p"],
    ["predict", "m", *OWN, "--out", "m.csv"],
    ["predict", "p", *OWN, "--out", "p.parquet", "--json"],
    ["evaluate", "m", *OWN, "--json"],
    ["evaluate", "p", *OWN],
    ["evaluate", "p", *OWN, "--paid", "1", "--json"],
    ["advise", *FILES, "--epsilon", "2", "--look", "1", "--json"],
    ["advise", *FILES, "--epsilon", "2", "--look", "1"],
]
TUNE = [["tune", *FILES, "--epsilon", "1", "--pay", "0.5", "--draws", "1", "--out", "chosen.toml", "--json"]]
SMALL = {"epochs": "2", "rounds": "1", "members": "1"}


def baselines() -> list[list[str]]:
    """Every competitor, with few epochs where it can be told so."""
    calls = []
    for name, kind in METHODS.items():
        budget = ["--epsilon", "4"] if issubclass(kind, PrivateMethod) else []
        known = {entry.name for entry in fields(kind)}
        small = [f"--set={setting}={value}" for setting, value in SMALL.items() if setting in known]
        calls.append(["baseline", name, *FILES, *budget, *small, "--json"])
    return calls


# The graphs: public nodes that never change, and one edge more or less.


def graphs() -> dict[str, list[tuple[int, int]]]:
    """A graph and its neighbours. Node 0 has no edge in it, and node 1 has more than any other."""
    _, index = social_circles_parts(NODES, mean_degree=6, seed=3)
    pairs = sorted({tuple(sorted(pair)) for pair in index.T.tolist() if 0 not in pair and pair[0] != pair[1]})
    hub = [(1, other) for other in range(2, 40) if (1, other) not in pairs]
    base = sorted({*pairs, *hub[:-1]})
    degrees = torch.tensor(base).flatten().bincount(minlength=NODES)
    assert (int(degrees[0]), int(degrees.argmax())) == (0, 1)
    alone = next(pair for pair in base if 1 in degrees[list(pair)].tolist())  # without it there is one component more
    new = next((2, other) for other in range(3, NODES) if (2, other) not in base)
    middle = len(base) // 2
    return {
        "base": base,
        "without the first edge": base[1:],
        "without the last edge": base[:-1],
        "without a middle edge": base[:middle] + base[middle + 1 :],
        "one edge at a new pair": [*base, new],
        "one edge at a node without any": [*base, (0, 5)],
        "a larger largest degree": [*base, hub[-1]],
        "one component more": [pair for pair in base if pair != alone],
        "one edge alone": base[:1],
        "no edge": [],
        "written otherwise": [(b, a) for a, b in reversed(base)] + base[:7] + [(4, 4)],
    }


GRAPHS = graphs()
MAIN = "without a middle edge"
NEIGHBOURS = [(name, "one edge alone" if name == "no edge" else "base") for name in GRAPHS if name != "base"]
NEIGHBOURS = [pair for pair in NEIGHBOURS if pair[0] not in ("one edge alone", "written otherwise")]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Watches commands on one of the graphs in a fresh folder; gives what was seen."""
    place = tmp_path_factory.mktemp("watched")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    script = Path(__file__).with_name("watched_runs.py")
    with subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout.readline() == "ready\n"

        def ask(**request):
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        def watch(graph, commands, held=None, **options):
            if held is not None:
                options["released"] = str(place / f"{held}.pickle")
            # Folders of one name in places of one length: a path's length must not tell two runs apart.
            folder = place / f"{len(list(place.glob('*'))):05d}" / "work"
            folder.mkdir(parents=True)
            (folder / "nodes.csv").write_bytes(nodes)
            lines = "".join(f"{source},{target}\n" for source, target in GRAPHS[graph])
            (folder / "edges.csv").write_text("source,target\n" + lines)
            report = folder.parent / "report"
            answer = ask(folder=str(folder), commands=commands, report=str(report), **options)
            assert answer == "0", report.read_bytes()[-4000:].decode(errors="replace")
            return pickle.loads(report.read_bytes())

        nodes = node_table()
        watch("base", [["version"]], keep_nodes=str(place / "nodes.pickle"))
        assert ask(nodes=str(place / "nodes.pickle")) == "0"
        yield watch


def node_table() -> bytes:
    nodes, _ = social_circles_parts(NODES, num_classes=3, num_features=8, per_class=8, seed=3)
    split = ["train" if train else "validation" if row % 3 else "test" for row, train in enumerate(nodes.train_mask)]
    header = ["id", "label", "split", *(f"x{column}" for column in range(8))]
    rows = [
        [str(row), str(int(nodes.labels[row])), split[row], *map(str, nodes.features[row].tolist())]
        for row in range(NODES)
    ]
    return "\n".join(map(",".join, [header, *rows])).encode() + b"\n"


@pytest.fixture(scope="module")
def watched(server):
    """What was seen of all verbs on a graph; each is run once."""
    seen = {}

    def watched(graph):
        if graph not in seen:
            held = {"one edge alone": "one", "no edge": "one", "written otherwise": "other"}.get(graph, "base")
            seen[graph] = server(graph, VERBS, held=held, forced=len(FORCED))
        return seen[graph]

    return watched


# The comparison: every channel, less the numbers that were released with forced noise.


def visible(name: str, content: bytes | str | None):
    """A file less what forced noise made: of tensors remain names, types and shapes.

    On dense graphs moments choose their second release from released numbers, so neighbours could differ in having the
    tensor `cached`. With the same noise and these graphs they do not. How many regressions there are is chosen from released
    counts, and whether own edges are used from a noisy one.
    """
    folder, _, file = name.partition("/")
    if name in KEYED:
        return re.sub(rb'[0-9a-f]{128}|"/[^"]*/', b"#", content) if name.endswith("seen") else len(content)
    if name in ANSWERS:
        return answered(content)
    if folder not in ("moments", "paper", "model"):
        return content
    if file == "model.safetensors":
        (length,) = struct.unpack("<Q", content[:8])
        tensors = json.loads(content[8 : 8 + length])
        chosen = ("weights", "regressions") if "regressions" in tensors else ()
        return {name: (each["dtype"], each["shape"][name in chosen :]) for name, each in tensors.items()}
    if file == "release.json":
        document = json.loads(content)
        del document["checksum"]
        if "statistics" in document["settings"]:  # of moments
            for noisy in ("homophily", "right", "own_edges", "gain", "lean", "voice", "regressions"):
                del document["settings"][noisy]
            del document["files"]["model.safetensors"]["size"], document["files"]["README.md"]["size"]
        for entry in document["files"].values():
            del entry["sha256"]
        return document
    if file == "README.md":
        content = content.replace(b"\nOwn edges were no help here: `own-edges` gives what `cached` gives.", b"")
        return re.sub(rb"(edges inside a class, cautiously estimated: )0\.\d\d\.", rb"\1#", content)
    return content


KEYED = ("state/gcon/edges.key", "state/gcon/edges.seen")  # of the operator: a random key, and fingerprints under it
ANSWERS = ("m.csv", "p.parquet")  # each row from its owner's own edges, for the owner: written inside the gate


def answered(content: bytes):
    """A table of answers for owners less the answers: columns, types, and whose row is where, for whose eyes."""
    table = polars.read_parquet(content) if content[:4] == b"PAR1" else polars.read_csv(content)
    return table.schema, table["id"].to_list(), table["audience"].to_list()


def channels(commands: list[list[str]], seen: dict) -> dict:
    """Everything that must not depend on an edge, by the name of its channel."""
    found = {}
    for number, (command, one) in enumerate(zip(commands, seen["commands"], strict=True)):
        found |= {(channel, f"{number} {' '.join(command[:2])}"): value for channel, value in one.items()}
    for name, (*facts, content) in seen["files"].items():
        found["files", name] = (facts, visible(name, content))
    for channel in ("state", "alive"):
        found |= {(channel, name): value for name, value in seen[channel].items()}
    return found | {(name, "held at the end"): seen[name] for name in HELD}


HELD = ("open files", "mapped files", "shared memory")
NOTHING = object()


def differences(commands: list[list[str]], one: dict, other: dict) -> dict:
    """The channels in which two runs differ."""
    first, second = channels(commands, one), channels(commands, other)
    return {
        name: (first.get(name), second.get(name))
        for name in {**first, **second}
        if first.get(name, NOTHING) != second.get(name, NOTHING)
    }


def check_quiet(seen: dict) -> None:
    """Nothing is held or left behind, whatever the graph."""
    assert {name: seen[name] for name in HELD} == {name: [] for name in HELD}
    assert not [name for name in seen["files"] if name.startswith(("tmp/", "home/")) and name != "tmp/polars"]
    assert not {"EdgeList", "EdgeHygiene", "Private", "PrivateGraph", "LoadedGraph"} & set(seen["alive"])


@pytest.mark.parametrize(
    ("graph", "neighbour"),
    [pytest.param(*pair, id=pair[0], marks=[] if pair[0] == MAIN else pytest.mark.slow) for pair in NEIGHBOURS],
)
def test_nothing_but_noisy_numbers_differs(watched, graph, neighbour):
    other, one = watched(neighbour), watched(graph)
    assert [command["exit code"] for command in one["commands"]] == [0] * len(VERBS)
    assert differences(VERBS, one, other) == {}
    for model in ("moments", "paper"):  # the test can see a difference
        name = f"{model}/model.safetensors"
        assert one["files"][name] != other["files"][name]


@pytest.mark.parametrize("graph", ["base", pytest.param("no edge", marks=pytest.mark.slow)])
def test_nothing_is_left_or_held(watched, graph):
    check_quiet(watched(graph))


@pytest.mark.slow
def test_how_the_edges_are_written_changes_no_byte(watched):
    """Other order, other direction, repeats and a loop: every file and every printed word is the same."""
    one, other = watched("base"), watched("written otherwise")
    first, second = ({name: each for name, each in run["files"].items() if name not in KEYED} for run in (one, other))
    assert first == second
    assert one["commands"] == other["commands"]
    assert differences(VERBS, one, other) == {}


@pytest.mark.slow
@pytest.mark.parametrize("commands", [TUNE, baselines()], ids=["tune", "baselines"])
def test_tuning_and_competitors_tell_nothing_else(server, commands):
    held = commands[0][0]
    one, other = (server(graph, commands, held=held) for graph in ("base", "without a middle edge"))
    assert [command["exit code"] for command in one["commands"]] == [0] * len(commands)
    for run in (one, other):
        for (_, method, *_), command in zip(commands, run["commands"], strict=True):
            if method == "dpgcn":  # draws noise for every edge: that shows in its time alone
                command["random bytes"] = "#"
    assert differences(commands, one, other) == {}
    check_quiet(one)


# The comparison itself: a run that leaks through every channel at once.

LEAKS = {
    ("exit code", "0 train {}"),
    ("standard output", "0 train {}"),
    ("standard error", "0 train {}"),
    ("logs", "0 train {}"),
    ("warnings", "0 train {}"),
    ("progress", "0 train {}"),
    ("touched files", "0 train {}"),
    ("random bytes", "0 train {}"),
    ("files", "tmp/size"),
    ("files", "tmp/mode"),
    ("files", "edges.csv.ledger"),
    ("files", "model/model.safetensors"),
    ("state", "gcon.mechanisms.influence._EXTENTS"),
    ("state", "gcon.learn.edge_free.by_edges"),
}


@pytest.fixture(scope="module", params=["moments", pytest.param("paper", marks=pytest.mark.slow)])
def leaky(server, request):
    commands = [[*TRAIN, request.param, "--out", "model"]]
    runs = [server(graph, commands, leaky=True) for graph in ("base", "without a middle edge")]
    for name in {name for run in runs for name in run["shared memory"] if name.startswith("gcon-test-")}:
        Path("/dev/shm", name).unlink()
    return commands, runs


def test_every_leak_is_found(leaky):
    commands, runs = leaky
    found = differences(commands, *runs)
    missed = {(channel, name.format(commands[0][1])) for channel, name in LEAKS} - set(found)
    assert not missed
    assert [name for channel, name in found if channel == "files" and name.startswith("cache/name-")]
    assert [name for channel, name in found if channel == "alive" and name.startswith("tensor")]
    loggers = {record[0] for record in runs[0]["commands"][0]["logs"]}
    assert {"gcon.leak", "torch.leak"} <= loggers


def test_what_is_held_is_found(leaky):
    for run in leaky[1]:
        assert all(run[name] for name in HELD)
        assert "EdgeList" in run["alive"]
        with pytest.raises(AssertionError):
            check_quiet(run)


# Fitted estimators.


class Stored(pickle.Pickler):
    """Torch writes memory addresses beside a tensor's numbers; this writes type and shape alone."""

    def reducer_override(self, value):
        if isinstance(value, torch.Tensor):
            return str, (f"{value.dtype} {tuple(value.shape)}",)
        return NotImplemented


def stored(value, path: Path) -> bytes:
    with path.open("wb") as file:
        Stored(file).dump(value)
    return path.read_bytes()


@pytest.mark.parametrize("kind", [NodeClassifier, lambda **options: GCON(hidden=4, epochs=5, **options)])
def test_fitted_estimators_have_the_same_face(neighbours, kind, tmp_path):
    faces = []
    for graph in neighbours.pairs:
        model = kind(random_state=5).fit(graph)
        object.__setattr__(model.model_.receipt, "time", "now")
        shape = re.sub(r"[-+\d.e\s]+", "", repr(model.model_))  # words and brackets; the numbers are released
        faces.append((set(vars(model)), repr(model), shape, len(stored(vars(model), tmp_path / "stored"))))
    assert all(face == faces[0] for face in faces)
