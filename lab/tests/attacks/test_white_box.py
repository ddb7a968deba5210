"""White-box scores are log-likelihood ratios: compared with densities computed by hand."""

import math

import pytest
import torch
from lab.tests.audits.sampled_losses import AuditedPair, privacy_losses
from torch.distributions import Laplace, Normal

from gcon.edges.edge_list import public_edges
from gcon.edges.schemes import Schemes, propagate
from gcon.errors import AccessRefusedError
from gcon.mechanisms.counts import NeighbourCounts
from gcon.mechanisms.edge_moments import EdgeMoments
from gcon.mechanisms.losses import loss_by_name
from gcon.mechanisms.perturbed_objective import PerturbedObjectives, minimise
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.attacks.pairs import absent_and_present
from gcon_lab.attacks.view import View
from gcon_lab.attacks.white_box import (
    NoisyGraph,
    NoisyMatrix,
    NoisyMoments,
    NoisyNeighbourSums,
    NoisyNumber,
    NoisyTable,
    ObjectiveWeights,
    WhiteBox,
    remembered,
)
from gcon_lab.audits.privacy_loss import RadialNoise
from gcon_lab.mechanisms.plain_sums import neighbour_sums

PATH = public_edges(torch.tensor([[0, 1, 2], [1, 2, 3]]), 5)
PAIRS = [(1, 2), (0, 4), (3, 1)]


