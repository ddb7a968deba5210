"""GAP: its networks by hand, hops without noise by hand, own edges, what is charged, noise per hop and run."""

import itertools
import math

import pytest
import torch
from torch.nn.functional import selu

import gcon
from gcon.edges.edge_list import public_edges
from gcon.edges.graph import PublicGraph, private_graph
from gcon.errors import AccessRefusedError, InputError
from gcon.files.datasets import social_circles_parts
from gcon.mechanisms.gaussian_curve import gaussian_epsilon, gaussian_multiplier
from gcon.privacy.budget import Budget, public_delta
from gcon.privacy.ledger import Kind, MemoryLedger
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.methods import gap
from gcon_lab.methods.gap import GAP, unit
from gcon_lab.methods.networks import Training, fit_on_rows, is_sparse, logits_of, seeded, sparse_if_worth_it

NODES, EDGE_INDEX = social_circles_parts(
    120, num_classes=3, per_class=6, num_validation=30, num_test=60, mean_degree=4.0, seed=3
)
SMALL = {"epochs": 8, "hidden": 8}
FEATURES = NODES.features.float()


def graph(edge_index=EDGE_INDEX):
    return private_graph(NODES, edge_index, name="circles")


def adjacency(edge_index):
    dense = torch.zeros(120, 120, dtype=torch.float64)
    dense[edge_index[0], edge_index[1]] = dense[edge_index[1], edge_index[0]] = 1
    return dense


def batch_norm(rows, norm):
    scaled = (rows - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
    return scaled * norm.weight + norm.bias


def length_one(rows):
    lengths = rows.norm(dim=1, keepdim=True)
    return torch.where(lengths > 0, rows / lengths.clamp(min=1e-12), rows)


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


@pytest.mark.parametrize("hops", [1, 3])
def test_charged_once(released, hops):
    ledger = MemoryLedger("circles")
    fitted = GAP(epsilon=1.5, delta=1e-4, hops=hops, **SMALL).fit(graph(), ledger=ledger)
    (entry,) = ledger.entries()
    assert entry.request.cost == ledger.total() == fitted.receipts[0].budget == Budget(1.5, 1e-4)
    scale = math.sqrt(2 * hops) * gaussian_multiplier(1.5, 1e-4)
    assert entry.request.plan["scale"] == pytest.approx(scale, rel=1e-8)
    assert entry.request.gaussian_distance == pytest.approx(math.sqrt(2 * hops) / scale, rel=1e-8)
    assert len(released) == hops
    fitted.predict(graph())
    fitted.score(graph(), NODES.test_mask)
    assert len(ledger.entries()) == 1  # cached quantities are free
    fitted.predict(graph(), access="own-edges")
    fitted.score(graph(), NODES.test_mask, access="own-edges")
    kinds = [entry.request.kind for entry in ledger.entries()]
    assert kinds == [Kind.RELEASE, Kind.DELIVERY, Kind.DIAGNOSTIC]
    assert ledger.total() == Budget(1.5, 1e-4)


def test_delta_comes_from_the_public_number_of_nodes():
    ledger = MemoryLedger("circles")
    GAP(epsilon=1.0, **SMALL).fit(graph(), ledger=ledger)
    assert ledger.total() == Budget(1.0, public_delta(120))


def test_directed_convention_is_labelled_and_charged_at_what_it_costs():
    ledger = MemoryLedger("circles")
    GAP(epsilon=1.0, delta=1e-4, hops=2, edge_sensitivity="directed", **SMALL).fit(graph(), ledger=ledger)
    (entry,) = ledger.entries()
    true = gaussian_epsilon(math.sqrt(2) / gaussian_multiplier(1.0, 1e-4), 1e-4)
    assert ledger.total().epsilon == pytest.approx(true, rel=1e-6)
    assert ledger.total().epsilon > 1.4
    assert entry.request.plan["edge_sensitivity"] == "directed"


def test_noise_from_a_seed_is_charged_as_infinite():
    ledger = MemoryLedger("circles")
    fitted = GAP(epsilon=1.0, **SMALL).fit(graph(), ledger=ledger, randomness=SeededRandomness(1))
    assert math.isinf(ledger.total().epsilon)
    assert not fitted.receipts[0].keeps_promise


def test_noise_differs_between_runs_and_hops(released):
    for _ in range(2):
        GAP(epsilon=1.0, hops=2, seed=5, **SMALL).fit(
            graph(EDGE_INDEX[:, :0])
        )  # without edges the sums are noise alone
    one, two, three, four = (line.value for line in released)
    # Lattice points: of 960 pairs of independent ones 0.1 are expected to be equal, and an eighth of all 3,840 repeated.
    for first, second in itertools.combinations((one, two, three, four), 2):
        assert float((first == second).double().mean()) < 0.02
    assert len(torch.stack([one, two, three, four]).unique()) > 1_920


@pytest.mark.parametrize("hops", [1, 2])
def test_an_answer_from_own_edges_reads_own_edges_only(hops):
    fitted = GAP(epsilon=1.0, hops=hops, **SMALL).fit(graph())
    before = fitted.predictions(graph(), access="own-edges").probabilities
    for place in range(0, EDGE_INDEX.shape[1], 10):
        ends = EDGE_INDEX[:, place].tolist()
        kept = torch.cat([EDGE_INDEX[:, :place], EDGE_INDEX[:, place + 1 :]], dim=1)
        after = fitted.predictions(graph(kept), access="own-edges").probabilities
        others = [node for node in range(120) if node not in ends]
        assert torch.equal(before[others], after[others])
        assert not torch.equal(before[ends], after[ends])
    empty = fitted.predictions(graph(EDGE_INDEX[:, :0]), access="own-edges").probabilities
    assert bool(torch.isfinite(empty).all())


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


def test_refusals():
    fitted = GAP(epsilon=1.0, **SMALL).fit(graph())
    for access in ("none", "full", "public-graph"):
        with pytest.raises(AccessRefusedError, match="cached, own-edges"):
            fitted.predict(graph(), access=access)
    with pytest.raises(AccessRefusedError, match="private edges"):
        fitted.predict(PublicGraph(NODES.features, public_edges(EDGE_INDEX, 120)), access="own-edges")
    with pytest.raises(InputError, match="epsilon"):
        GAP(epsilon=-1.0)
    for hops in (0, 1.5, True):
        with pytest.raises(InputError, match="hops"):
            GAP(epsilon=1.0, hops=hops)
    ledger = MemoryLedger("circles")
    with pytest.raises(InputError, match="edge_sensitivity"):
        GAP(epsilon=1.0, edge_sensitivity="none", **SMALL).fit(graph(), ledger=ledger)
    assert not ledger.entries()


def test_learns_from_neighbours():
    easy = gcon.datasets.social_circles(
        400, num_classes=3, feature_signal=1.5, mean_degree=20.0, homophily=0.95, seed=1
    )
    fitted = GAP(epsilon=20.0, hops=1).fit(easy)
    assert fitted.score(easy, easy.nodes.test_mask) > 0.8
