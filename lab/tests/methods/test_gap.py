"""GAP: its networks by hand, hops without noise by hand, own edges, what is charged, noise per hop and run."""

import math

import pytest
import torch
from lab.tests.methods.circles import EDGE_INDEX, FEATURES, NODES, adjacency, graph, length_one
from torch.nn.functional import selu

from gcon_lab.methods import gap
from gcon_lab.methods.gap import GAP, unit
from gcon_lab.methods.networks import Training, fit_on_rows, is_sparse, logits_of, seeded, sparse_if_worth_it

SMALL = {"epochs": 8, "hidden": 8}


def batch_norm(rows, norm):
    scaled = (rows - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
    return scaled * norm.weight + norm.bias


def trained_encoder(seed=0):
    with seeded(seed):
        encoder = gap._Encoder(FEATURES.shape[1], 8, 3, 0.0)
        fit_on_rows(encoder, FEATURES, NODES, Training(learning_rate=0.01, epochs=8, select="accuracy"))
    return encoder


def reference(hops):
    """All of GAP without noise, by dense matrices."""
    encoder = trained_encoder()
    with torch.no_grad():
        rows = [length_one(encoder.encode(FEATURES).double())]
    for _ in range(hops):
        rows.append(length_one(adjacency(EDGE_INDEX) @ rows[-1]))
    joined = torch.cat(rows, dim=1).float()
    with seeded(1):
        classifier = gap._Classifier(hops + 1, 8, 3, 0.0)
        fit_on_rows(classifier, joined, NODES, Training(learning_rate=0.01, epochs=8, select="accuracy"))
    return torch.softmax(logits_of(classifier, joined), dim=1)


def test_encoder_and_its_head_by_hand():
    encoder = trained_encoder()
    assert not encoder.training
    with torch.no_grad():
        hidden = batch_norm(FEATURES @ encoder.first.weight + encoder.first.bias, encoder.norm)
        encoded = selu(hidden) @ encoder.second.weight.T + encoder.second.bias
        assert torch.allclose(encoder.encode(FEATURES), encoded, atol=1e-5)
        head = selu(batch_norm(length_one(encoded), encoder.head_norm)) @ encoder.head.weight.T + encoder.head.bias
        assert torch.allclose(encoder(FEATURES), head, atol=1e-5)


def test_classifier_by_hand():
    with seeded(0):
        classifier = gap._Classifier(3, 4, 5, 0.5).eval()
        rows = torch.randn(7, 12)
    parts = [rows[:, 4 * k : 4 * k + 4] @ layer.weight.T + layer.bias for k, layer in enumerate(classifier.maps)]
    hidden = selu(batch_norm(length_one(torch.cat(parts, dim=1)), classifier.norm))
    expected = hidden @ classifier.head.weight.T + classifier.head.bias
    assert torch.allclose(classifier(rows), expected, atol=1e-5)


def test_inputs_are_not_dropped_and_hidden_values_are():
    with seeded(0):
        encoder = gap._Encoder(6, 200, 3, 0.5).train()
        seen = []
        encoder.first.register_forward_hook(lambda _, given, __: seen.append(given[0]))
        encoder.second.register_forward_hook(lambda _, given, __: seen.append(given[0]))
        rows = torch.rand(9, 6) + 0.5
        encoder.encode(rows)
    assert torch.equal(seen[0], rows)
    assert 0.3 < float((seen[1] == 0).float().mean()) < 0.7  # dropout, then SELU, which keeps 0


def test_unit_rows_guard_zero_rows():
    rows = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
    assert torch.allclose(unit(rows), torch.tensor([[0.6, 0.8], [0.0, 0.0]], dtype=torch.float64))


@pytest.mark.parametrize("hops", [1, 2])
@pytest.mark.parametrize("access", ["cached", "own-edges"])
def test_infinite_epsilon_is_the_method_without_noise(hops, access):
    fitted = GAP(epsilon=math.inf, hops=hops, **SMALL).fit(graph())
    found = fitted.predictions(graph(), access=access).probabilities
    assert torch.allclose(found, reference(hops), atol=1e-4)
    assert math.isinf(fitted.receipts[0].budget.epsilon)
    assert not fitted.receipts[0].keeps_promise


def test_nearly_no_edges_change_no_bit_of_the_others(monkeypatch):
    """Most rows zero: arithmetic must not switch to sparse, which could move the last bits of every row.

    Five hops of six are zero for a node without edges, so that the switch, if it were asked, would go both ways.
    """
    fitted = GAP(epsilon=1.0, hops=5, **SMALL).fit(graph())
    few, many = EDGE_INDEX[:, :1], EDGE_INDEX[:, :40]
    touched = set(many[:, 1:].flatten().tolist())
    kept = [node for node in range(120) if node not in touched]
    seen, forward = [], gap._Classifier.forward
    monkeypatch.setattr(gap._Classifier, "forward", lambda *given: seen.append(given[1]) or forward(*given))
    first, second = (fitted.predictions(graph(some), access="own-edges").probabilities for some in (few, many))
    assert torch.equal(first[kept], second[kept])
    assert [is_sparse(rows) for rows in seen] == [False, False]
    assert [is_sparse(sparse_if_worth_it(rows)) for rows in seen] == [True, False]