def normals(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize(("law", "kind"), [("gaussian", Normal), ("laplace", Laplace)])
def test_noisy_sums_have_the_likelihood_ratio_of_their_law(law, kind, pair):
    rows, value, scale = normals(5, 3), normals(5, 3, seed=1), 0.7
    found = NoisyNeighbourSums(rows=rows, value=value, law=law, scale=scale).log_ratio(PATH, pair)
    low, high = (
        float(kind(neighbour_sums(edges, rows), scale).log_prob(value).sum())
        for edges in absent_and_present(PATH, pair)
    )
    assert found == pytest.approx(high - low)


@pytest.mark.parametrize("pair", PAIRS)
def test_a_noisy_matrix_has_the_gaussian_ratio(pair):
    rows, value = normals(5, 3), normals(5, 3, seed=1)
    found = NoisyMatrix(lambda edges: neighbour_sums(edges, rows), value, 0.7).log_ratio(PATH, pair)
    assert found == pytest.approx(
        NoisyNeighbourSums(rows=rows, value=value, law="gaussian", scale=0.7).log_ratio(PATH, pair)
    )


@pytest.mark.parametrize("pair", PAIRS)
def test_moments_have_the_ratio_of_symmetric_noise(pair):
    rows = normals(5, 3)
    statistic, deviation = EdgeMoments(rows), 0.7
    value = statistic.of(PATH) + (normals(3, 3, seed=1) + normals(3, 3, seed=1).T) / 2
    found = NoisyMoments(statistic.of, rows, value, deviation).log_ratio(PATH, pair)
    assert found == pytest.approx(NoisyMatrix(statistic.of, value, deviation).log_ratio(PATH, pair), rel=1e-5)
    # sigma on the diagonal, sigma / sqrt(2) above it, nothing new below
    scales = torch.full((3, 3), deviation / 2**0.5, dtype=torch.float64).fill_diagonal_(deviation)
    upper = torch.ones(3, 3).triu().bool()
    low, high = (
        float(Normal(statistic.of(edges), scales).log_prob(value)[upper].sum())
        for edges in absent_and_present(PATH, pair)
    )
    assert found == pytest.approx(high - low, rel=1e-5)


CODES = torch.tensor([0, 1, 1, 0, 2])
COUNTS = torch.tensor([[2, -1, 0], [1, 3, 0], [0, 0, 5], [-2, 1, 1], [0, 0, 0]])


def geometric_log_density(value, exact, rate):
    """Of independent two-sided geometric noise: log((1 - q) / (1 + q)) - rate |k|."""
    return float((math.log(math.tanh(rate / 2)) - rate * (value - exact).abs().double()).sum())


@pytest.mark.parametrize("pair", PAIRS)
def test_a_table_of_counts_has_the_ratio_of_geometric_noise(pair):
    found = NoisyTable(codes=CODES, value=COUNTS, rate=0.7).log_ratio(PATH, pair)
    exact = NeighbourCounts(codes=CODES, num_codes=3, rate=math.inf)
    low, high = (
        geometric_log_density(COUNTS, exact.apply(edges, SeededRandomness(0)).value, 0.7)
        for edges in absent_and_present(PATH, pair)
    )
    assert found == pytest.approx(high - low)
    assert abs(found) == pytest.approx(1.4) or found == pytest.approx(0.0)  # two entries, each worth the rate


@pytest.mark.parametrize("codes", [(0, -1, 1, -1, 2), (-1, 1, -1, 0, -1), (0, 1, 2, 0, 1), (-1,) * 5], ids=str)
@pytest.mark.parametrize("pair", PAIRS)
def test_a_one_way_table_has_the_ratio_of_its_rows(pair, codes):
    codes = torch.tensor(codes)
    told = NoisyTable(codes=codes, value=COUNTS, rate=0.7, one_way=True)
    exact = NeighbourCounts(codes=codes, num_codes=3, rate=math.inf, one_way=True)
    low, high = (
        sum(
            geometric_log_density(COUNTS[rows], exact.apply(edges, SeededRandomness(0)).value[rows], rate)
            for rows, rate in ((codes < 0, 0.7), (codes >= 0, 0.35))
            if bool(rows.any())
        )
        for edges in absent_and_present(PATH, pair)
    )
    assert told.log_ratio(PATH, pair) == pytest.approx(high - low, abs=1e-12)
    assert abs(told.log_ratio(PATH, pair)) <= 0.7 + 1e-12


def test_only_two_entries_of_a_table_tell_about_a_pair():
    others = torch.full_like(COUNTS, 100)
    others[0, CODES[4]], others[4, CODES[0]] = COUNTS[0, CODES[4]], COUNTS[4, CODES[0]]
    found = [NoisyTable(codes=CODES, value=value, rate=0.7).log_ratio(PATH, (0, 4)) for value in (COUNTS, others)]
    assert found[0] == found[1]


@pytest.mark.parametrize(("value", "wanted"), [(-3, -0.7), (2, -0.7), (3, 0.7), (9, 0.7)])
def test_a_noisy_number_has_the_ratio_of_geometric_noise(value, wanted):
    def nodes_with_friends(edges):
        return int((edges.degrees > 1).sum())  # 2, and 3 if 0 is linked to 2

    assert NoisyNumber(nodes_with_friends, value, 0.7).log_ratio(PATH, (0, 2)) == pytest.approx(wanted)
    assert NoisyNumber(nodes_with_friends, value, 0.7).log_ratio(PATH, (1, 3)) == pytest.approx(wanted)
    assert NoisyNumber(lambda edges: 7, value, 0.7).log_ratio(PATH, (0, 2)) == 0.0


def test_without_noise_two_entries_say_whether_the_pair_is_linked():
    exact = NeighbourCounts(codes=CODES, num_codes=3, rate=math.inf).apply(PATH, SeededRandomness(0))
    told = NoisyTable(codes=CODES, value=exact.value, rate=exact.rate)
    assert [told.log_ratio(PATH, pair) for pair in PAIRS] == [2.0, -2.0, -2.0]


def test_objective_weights_have_the_exact_privacy_loss():
    loss, features = loss_by_name("soft-margin", 2), torch.nn.functional.normalize(normals(5, 3), dim=1)
    targets = torch.nn.functional.one_hot(torch.tensor([0, 1, 0, 1, 1]), 2).double()
    schemes, noise = Schemes(restart=0.5, steps=(2,)), RadialNoise(2.0)
    absent, present = absent_and_present(PATH, (0, 4))
    pair = AuditedPair(
        first=propagate(present, features, schemes),
        second=propagate(absent, features, schemes),
        targets=targets,
        loss=loss,
        ridge=0.5,
        noise=noise,
    )
    (wanted,) = privacy_losses(pair, draws=1, randomness=SeededRandomness(3)).tolist()
    # The same noise gives the same weights; the evidence sees only these.
    drawn = noise.draw(SeededRandomness(3), columns=2, width=3)
    objective = PerturbedObjectives(
        aggregates=pair.first,
        targets=targets,
        losses=[loss],
        ridges=torch.tensor([0.5], dtype=torch.float64),
        noises=drawn[None],
    )
    (weights,) = minimise(objective, torch.tensor([1e-9], dtype=torch.float64))
    evidence = ObjectiveWeights(
        rows=lambda edges: propagate(edges, features, schemes),
        targets=targets,
        loss=loss,
        ridge=0.5,
        noise=noise,
        value=weights.T,
    )
    assert evidence.log_ratio(PATH, (0, 4)) == pytest.approx(wanted, abs=1e-6)


def test_evidence_adds_up_and_rests_are_averaged():
    rows, value = normals(5, 3), normals(5, 3, seed=1)
    sums, graph = NoisyNeighbourSums(rows=rows, value=value, law="gaussian", scale=1.0), NoisyGraph(PATH)
    view = View(features=rows, posteriors=rows, released=(sums, graph))
    pairs, other = torch.tensor(PAIRS), public_edges(torch.tensor([[0], [1]]), 5)
    found = WhiteBox((PATH, other)).scores(view, pairs)
    wanted = [sum(each.log_ratio(rest, pair) for rest in (PATH, other) for each in (sums, graph)) / 2 for pair in PAIRS]
    assert found.tolist() == pytest.approx(wanted)
    assert [graph.log_ratio(PATH, pair) for pair in PAIRS] == [1.0, 0.0, 0.0]
    with pytest.raises(AccessRefusedError):
        WhiteBox((PATH,)).scores(View(features=rows, posteriors=rows), pairs)


def test_graphs_used_again_are_not_computed_again():
    asked = []
    function = remembered(lambda edges: asked.append(edges) or len(asked))
    others = [public_edges(torch.tensor([[0], [node]]), 5) for node in (1, 2, 3, 4, 1, 2)]
    assert {function(PATH) for other in others if function(other)} == {2}
    assert len(asked) == 7
