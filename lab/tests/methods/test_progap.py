"""ProGAP: its networks by hand, stages without noise by hand, own edges, what is charged, noise per stage and run."""

import dataclasses
import math

import pytest
import torch
from lab.tests.methods.circles import EDGE_INDEX, FEATURES, NODES, adjacency, graph, length_one
from torch import nn
from torch.nn.functional import cross_entropy, selu

from gcon.edges.graph import private_graph
from gcon.errors import InputError
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.methods import progap
from gcon_lab.methods.networks import SparseLinear, is_sparse, seeded, sparse_if_worth_it
from gcon_lab.methods.progap import ProGAP

SMALL = {"epochs": 6, "hidden": 8}


def reference(depth, *, earlier, noisy=None):
    """All of ProGAP by plain torch: without noise, or from the noisy sums that a run released."""
    blocks, inputs = [], [FEATURES]
    for place in range(depth + 1):
        with seeded(place):
            blocks.append(nn.Sequential(SparseLinear(inputs[-1].shape[1], 8), nn.SELU(), nn.BatchNorm1d(8)))
            head = nn.Linear(8 * len(blocks), 3)
        trained = nn.ModuleList([*(blocks if earlier else blocks[-1:]), head])

        def forward(mask, blocks=blocks, inputs=inputs, head=head):
            parts = [block(rows[mask]) for block, rows in zip(blocks, inputs, strict=True)]
            return head(length_one(torch.cat(parts, dim=1)))

        optimiser = torch.optim.Adam(trained.parameters(), lr=0.01)
        best, best_share = None, -1.0
        for _ in range(6):
            for block in blocks:
                block.eval()
            trained.train()
            optimiser.zero_grad()
            cross_entropy(forward(NODES.train_mask), NODES.labels[NODES.train_mask]).backward()
            optimiser.step()
            trained.eval()
            right = forward(NODES.validation_mask).argmax(dim=1) == NODES.labels[NODES.validation_mask]
            if float(right.double().mean()) > best_share:
                best_share = float(right.double().mean())
                best = {name: value.clone() for name, value in trained.state_dict().items()}
        trained.load_state_dict(best)
        with torch.no_grad():
            if place == depth:
                return torch.softmax(forward(torch.arange(120)), dim=1)
            sums = adjacency(EDGE_INDEX) @ length_one(blocks[-1](inputs[-1]).double())
            inputs.append((sums if noisy is None else noisy[place]).float())
    raise AssertionError


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("earlier", [True, False])
def test_infinite_epsilon_is_the_method_without_noise(depth, earlier):
    fitted = ProGAP(epsilon=math.inf, depth=depth, train_earlier_blocks=earlier, **SMALL).fit(graph())
    expected = reference(depth, earlier=earlier)
    for access in ("cached", "own-edges"):
        found = fitted.predictions(graph(), access=access).probabilities
        assert torch.allclose(found, expected, atol=1e-4)
    assert math.isinf(fitted.receipts[0].budget.epsilon)


@pytest.mark.parametrize("earlier", [True, False])
def test_cached_scores_follow_from_what_was_released(released, earlier):
    """With noise too: the whole rest is computed from the sums as drawn and public features."""
    method = ProGAP(epsilon=4.0, depth=2, train_earlier_blocks=earlier, **SMALL)
    fitted = method.fit(graph(), randomness=SeededRandomness(2))  # no chance that rounding tips the choice of an epoch
    expected = reference(2, earlier=earlier, noisy=[line.value for line in released])
    assert torch.allclose(fitted.predictions(graph()).probabilities, expected, atol=1e-4)


def test_block_by_hand():
    with seeded(0):
        block = progap._Block(5, 4, layers=2, share=0.5)
        block(torch.randn(50, 5))  # moves the running means
        rows = torch.randn(7, 5)
    expected = rows
    for linear, norm in zip(block.linear, block.norms, strict=True):
        hidden = selu(expected @ linear.weight + linear.bias)
        expected = (hidden - norm.running_mean) / (norm.running_var + norm.eps).sqrt() * norm.weight + norm.bias
    assert torch.allclose(block.eval()(rows), expected, atol=1e-5)
    dropped = block.train()(torch.randn(400, 5))
    assert 0.3 < float((dropped == 0).float().mean()) < 0.7  # also after the last layer


@pytest.mark.parametrize("earlier", [True, False])
def test_earlier_blocks_are_trained_again_only_if_wanted(earlier):
    method, blocks, inputs = ProGAP(epsilon=1.0, train_earlier_blocks=earlier, **SMALL), [], [FEATURES]
    method._next_stage(blocks, inputs, NODES)
    before = {name: value.clone() for name, value in blocks[0].state_dict().items()}
    inputs.append(torch.randn(120, 8, generator=torch.Generator().manual_seed(0)))
    method._next_stage(blocks, inputs, NODES)
    same = [torch.equal(value, before[name]) for name, value in blocks[0].state_dict().items()]
    assert any(same) != earlier
    assert all(same) != earlier


def test_nearly_no_edges_change_no_bit_of_the_others(monkeypatch):
    """Sums that are mostly zero, or not: arithmetic on them must stay dense, or the last bits of every row would move."""
    fitted = ProGAP(epsilon=1.0, depth=2, epochs=6, hidden=24).fit(graph())
    few = EDGE_INDEX[:, :8]
    apart = [place for place in range(8, EDGE_INDEX.shape[1]) if not torch.isin(EDGE_INDEX[:, place], few).any()]
    many = torch.cat([few, EDGE_INDEX[:, apart]], dim=1)
    seen, forward = [], progap._Block.forward
    monkeypatch.setattr(progap._Block, "forward", lambda *given: seen.append(given[1]) or forward(*given))
    first, second = (fitted.predictions(graph(some), access="own-edges").probabilities for some in (few, many))
    ends = few.unique()
    assert torch.equal(first[ends], second[ends])
    sums = [rows for rows in seen if rows.shape[1] == 24]
    assert [is_sparse(rows) for rows in sums] == [False] * 4
    assert [is_sparse(sparse_if_worth_it(rows)) for rows in sums] == [True, True, False, False]


def test_refusals():
    for layers in (0, 1.5):
        with pytest.raises(InputError, match="base_layers"):
            ProGAP(epsilon=1.0, base_layers=layers)


def test_bags_of_words_are_multiplied_as_sparse_rows():
    """With and without sparse arithmetic the same comes out."""
    words = torch.zeros(120, 40)
    words[torch.arange(120), NODES.labels] = 1.0
    words[:, 3] = 0.5
    assert is_sparse(sparse_if_worth_it(words))
    with seeded(0):
        block = progap._Block(40, 8, layers=2, share=0.0).eval()
    assert torch.allclose(block(words), block(sparse_if_worth_it(words)), atol=1e-6)
    bags = private_graph(dataclasses.replace(NODES, features=words), EDGE_INDEX)
    fitted = ProGAP(epsilon=4.0, depth=2, **SMALL).fit(bags)
    for access in ("cached", "own-edges"):
        assert bool(torch.isfinite(fitted.predictions(bags, access=access).probabilities).all())
