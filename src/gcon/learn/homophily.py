"""How alike friends are: the share of edges inside a class, from noisy moments of answers. Free post-processing."""

from __future__ import annotations

import torch
from torch import Tensor

from gcon.nodes import PublicNodes

_USUAL, _USUAL_SPREAD = 0.6, 0.2  # what is believed of homophily before anything is released
_MISFIT = 0.1  # the model of the moments is so far off, whatever the noise
_NO_EDGE = 1e-12  # far less than one edge, squared: instead of a division by 0 where there is neither edge nor noise


def fitted_homophily(moments: Tensor, answers: Tensor, nodes: PublicNodes, *, deviation: float) -> float:
    """The share of edges inside a class that explains noisy moments P' A P of answers best.

    What answers of class y look like is seen on labelled nodes. Where the moments say little, the result stays near 0.6.

    Args:
        moments: c x c.
        answers: P, class probabilities of all nodes.
        nodes: public labels.
        deviation: sigma of the noise: so much on the diagonal, sigma / sqrt(2) off it.
    """
    misfits = homophily_misfits(moments, answers, nodes, deviation=deviation)
    return min(misfits, key=lambda entry: entry[1])[0]


def homophily_misfits(
    moments: Tensor, answers: Tensor, nodes: PublicNodes, *, deviation: float
) -> list[tuple[float, float]]:
    """For every candidate of the homophily, -2 log of its posterior density up to a constant; arguments as above.

    Compared is what the moments say beyond their margins: how many edges a class has does not tell where they lead.
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
