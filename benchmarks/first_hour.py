"""A newcomer's first hour, on a machine with nothing but Python, git and make: every word printed, every step timed.

    python3 benchmarks/first_hour.py [--from REPOSITORY] [--folder FOLDER] [--short]

Clones the repository into a folder of its own (deleted in the end, unless --folder names it), and then: the demo; tables as
people have them, with ids that are words and columns of text; a training that refuses the text and says what to do; report,
statement, ledger; a service that is asked; and the same in Python, from a pandas frame and from a networkx graph. Commands run
as they are printed, with `.venv` activated. Exits with 1 if one ends otherwise than it should; some should be refused.
--short leaves out clone, installation and demo, and uses the gcon and the python on the PATH.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
CLUBS = ("chess", "choir", "climbing")
CITIES = ("Aarhus", "Bergen", "Cork", "Delft")
PEOPLE = 600

FRAME = """
import gcon, pandas

people = pandas.read_csv("people.csv", index_col="id")
friends = pandas.read_csv("friends.csv")
columns = people[["age", "hours", "distance", "city"]]
model = gcon.NodeClassifier(epsilon=1.0).fit(
    columns, people["label"], edges=friends, train_mask=people["split"] == "train", validation_mask=people["split"] == "val",
    categorical=["city"], name="club friends, in Python",
)
print(model)
found = pandas.Series(model.predict(columns, access="cached"), index=people.index)
test = people["split"] == "test"
print(found[test].head(3).to_string())
print(f"right, of the test nodes: {(found[test] == people['label'][test]).mean():.3f}")
gcon.save_release(model.model_, "model-of-a-frame")
print(gcon.load("model-of-a-frame").model_)
"""
NETWORKX = """
import csv, gcon, networkx

with open("friends.csv") as file:
    graph = networkx.Graph((row["source"], row["target"]) for row in csv.DictReader(file))
with open("people.csv") as file:
    for row in csv.DictReader(file):
        numbers = [float(row[name]) for name in ("age", "hours", "distance")]
        graph.add_node(row["id"], x=numbers, y=row["label"], split=row["split"])
model = gcon.NodeClassifier(epsilon=1.0).fit(graph, name="club friends, from networkx")
labels = model.predict(graph, access="own-edges")
print(dict(zip(sorted(graph)[:3], labels[:3].tolist())), "for their owners only")
print(model.statement())
"""
ASK = """
import csv
from gcon.serve.client import Client

(row,) = csv.DictReader(open("tokens.csv"))
with Client("http://127.0.0.1:8123", token=row["token"]) as client:
    print(client.me(row["node"]))
    print(client.statement()["epsilon"])
