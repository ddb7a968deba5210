"""Parts of the nodes that keep the graph whole, and scores that say what they cost."""

import math
from dataclasses import replace

import numpy as np
import pytest

import gcon
from gcon.errors import InputError
from gcon.model_selection import node_folds, split_nodes
from gcon.privacy.budget import NOTHING, Budget

LABELS = np.array([*"aaaaaaaabbbbbbbbbbbb", None, None], dtype=object)  # 8, 12 and two without


def counts(mask):
    return {name: int((LABELS[mask] == name).sum()) for name in ("a", "b")}


def test_a_split_keeps_all_nodes_and_the_shares_of_classes():
    masks = split_nodes(LABELS, test_size=0.25, validation_size=0.25, random_state=4)
    assert all(mask.shape == (22,) and not mask[-2:].any() for mask in masks.values())
    assert [counts(mask) for mask in masks.values()] == [{"a": 4, "b": 6}, {"a": 2, "b": 3}, {"a": 2, "b": 3}]
    assert (sum(mask.astype(int) for mask in masks.values())[:-2] == 1).all()
    again = split_nodes(LABELS, test_size=0.25, validation_size=0.25, random_state=4)
    assert all(np.array_equal(masks[name], again[name]) for name in masks)
    other = split_nodes(LABELS, test_size=0.25, validation_size=0.25, random_state=5)
    assert not np.array_equal(masks["test_mask"], other["test_mask"])


def test_folds_test_every_labelled_node_once():
    folds = list(node_folds(LABELS, 4, random_state=1))
    assert len(folds) == 4
    assert (sum(masks["test_mask"].astype(int) for masks in folds) == [1] * 20 + [0] * 2).all()
    for masks in folds:
        assert counts(masks["test_mask"]) == {"a": 2, "b": 3}
        assert np.array_equal(masks["train_mask"][:20], ~masks["test_mask"][:20])


WRONG = {
    "everything": {"test_size": 0.5, "validation_size": 0.5},
    "nothing": {"test_size": 0.0},
    "a number of nodes": {"test_size": 5},
    "no share": {"validation_size": -0.1},
}


@pytest.mark.parametrize("sizes", WRONG.values(), ids=WRONG)
def test_sizes_are_shares_that_leave_something(sizes):
    with pytest.raises(InputError, match=r"_size"):
        split_nodes(LABELS, **sizes)


def test_rare_classes_need_a_split_without_strata():
    for split in (split_nodes, lambda labels, **how: list(node_folds(labels, 4, **how))):
        with pytest.raises(InputError, match="stratify=False"):
            split(["a", "b", "c", "d", "e"])
        split(["a", "b", "c", "d", "e"], stratify=False)


@pytest.mark.filterwarnings(r"ignore:`torch\.jit\.script` is deprecated:DeprecationWarning")
def test_masks_go_into_fit_as_they_are(parts):
    masks = split_nodes(parts.pyg(), random_state=0)
    assert masks["test_mask"].sum() == 24
    model = gcon.GCON(epochs=3).fit(parts.features, parts.labels, edges=parts.pairs(), **masks)
    score = model.node_score(parts.features, parts.labels, mask=masks["test_mask"], access="none")
    assert (score.nodes, score.audience, score.cost) == (24, "public", NOTHING)
    assert score.micro_f1 == model.score(parts.features, parts.labels, mask=masks["test_mask"])
    assert "nothing was charged; may be published" in str(score)
    noisy = replace(score, micro_f1=534 / 500, standard_deviation=0.06)
    assert str(noisy).startswith("micro-F1 1.0680 (noise: 0.0600; more than all: noise) on ")


def test_a_score_with_own_edges_is_recorded_or_paid_for(parts):
    ledger = gcon.MemoryLedger("circles")
    model = gcon.GCON(epochs=3, ledger=ledger).fit(parts.private())
    bare = model.node_score(parts.private(), access="own-edges")
    assert bare.audience == "operator only"
    assert "do not publish" in str(bare)
    assert ledger.entries()[-1].request.kind == "diagnostic"
    bought = model.node_score(parts.private(), access="own-edges", pay=0.5)
    assert (bought.audience, bought.cost) == ("public", Budget(0.5, 0.0))
    assert bought.standard_deviation > 0
    assert "epsilon 0.5 was charged; may be published" in str(bought)
    assert ledger.total().epsilon == 1.5
    with pytest.raises(InputError, match=r"^pay"):
        model.node_score(parts.private(), access="none", pay=0.5)
    for epsilon in (math.inf, 0.0, -1.0, math.nan):  # without noise it would be the exact count
        with pytest.raises(InputError, match=r"positive, finite"):
            model.node_score(parts.private(), access="own-edges", pay=epsilon)
    assert ledger.total().epsilon == 1.5
    with pytest.raises(InputError, match=r"^pay: .*a ledger"):
        model.set_params(ledger=None).node_score(parts.private(), access="own-edges", pay=0.5)
    with pytest.raises(TypeError, match="access"):
        model.node_score(parts.private())


def test_a_model_without_a_promise_has_no_public_score(parts):
    model = gcon.GCON(epochs=3, random_state=1).fit(parts.private())
    assert model.node_score(parts.private(), access="none").audience == "operator only"
