"""Two facts about a graph from one noisy release: how often edges stay inside a class, and the mean degree.

What is released are the edge moments of answers with a constant column, which counts edges. The noise is known, and so are
the errors. Free: reads released and public numbers only.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcon.mechanisms.gaussian_release import NoisyStatistic
from gcon.nodes import PublicNodes

CONSTANT = 0.3  # the column of the answers that counts edges
_USUAL, _USUAL_SPREAD = 0.6, 0.2  # what is believed of homophily before anything is released
_MISFIT = 0.1  # the model of the moments is so far off, whatever the noise
_NO_EDGE = 1e-12  # far less than one edge, squared: instead of a division by 0 where there is neither edge nor noise


@dataclass(frozen=True, kw_only=True)
class GraphFacts:
    """What the moments of answers tell.

    Attributes:
        homophily: the share of edges inside a class that explains them best.
        mean_degree: twice the edges over the nodes; noise can make it negative.
    """

    homophily: float
    mean_degree: float


@dataclass(frozen=True, kw_only=True)
class FactErrors:
    """One standard deviation each.

    Attributes:
        homophily: of the posterior. Noise, the misfit of the model and the belief of 0.6 +- 0.2 are in it; the noise of
            the number of edges is not.
        mean_degree: from the noise alone.
    """

    homophily: float
    mean_degree: float


def counted_rows(answers: Tensor) -> Tensor:
    """Answers and the constant column."""
    constant = torch.full((len(answers), 1), CONSTANT, dtype=torch.float64)
    return torch.cat([answers, constant], dim=1)


def graph_facts(moments: NoisyStatistic, answers: Tensor, nodes: PublicNodes) -> GraphFacts:
    """The facts.

    Args:
        moments: noisy edge moments of `counted_rows(answers)`.
        answers: class probabilities of all nodes.
        nodes: public labels.
    """
    degree = float(moments.value[-1, -1]) / CONSTANT**2 / nodes.num_nodes
    misfits = homophily_misfits(moments.value[:-1, :-1], answers, nodes, deviation=moments.standard_deviation)
    homophily, _ = min(misfits, key=lambda entry: entry[1])
    return GraphFacts(homophily=homophily, mean_degree=degree)


def fact_errors(moments: NoisyStatistic, answers: Tensor, nodes: PublicNodes) -> FactErrors:
    """How far the facts may be off; arguments as for `graph_facts`."""
    misfits = homophily_misfits(moments.value[:-1, :-1], answers, nodes, deviation=moments.standard_deviation)
    places = torch.tensor([place for place, _ in misfits], dtype=torch.float64)
    weights = torch.softmax(-torch.tensor([misfit for _, misfit in misfits], dtype=torch.float64) / 2, dim=0)
    mean = (weights * places).sum()
    step = float(places[1] - places[0])
    spread = float((weights * (places - mean).square()).sum().sqrt())
    return FactErrors(
        homophily=max(spread, step / 2),  # the grid is no finer
        mean_degree=degree_error(moments.standard_deviation, nodes.num_nodes),
    )


def cautious_homophily(facts: GraphFacts, errors: FactErrors, num_classes: int) -> float:
    """The homophily, one standard error towards chance: what noise may have made is not acted on."""
    found, error, chance = facts.homophily, errors.homophily, 1 / num_classes
    return max(found - error, chance) if found > chance else min(found + error, chance)


def degree_error(deviation: float, num_nodes: int) -> float:
    """The standard deviation of the mean degree for moments with this noise."""
    return deviation / CONSTANT**2 / num_nodes


def homophily_misfits(
    moments: Tensor, answers: Tensor, nodes: PublicNodes, *, deviation: float
) -> list[tuple[float, float]]:
    """For every candidate of the homophily, -2 log of its posterior density up to a constant: the smallest explains best.

    What answers of class y look like is seen on labelled nodes. Compared is what the moments say beyond their margins: how
    many edges a class has does not tell where they lead. Where the moments say little, the best stays near 0.6.

    Args:
        moments: noisy P' A P, c x c.
        answers: P, class probabilities of all nodes.
        nodes: public labels.
        deviation: sigma of the noise: so much on the diagonal, sigma / sqrt(2) off it.
    """
    classes, known = nodes.num_classes, nodes.train_mask | nodes.validation_mask
    truth = torch.nn.functional.one_hot(nodes.labels[known], classes).double()
    shares = answers.mean(dim=0, dtype=torch.float64)
    seen = (truth.T @ answers[known].double() + 5 * shares) / (truth.sum(dim=0) + 5)[:, None]
    sizes = (truth.mean(dim=0) + shares) / 2
    total = moments.sum().clamp_min(1.0)
    apart = torch.outer(sizes, sizes).fill_diagonal_(0.0)
    apart = apart / apart.sum().clamp_min(_NO_EDGE)  # 0 if all answers and labels name one class
    noise = deviation**2 / 2 * (1 + torch.eye(classes, dtype=moments.dtype))
    observed = _beyond_margins(moments)

    def expected(homophily: float) -> Tensor:
        between = (1 - homophily) * apart + homophily * torch.diag(sizes)
        return _beyond_margins(total * (seen.T @ between @ seen))

    misfit = noise + (_MISFIT * expected(1.0).abs().mean()).square() + 1.0  # one edge alone tells nothing

    def score(homophily: float) -> float:
        fit = (observed - expected(homophily)).square() / misfit
        return float(fit.sum()) + ((homophily - _USUAL) / _USUAL_SPREAD) ** 2

    return [(step / 50, score(step / 50)) for step in range(1, 48)]


def _beyond_margins(moments: Tensor) -> Tensor:
    """Moments less what their row sums alone would make."""
    margins = moments.sum(dim=1)
    return moments - torch.outer(margins, margins) / margins.sum().clamp_min(1.0)


def usual_homophily(neighbours_agree: float) -> float:
    """The zero-budget guess: friends are taken to be alike, the more so where nearest features share their labels."""
    return 0.8 if neighbours_agree >= 0.2 else _USUAL
