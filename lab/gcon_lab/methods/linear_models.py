"""What methods with an edge-free encoder and linear weights share: the encoder, how weights score, and the discriminant.

A discriminant is computed from released sums and public rows alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from gcon.edges.schemes import Schemes, propagate
from gcon.edges.source import Edges
from gcon.learn.edge_free import learn_without_edges
from gcon.learn.encoder import Encoder
from gcon.learn.ensemble import pseudo_labels
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.learn.training_rows import training_rows
from gcon.mechanisms.gaussian_release import GaussianPlan, gaussian_plan
from gcon.methods.method import ScoreFunction
from gcon.methods.predictions import Access
from gcon.nodes import PublicNodes
from gcon.privacy.budget import checked_budget
from gcon_lab.methods.competitor import PrivateCompetitorMethod

_RIDGES = (1.0, 0.01, 0.1, 10.0, 100.0)  # over the mean variance of a column; a large one is the nearest class mean
_TEMPERATURES = (1.0, 0.25, 0.5, 2.0, 4.0)


@dataclass(frozen=True, eq=False)
class Linear:
    """A released classifier: scores are rows times weights plus bias."""

    weights: Tensor
    bias: Tensor

    def scores(self, rows: Tensor) -> Tensor:
        return rows @ self.weights + self.bias

    def over(self, temperature: float) -> Linear:
        """The same classes with other probabilities."""
        return Linear(self.weights / temperature, self.bias / temperature)


def discriminant(sums: Tensor, rows: Tensor, answers: Tensor, nodes: PublicNodes) -> Linear:
    """The linear discriminant with class means sums / counts and the public covariance of the rows within classes.

    Ridge and temperature are those of least validation loss, without edges; the first ones without validation nodes.

    Args:
        sums: d x c, released: about rows' answers, with edges in between.
        rows: n x d, public.
        answers: n x c, public or computed from what was released before: one 1 a row.
        nodes: public labels.

    Privacy:
        Reads public and released values only.
    """
    num_rows, width = rows.shape
    counts = answers.sum(dim=0) + 1.0
    public, means = rows.T @ answers / counts, sums / counts
    covariance = (rows.T @ rows - (public * counts) @ public.T) / num_rows
    size = max(float(covariance.trace()) / width, 1e-12)
    shares = (counts / counts.sum()).log()

    def classifier(ridge: float) -> Linear:
        weights = torch.linalg.solve(covariance + ridge * size * torch.eye(width, dtype=rows.dtype), means)
        return Linear(weights, shares - (weights * means).sum(dim=0) / 2)

    mask = nodes.validation_mask
    if not bool(mask.any()):
        return classifier(_RIDGES[0])
    checked, labels = rows[mask], nodes.labels[mask]
    found = [linear.over(value) for linear, value in product(map(classifier, _RIDGES), _TEMPERATURES)]
    return min(found, key=lambda linear: float(cross_entropy(linear.scores(checked), labels)))


def linear_scorers(
    encoder: Encoder, linear: Linear, schemes: Schemes, inference_restart: float
) -> dict[Access, ScoreFunction]:
    """GCON's accesses: one hop over own edges, no edge, and the propagation of training over a public graph."""
    one_hop = Schemes(restart=inference_restart, steps=(1,))

    def propagated(by: Schemes) -> ScoreFunction:
        def scored(features: Tensor, opened: Edges | None) -> Tensor:
            assert opened is not None
            return linear.scores(propagate(opened, encoder.encode(features), by))

        return scored

    def without_edges(features: Tensor, _: Edges | None) -> Tensor:
        return linear.scores(encoder.encode(features))

    return {"own-edges": propagated(one_hop), "none": without_edges, "public-graph": propagated(schemes)}


@dataclass(frozen=True, kw_only=True)
class EncodedMethod(PrivateCompetitorMethod):
    """A method on the hidden rows of GCON's edge-free encoder.

    Attributes:
        hidden: width of the encoder, which is the number of rows of what is released.
        epochs: of its training, at most.
    """

    hidden: int = 16
    epochs: int = 300

    def _encoder(self, nodes: PublicNodes) -> Encoder:
        return train_encoder(nodes, EncoderSettings(hidden=self.hidden, epochs=self.epochs, seed=self.seed))

    def _without_edges(self, nodes: PublicNodes) -> tuple[Encoder, Tensor, Tensor]:
        """The encoder, taught by the answers of the strongest edge-free model for all nodes without a label; rows and answers.

        It is no better than that model, but gives rows that can be propagated, also of nodes never seen.
        """
        lesson = pseudo_labels(learn_without_edges(nodes, seed=self.seed).answers, nodes, 1.0)
        nobody = torch.zeros_like(nodes.test_mask)
        encoder = self._encoder(replace(nodes, labels=lesson.labels, train_mask=lesson.mask, test_mask=nobody))
        return encoder, encoder.encode(nodes.features), training_rows(nodes, encoder, "all").targets

    def _plan(self, nodes: PublicNodes) -> GaussianPlan:
        return gaussian_plan(
            self.epsilon, checked_budget(self.epsilon, self.delta, nodes.num_nodes).delta, method=self.name
        )
