"""Two facts about a graph from one noisy release: how often edges stay inside a class, and the mean degree.

What is released are the edge moments of answers with a constant column, which counts edges. The noise is known, and so are
the errors. Free: reads released and public numbers only.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcon.learn.homophily import fitted_homophily, homophily_misfits
from gcon.mechanisms.gaussian_release import NoisyStatistic
from gcon.nodes import PublicNodes

CONSTANT = 0.3  # the column of the answers that counts edges


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
    homophily = fitted_homophily(moments.value[:-1, :-1], answers, nodes, deviation=moments.standard_deviation)
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


def degree_error(deviation: float, num_nodes: int) -> float:
    """The standard deviation of the mean degree for moments with this noise."""
    return deviation / CONSTANT**2 / num_nodes
