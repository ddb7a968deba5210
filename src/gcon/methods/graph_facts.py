"""Two facts about a graph from one noisy release: how often edges stay inside a class, and the mean degree.

What is released are the edge moments of answers with a constant column, which counts edges. The noise is known, and so are
the errors. Free: reads released and public numbers only.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcon.mechanisms.gaussian_release import NoisyStatistic

CONSTANT = 0.3  # the column of the answers that counts edges
_USUAL, _USUAL_SPREAD = 0.6, 0.2  # what is believed of homophily before anything is released
_MISFIT = 0.1  # the model of the moments is so far off, whatever the noise
_NO_EDGE = 1e-12  # far less than one edge, squared: instead of a division by 0 where there is neither edge nor noise


@dataclass(frozen=True, kw_only=True)
class GraphFacts:
    """What the moments of answers tell.

    Attributes:
        homophily: the share of edges inside a class that explains them best.
        homophily_error: one standard deviation of the posterior. Noise, the misfit of the model and the belief of 0.6 +- 0.2
            are in it; the noise of the number of edges is not.
        cautious_homophily: the homophily, one standard error towards chance, as far as the release took doubt away: what noise
            may have made is not acted on, and where little was told the guess that costs nothing is as good as it was.
        mean_degree: twice the edges over the nodes; noise can make it negative.
    """

    homophily: float
    homophily_error: float
    cautious_homophily: float
    mean_degree: float


def counted_rows(answers: Tensor) -> Tensor:
    """Answers and the constant column."""
    constant = torch.full((len(answers), 1), CONSTANT, dtype=torch.float64)
    return torch.cat([answers, constant], dim=1)


def graph_facts(moments: NoisyStatistic, answers: Tensor, examples: tuple[Tensor, Tensor]) -> GraphFacts:
    """The facts.

    For every candidate of the homophily -2 log of its posterior density, up to a constant, is its misfit: the smallest explains
    best. What answers of class y look like is seen on labelled nodes. Compared is what the moments say beyond their margins: how
    many edges a class has does not tell where they lead. Where the moments say little, the best stays near 0.6.

    Args:
        moments: noisy edge moments of `counted_rows(answers)`; their noise is sigma on the diagonal, sigma / sqrt(2) off it.
        answers: P, class probabilities of all nodes.
        examples: public labels of some nodes, and what they are answered.
    """
    observed, classes = moments.value[:-1, :-1], answers.shape[1]
    truth = torch.nn.functional.one_hot(examples[0], classes).double()
    shares = answers.mean(dim=0, dtype=torch.float64)
    seen = (truth.T @ examples[1].double() + 5 * shares) / (truth.sum(dim=0) + 5)[:, None]
    sizes = (truth.mean(dim=0) + shares) / 2
    total = observed.sum().clamp_min(1.0)
    apart = torch.outer(sizes, sizes).fill_diagonal_(0.0)
    apart = apart / apart.sum().clamp_min(_NO_EDGE)  # 0 if all answers and labels name one class
    candidates, tables = [step / 50 for step in range(1, 48)], [observed]
    for homophily in [1.0, *candidates]:
        between = (1 - homophily) * apart + homophily * torch.diag(sizes)
        tables.append(total * (seen.T @ between @ seen))
    beyond = []
    for table in tables:  # less what their row sums alone would make
        margins = table.sum(dim=1)
        beyond.append(table - torch.outer(margins, margins) / margins.sum().clamp_min(1.0))
    noise = moments.standard_deviation**2 / 2 * (1 + torch.eye(classes, dtype=observed.dtype))
    variances = noise + (_MISFIT * beyond[1].abs().mean()).square() + 1.0  # one edge alone tells nothing
    misfits = [
        float(((beyond[0] - each).square() / variances).sum()) + ((homophily - _USUAL) / _USUAL_SPREAD) ** 2
        for homophily, each in zip(candidates, beyond[2:], strict=True)
    ]
    found = candidates[misfits.index(min(misfits))]
    places = torch.tensor(candidates, dtype=torch.float64)
    weights = torch.softmax(-torch.tensor(misfits, dtype=torch.float64) / 2, dim=0)
    mean = (weights * places).sum()
    spread = float((weights * (places - mean).square()).sum().sqrt())
    error, chance = max(spread, float(places[1] - places[0]) / 2), 1 / classes  # the grid is no finer
    # Silence is a bet too: without the part of the variance that is left, noise made owners hear nobody now and then.
    caution = error * max(1 - (error / _USUAL_SPREAD) ** 2, 0.0)
    return GraphFacts(
        homophily=found,
        homophily_error=error,
        cautious_homophily=max(found - caution, chance) if found > chance else min(found + caution, chance),
        mean_degree=float(moments.value[-1, -1]) / CONSTANT**2 / len(answers),
    )


def degree_error(deviation: float, num_nodes: int) -> float:
    """The standard deviation of the mean degree for moments with this noise."""
    return deviation / CONSTANT**2 / num_nodes


def usual_homophily(neighbours_agree: float) -> float:
    """The zero-budget guess: friends are taken to be alike, the more so where nearest features share their labels."""
    return 0.8 if neighbours_agree >= 0.2 else _USUAL
