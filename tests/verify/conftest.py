"""Honest releases of both methods, and forgers who recompute every checksum."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import shutil
from datetime import UTC, datetime
from unittest.mock import patch

import pytest
from safetensors.torch import load_file, save_file
from tests.counted import counted
from tests.labelled import labelled_circles

from gcon.edges.edge_list import private_edges
from gcon.edges.schemes import Schemes
from gcon.errors import ReleaseFormatError
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.learn.perceptron import EncoderSettings
from gcon.methods.moments import Moments
from gcon.methods.objective import Objective
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SystemRandomness
from gcon.release import read
from gcon.release.layout import canonical, release_files
from gcon.release.read import load_release
from gcon.release.store import save_release


def _circles(**options):
    return social_circles_parts(100, num_classes=3, mean_degree=18, num_features=6, per_class=8, seed=1, **options)


@pytest.fixture(scope="session")
def circles():
    return _circles()


def _ledger():
    return MemoryLedger("circles", clock=lambda: datetime(2030, 1, 2, tzinfo=UTC))


@pytest.fixture(scope="session")
def moments_release(circles, tmp_path_factory):
    """Trains and stores our own method.

    Noise decides which branch is taken, so with `tables` again until there are so many, and until the count of right answers
    is so large that own edges must be used.
    """

    def wanted(model, tables, one_way):
        right, margin = model.right, model.receipt.plan["releases"][-1]["standard_deviation"]
        kinds = [each.one_way for each in model.tables]
        return kinds == [one_way] * tables and (right is None or right > model.asked - margin + 3)

    def make(epsilon=1.0, *, parts=None, sparse=True, tables=None, one_way=False, randomness=None, **options):
        nodes, edges = parts or circles
        kept = private_edges(edges[:, ::10] if sparse else edges, nodes.num_nodes)[0]
        method, model = Moments(epsilon=epsilon, **options), None
        for _ in range(60):
            with counted():
                model = method.train(nodes, kept, ledger=_ledger(), randomness=randomness or SystemRandomness())
            if tables is None or wanted(model, tables, one_way):
                break
        assert tables is None or wanted(model, tables, one_way)
        folder = tmp_path_factory.mktemp("moments") / "release"
        save_release(model, folder)
        return folder

    return make


@pytest.fixture(scope="session")
def vague():
    """Features say nothing, so answers are unsure, and a second table is bought."""
    return _circles(feature_signal=0)


@pytest.fixture(scope="session")
def labelled():
    """So many labels that nobody else is counted."""
    return labelled_circles()


@pytest.fixture(scope="session")
def unasked():
    """Nobody to ask: there is no count of right answers. Answers are sure without it, so there is one table."""
    return _circles(num_validation=0, feature_signal=3.0)


@pytest.fixture(scope="session")
def paper_release(circles, tmp_path_factory):
    """Trains and stores the paper's method."""

    def make(epsilon=1.0, *, randomness=None, **options):
        nodes, edges = circles
        options = {"encoder": EncoderSettings(hidden=4, epochs=5), "schemes": Schemes(0.5, (0, 2, math.inf)), **options}
        model = Objective(epsilon=epsilon, **options).train(
            nodes,
            private_edges(edges, nodes.num_nodes)[0],
            ledger=_ledger(),
            randomness=randomness or SystemRandomness(),
        )
        folder = tmp_path_factory.mktemp("paper") / "release"
        save_release(model, folder)
        return folder

    return make


@pytest.fixture(scope="session")
def releases(moments_release, paper_release, vague, labelled):
    """One of each kind: moments twice, with one table of neighbour counts, with two, with a one-way one, the paper's."""
    return {
        "moments": moments_release(tables=0),
        "counts": moments_release(8.0, sparse=False, tables=1),
        "counts twice": moments_release(8.0, parts=vague, sparse=False, tables=2),
        "one-way counts": moments_release(8.0, parts=labelled, sparse=False, tables=1, one_way=True),
        "paper": paper_release(),
    }


class Forger:
    """A copy of a release in which things can be changed; every checksum is made right again."""

    def __init__(self, source, folder) -> None:
        self.folder = folder
        shutil.copytree(source, folder)
        self._honest = {path.name: path.read_bytes() for path in folder.iterdir()}

    def restore(self):
        for name, content in self._honest.items():
            (self.folder / name).write_bytes(content)

    def document(self, name="release.json"):
        return json.loads(self._honest[name])

    def tensors(self):
        return load_file(self.folder / "model.safetensors")

    def put_document(self, document):
        """Write release.json with all checksums right."""
        document = copy.deepcopy(document)
        for name in document["files"]:
            content = (self.folder / name).read_bytes()
            document["files"][name] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
        document.pop("checksum")
        whole = document | {"checksum": hashlib.sha256(canonical(document)).hexdigest()}
        (self.folder / "release.json").write_bytes(canonical(whole))

    def put_text(self, name, content):
        (self.folder / name).write_bytes(content)
        self.put_document(self.document())

    def put_tensors(self, tensors):
        save_file(
            {name: tensor.clone().contiguous() for name, tensor in tensors.items()}, self.folder / "model.safetensors"
        )
        self.put_document(self.document())

    def put_consistently(self, document):
        """Write release.json, and every word and field of the other files as this document leads to."""
        self.put_document(document)
        try:
            with patch.object(read, "texts", lambda model: {}):  # the words follow below
                model = load_release(self.folder)
        except ReleaseFormatError:
            return  # refused whatever the words say
        for name, content in release_files(model).items():
            (self.folder / name).write_bytes(content)


@pytest.fixture
def forger(tmp_path):
    def forger(source):
        return Forger(source, tmp_path / "forged")

    return forger
