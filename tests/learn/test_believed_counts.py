"""What noisy counts are taken to be, and what they say about classes."""

import math

import numpy as np
import pytest
import torch

from gcon.edges.edge_list import public_edges
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.learn import believed_counts as module
from gcon.learn.believed_counts import CountBelief
from gcon.mechanisms.counts import geometric_deviation


def geometric_noise(rate, shape, seed):
    """Two-sided geometric noise."""
    draws = np.random.default_rng(seed).geometric(-math.expm1(-rate), size=(2, *shape))
    return torch.from_numpy(draws[0] - draws[1])


def exact_counts(edge_index, codes, num_codes):
    edges = public_edges(edge_index, len(codes))
    return torch.stack([codes[edges.neighbours(node)].bincount(minlength=num_codes) for node in range(len(codes))])


def graph(**changed):
    given = {"num_classes": 4, "num_features": 8, "feature_signal": 2.0, "per_class": 15, "mean_degree": 8, "seed": 3}
    return social_circles_parts(400, **(given | changed))


def sure_answers(labels, num_classes, sureness=0.7):
    return torch.full((len(labels), num_classes), (1 - sureness) / (num_classes - 1)).scatter_(
        1, labels[:, None], sureness
    )


def believed_counts(noisy, deviation, answers):
    return CountBelief.fitted(noisy, deviation, answers).of(noisy, deviation, answers).counts


def test_counts_without_noise_are_believed_as_they_are():
    counts = torch.randint(0, 50, (30, 3), generator=torch.Generator().manual_seed(1))
    found = believed_counts(counts, 0.0, torch.full((30, 3), 1 / 3))
    assert found.dtype == torch.float64
    assert torch.equal(found, counts.double())