"""


@dataclass(frozen=True)
class Step:
    """What is typed, and how it must end."""

    what: str
    command: str
    code: int = 0


def installing(source: str) -> Iterator[Step]:
    """From nothing to a command that works."""
    yield Step("what is here", "python3 --version; make --version | head -n 1; git --version")
    yield Step("clone", f"git clone --quiet {source} gcon")
    yield Step("install what the demo needs, and run it", "cd gcon && make demo")
    yield Step("how large is that", "gcon/.venv/bin/pip list --format=freeze | wc -l; du -sm gcon/.venv")
    yield Step("install the command", 'cd gcon && pip install --quiet -c constraints.txt -e ".[cli]"')


def own_tables() -> Iterator[Step]:
    """A table with words in it, up to a service."""
    files = "--nodes people.csv --edges friends.csv"
    train = f"gcon train {files} --epsilon 1 --name 'club friends' --out model"
    yield Step("the tables", "head -n 3 people.csv friends.csv")
    yield Step("train, and be told about the words", train, code=2)
    yield Step("train as the message says", f"{train} --categorical city --drop note")
    yield Step("how good are answers to publish", f"gcon evaluate model {files} --access cached")
    yield Step(
        "answers to publish",
        "gcon predict model --nodes people.csv --access cached --out labels.csv; head -n 3 labels.csv",
    )
    yield Step("a report", f"gcon report model {files}")
    yield Step("the promise, checked", "gcon statement model --verify")
    yield Step("what is spent", "gcon ledger show friends.csv.ledger")


def service(*, installs: bool) -> Iterator[Step]:
    """Asked by the owner of one node."""
    if installs:
        yield Step("a service, and what it lacks", "gcon serve model", code=8)
        yield Step("what the message says", "pip install --quiet 'gcon[serve]'")
    yield Step(
        "a token for one person",
        "gcon serve tokens issue tokens.sqlite --nodes people.csv --node p0017 --out tokens.csv",
    )
    serve = "gcon serve model --nodes people.csv --edges friends.csv --tokens tokens.sqlite --port 8123"
    wait = 'until grep -q Listening service.log; do kill -0 "$service" || break; sleep 0.2; done'
    ask = "cat service.log; python ask.py; ended=$?; kill $service; exit $ended"
    yield Step("serve, and ask as that person", f"{serve} > service.log 2>&1 & service=$!; {wait}; {ask}")


def in_python(*, installs: bool) -> Iterator[Step]:
    """The same from a frame and from networkx."""
    if installs:
        yield Step("pandas, which gcon does not need", "pip install --quiet pandas")
    yield Step("from a pandas frame", "cat frame.py; python frame.py")
    yield Step("from a networkx graph", "cat from_networkx.py; python from_networkx.py")


def write_tables(folder: Path) -> None:
    """People in clubs: numbers, a city, a note, ids that are words; friends mostly of the same club."""
    draw = random.Random(1)
    clubs = [index % len(CLUBS) for index in range(PEOPLE)]
    splits = ["train"] * 60 + ["val"] * 150 + ["test"] * (PEOPLE - 210)
    draw.shuffle(splits)
    with (folder / "people.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "label", "split", "age", "hours", "distance", "city", "note"])
        for index, club in enumerate(clubs):
            numbers = [f"{draw.gauss(mean, 1.5):.2f}" for mean in (club, -club, club * (2 - club))]
            city = CITIES[club if draw.random() < 0.4 else draw.randrange(len(CITIES))]
            table.writerow(
                [f"p{index:04d}", CLUBS[club], splits[index], *numbers, city, f"met us in {draw.randint(1990, 2020)}"]
            )
    friends: set[tuple[int, int]] = set()
    while len(friends) < 12 * PEOPLE:
        first, second = draw.randrange(PEOPLE), draw.randrange(PEOPLE)
        if first != second and draw.random() < (0.8 if clubs[first] == clubs[second] else 0.2):
            friends.add((min(first, second), max(first, second)))
    with (folder / "friends.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["source", "target"], *([f"p{a:04d}", f"p{b:04d}"] for a, b in sorted(friends))])
    for name, text in (("frame.py", FRAME), ("from_networkx.py", NETWORKX), ("ask.py", ASK)):
        (folder / name).write_text(text.lstrip())


def run(step: Step, folder: Path, environment: dict[str, str]) -> tuple[float, bool]:
    """Seconds, and whether it ended as it should."""
    print(f"\n### {step.what}\n$ {step.command}", flush=True)
    start = time.perf_counter()
    words = ["bash", "-c", step.command]
    code = subprocess.run(words, cwd=folder, env=environment, stderr=subprocess.STDOUT, check=False).returncode
    seconds = time.perf_counter() - start
    meant = "" if code == step.code else f", but {step.code} was meant"
    print(f"({seconds:.1f} s, exit code {code}{meant})", flush=True)
    return seconds, code == step.code


def main() -> int:
    """Play the hour; 1 if a step went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="source", default=str(HERE))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--short", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = (given.folder or Path(scratch)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        ours = ("PYTHON", "OMP_", "MKL_", "VIRTUAL_ENV", "GCON_")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(ours) or given.short}
        environment["XDG_STATE_HOME"] = str(folder / "state")
        if not given.short:
            environment["PATH"] = f"{folder / 'gcon' / '.venv' / 'bin'}:{environment['PATH']}"
        write_tables(folder)
        installs = not given.short
        steps = [*own_tables(), *service(installs=installs), *in_python(installs=installs)]
        if installs:
            steps = [*installing(given.source), *steps]
        times = [(step, *run(step, folder, environment)) for step in steps]
    print("\n| step | seconds |\n|---|---|")
    for step, seconds, well in times:
        print(f"| {step.what}{'' if well else ' (**not as it should**)'} | {seconds:.1f} |")
    print(f"| in all | {sum(seconds for _, seconds, _ in times):.1f} |")
    return 0 if all(well for *_, well in times) else 1


if __name__ == "__main__":
    sys.exit(main())
