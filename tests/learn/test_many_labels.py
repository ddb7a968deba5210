"""More labelled nodes than are looked at at once: rounds of steps instead of one step over everything."""

import itertools
from dataclasses import replace

import pytest
import torch

from gcon.learn import perceptron
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.learn.sample import sampled
from gcon.nodes import PublicNodes

SETTINGS = EncoderSettings(hidden=8, epochs=40)


@pytest.fixture
def small_rounds(monkeypatch):
    """Rounds of 512 rows in steps of 64: what is many starts at 513."""
    monkeypatch.setattr(perceptron, "MANY_ROWS", 512)
    monkeypatch.setattr(perceptron, "_STEP_ROWS", 64)
    monkeypatch.setattr(perceptron, "_RUN_ROWS", 16)


def table(validation: float = 0.2, size: int = 4000) -> PublicNodes:
    """Two clouds a class, and the nodes in the order of their classes: as unkind as an order can be."""
    generator = torch.Generator().manual_seed(5)
    labels = torch.randint(0, 4, (size,), generator=generator).sort().values
    clouds, cloud = torch.randn(4, 2, 12, generator=generator), torch.randint(0, 2, (size,), generator=generator)
    features = clouds[labels, cloud] + 0.8 * torch.randn(size, 12, generator=generator)
    part = torch.rand(size, generator=generator)
    return PublicNodes(
        features=features,
        labels=labels,
        num_classes=4,
        train_mask=part < 0.5,
        validation_mask=(part >= 0.5) & (part < 0.5 + validation),
        test_mask=part >= 0.7,
    )


class Watched(torch.Tensor):
    """Features that remember how many rows were asked for at once."""

    largest = 0

    def __getitem__(self, chosen):
        part = self.as_subclass(torch.Tensor)[chosen]
        Watched.largest = max(Watched.largest, len(part))
        return part


def same(first, second):
    return all(
        torch.equal(getattr(first, name), getattr(second, name))
        for name in ("hidden_weight", "hidden_bias", "head_weight", "head_bias", "centre")
    )


def accuracy(encoder, nodes):
    found = encoder.classes(nodes.features)
    return float((found == nodes.labels)[nodes.test_mask].double().mean())


@pytest.mark.slow
@pytest.mark.parametrize("validation", [0.2, 0.0])
def test_steps_learn_what_everything_at_once_teaches(monkeypatch, validation):
    nodes = table(validation)
    whole = accuracy(train_encoder(nodes, replace(SETTINGS, epochs=300)), nodes)
    with monkeypatch.context() as patch:
        patch.setattr(perceptron, "MANY_ROWS", 512)
        patch.setattr(perceptron, "_STEP_ROWS", 64)
        patch.setattr(perceptron, "_RUN_ROWS", 16)
        steps = accuracy(train_encoder(nodes, replace(SETTINGS, epochs=100)), nodes)
    assert whole > 0.8
    assert steps > whole - 0.02


def test_the_seed_decides_on_everything(small_rounds):
    nodes = table()
    torch.manual_seed(1)
    first = train_encoder(nodes, SETTINGS)
    torch.manual_seed(2)
    assert same(first, train_encoder(nodes, SETTINGS))
    assert not same(first, train_encoder(nodes, replace(SETTINGS, seed=1)))


def test_features_on_disk_train_alike(small_rounds, tmp_path):
    nodes = table()
    torch.save(nodes.features, tmp_path / "x")
    mapped = torch.load(tmp_path / "x", mmap=True, weights_only=True)
    assert same(train_encoder(nodes, SETTINGS), train_encoder(replace(nodes, features=mapped), SETTINGS))


def test_no_more_than_a_round_is_read_at_once(small_rounds, monkeypatch):
    monkeypatch.setattr("gcon.learn.encoder._BATCH_ROWS", 300)
    nodes = table()
    watched = replace(nodes, features=nodes.features.as_subclass(Watched))
    Watched.largest = 0
    train_encoder(watched, replace(SETTINGS, epochs=3))
    assert 0 < Watched.largest <= 512


def test_few_labelled_nodes_train_as_ever(monkeypatch):
    nodes = table()
    count = int(nodes.train_mask.sum())
    expected = train_encoder(nodes, SETTINGS)
    monkeypatch.setattr(perceptron, "MANY_ROWS", count)
    assert same(train_encoder(nodes, SETTINGS), expected)
    monkeypatch.setattr(perceptron, "MANY_ROWS", count - 1)
    assert not same(train_encoder(nodes, SETTINGS), expected)


def test_every_labelled_row_takes_its_turn(small_rounds):
    labelled, nobody = (
        torch.arange(3000) % 2 == 0,
        torch.zeros(3000, dtype=torch.bool),
    )  # 1500: 94 runs, the last one short
    nodes = PublicNodes(
        features=torch.arange(3000.0)[:, None],
        labels=torch.arange(3000),
        num_classes=3000,
        train_mask=labelled,
        validation_mask=nobody,
        test_mask=nobody,
    )
    rounds = perceptron._rounds(nodes, "nothing", "cpu", torch.Generator().manual_seed(0))
    found = list(itertools.islice(rounds, 3))
    found = [[(rows, wanted.argmax(dim=1)) for rows, wanted in steps] for steps in found]
    rows, labels = (torch.cat([step[part] for steps in found for step in steps]) for part in (0, 1))
    assert torch.equal(rows[:, 0].long(), labels)
    assert set(labels.tolist()) == set(range(0, 3000, 2))
    assert all(len(steps) == 8 and all(32 <= len(rows) <= 64 for rows, _ in steps) for steps in found[:2])
    spread = [float(labels.double().std()) for steps in found for _, labels in steps]
    assert min(spread) > 3000 / 12**0.5 / 2  # no step sees one corner of the table only


def test_validation_rows_are_drawn_once_there_are_many():
    found = sampled(4000, 512, seed=3)
    assert len(found) == 512
    assert torch.equal(found, found.unique())
    assert set(found.tolist()) <= set(range(4000))
    assert torch.equal(found, sampled(4000, 512, seed=3))
    assert not torch.equal(found, sampled(4000, 512, seed=4))
    assert sampled(512, 512, seed=3).tolist() == list(range(512))
    assert sampled(5, 512, seed=3).tolist() == list(range(5))