@pytest.mark.parametrize("rate", [0.2, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize(
    "kind",
    [{}, {"mean_degree": 3}, {"mean_degree": 40}, {"homophily": 0.2}, {"degree_tail": math.inf}, {"num_classes": 2}],
    ids=str,
)
def test_believed_counts_are_nearer_to_the_truth_than_noisy_ones(kind, rate):
    nodes, edge_index = graph(**kind)
    truth = exact_counts(edge_index, nodes.labels, nodes.num_classes)
    answers = sure_answers(nodes.labels, nodes.num_classes)
    for seed in range(3):
        noisy = truth + geometric_noise(rate, truth.shape, seed)
        found = believed_counts(noisy, geometric_deviation(rate), answers)
        assert bool((found >= 0).all())
        assert bool(found.isfinite().all())
        off, before = (float((each - truth).square().mean()) for each in (found, noisy.double()))
        # Rare noise leaves most counts as they are; a mean of all that they may be then gains nothing, and loses little.
        assert off < (0.95 if rate <= 1 else 1.5) * before


def test_little_noise_changes_little_and_much_noise_leaves_what_is_usual():
    nodes, edge_index = graph()
    truth, answers = exact_counts(edge_index, nodes.labels, 4), sure_answers(nodes.labels, 4)
    found = believed_counts(truth, 1e-3, answers)
    assert float((found - truth).abs().max()) < 0.01
    noisy = truth + geometric_noise(0.01, truth.shape, 0)
    found = believed_counts(noisy, geometric_deviation(0.01), answers)
    assert float((found - truth).square().mean()) < 0.02 * float((noisy - truth).double().square().mean())


@pytest.mark.parametrize("deviation", [0.3, 100.0])
def test_believed_counts_of_odd_tables_are_numbers(deviation):
    for counts in (torch.zeros(20, 3), torch.full((20, 3), -50), torch.full((20, 3), 10**6), torch.zeros(1, 2)):
        for answers in (sure_answers(torch.zeros(len(counts), dtype=torch.int64), counts.shape[1], 1.0),):
            found = believed_counts(counts.long(), deviation, answers)
            assert found.shape == counts.shape
            assert bool((found.isfinite() & (found >= 0)).all())


def two_kinds(size=600, deviation=2.0):
    """Two classes with unlike neighbours, weak answers, and normal noise."""
    generator = torch.Generator().manual_seed(5)
    labels = torch.arange(size) % 2
    proportions = torch.tensor([[0.7, 0.3], [0.2, 0.8]], dtype=torch.float64)
    degrees = 5 + 40 * torch.rand(size, 1, generator=generator, dtype=torch.float64)
    truth = torch.poisson(degrees * proportions[labels], generator=generator)
    noisy = truth + deviation * torch.randn(truth.shape, generator=generator, dtype=torch.float64)
    return labels, proportions, truth, noisy, sure_answers(labels, 2, 0.6)


def test_proportions_are_found_and_evidence_tells_classes():
    labels, proportions, _, noisy, answers = two_kinds()
    belief = CountBelief.fitted(noisy, 2.0, answers)
    assert torch.allclose(belief.proportions, proportions, atol=0.03)
    assert bool((belief.crowding < 1.2).all())  # a Poisson number has 1, and less once its degree is known
    found = belief.of(noisy, 2.0, answers)
    assert torch.allclose(found.evidence.exp().sum(dim=1), torch.ones(600, dtype=torch.float64), atol=1e-4)
    assert float((found.evidence.argmax(dim=1) == labels).double().mean()) > 0.9
    # Evidence is that of the counts alone: other answers move it by what they say of degrees, and no more.
    other = belief.of(noisy, 2.0, answers.flip(1)).evidence
    assert float((other.argmax(dim=1) == labels).double().mean()) > 0.9
    # Noisier than counts are large, they say nothing.
    silent = CountBelief.fitted(noisy, 2000.0, answers).of(noisy, 2000.0, answers).evidence
    assert float((silent.exp() - 0.5).abs().max()) < 0.05


def test_evidence_by_hand_without_noise():
    """Normal densities with the proportions' means; the degree is known, and says nothing about a class."""
    _, _, truth, _, answers = two_kinds()
    belief = CountBelief.fitted(truth, 0.0, answers)
    for row in (0, 1, 17):
        said = []
        for shares in belief.proportions.tolist():
            means = [float(truth[row].sum()) * share for share in shares]
            variances = [float(crowding) * mean for crowding, mean in zip(belief.crowding, means, strict=True)]
            parts = zip(truth[row].tolist(), means, variances, strict=True)
            said.append(
                sum(-((count - mean) ** 2) / variance / 2 - math.log(variance) / 2 for count, mean, variance in parts)
            )
        expected = torch.log_softmax(torch.tensor(said, dtype=torch.float64), dim=0).clamp_min(-12)
        found = belief.of(truth[row : row + 1], 0.0, answers[row : row + 1]).evidence[0]
        assert torch.allclose(found, expected, rtol=1e-9)


def test_rows_with_less_noise_are_believed_more():
    """Every other pair of nodes has a quarter of the deviation: both halves are told apart, each as if it were alone."""
    labels, proportions, truth, _, answers = two_kinds()
    deviations = torch.where(torch.arange(600) // 2 % 2 == 0, 2.0, 8.0).double()
    noise = torch.randn(truth.shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    noisy = truth + deviations[:, None] * noise
    belief = CountBelief.fitted(noisy, deviations, answers)
    assert torch.allclose(belief.proportions, proportions, atol=0.05)
    found = belief.of(noisy, deviations, answers)
    for rows, deviation in ((deviations == 2, 2.0), (deviations == 8, 8.0)):
        alone = belief.of(noisy[rows], deviation, answers[rows])
        assert torch.equal(found.counts[rows], alone.counts)
        assert torch.equal(found.evidence[rows], alone.evidence)
    errors = (found.counts - truth).square().mean(dim=1)
    assert errors[deviations == 2].mean() < errors[deviations == 8].mean() / 2
    right = found.evidence.argmax(dim=1) == labels
    assert right[deviations == 2].double().mean() > right[deviations == 8].double().mean() + 0.1
    assert found.evidence[deviations == 8].std() < found.evidence[deviations == 2].std() / 2
    # Taken for as noisy as the noisiest, good counts are believed less than they could be.
    misjudged = CountBelief.fitted(noisy, 8.0, answers).of(noisy, 8.0, answers)
    assert errors[deviations == 2].mean() < (misjudged.counts - truth).square().mean(dim=1)[deviations == 2].mean()


def test_known_labels_tell_proportions():
    """Answers that are wrong as often as right cannot; a few labels can."""
    labels, proportions, _, noisy, _ = two_kinds()
    answers = torch.full((600, 2), 0.5)
    known = torch.where(torch.arange(600) < 100, labels, -1)
    belief = CountBelief.fitted(noisy, 2.0, answers, known)
    assert torch.allclose(belief.proportions, proportions, atol=0.05)


def test_pieces_change_last_bits_at_most(monkeypatch):
    _, _, _, noisy, answers = two_kinds()
    whole = CountBelief.fitted(noisy, 2.0, answers).of(noisy, 2.0, answers)
    monkeypatch.setattr(module, "_PIECE", 4 * 7)
    parts = CountBelief.fitted(noisy, 2.0, answers).of(noisy, 2.0, answers)
    assert torch.allclose(whole.counts, parts.counts, rtol=1e-9)
    assert torch.allclose(whole.evidence, parts.evidence, rtol=1e-9)
