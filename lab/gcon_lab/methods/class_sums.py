"""Class sums: the encoded rows of a node and its neighbours, summed by predicted class; one release, the rest is free.

Pseudo-labels come from an edge-free encoder. The noisy sums over the public class sizes are class means of propagated
rows; a linear discriminant with the public covariance of the rows needs nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from gcon.edges.schemes import Schemes
from gcon.methods.method import Trained
from gcon.nodes import PublicNodes
from gcon_lab.mechanisms.class_sums import ClassSums
from gcon_lab.methods.competitor import PaidEdges
from gcon_lab.methods.linear_models import EncodedMethod, discriminant, linear_scorers

SCHEMES = Schemes(restart=0.2, steps=(1,))
INFERENCE_RESTART = 0.2


@dataclass(frozen=True, kw_only=True)
class ClassSumsMethod(EncodedMethod):
    """A discriminant from noisy class sums. One set of settings serves all graphs."""

    name = "class-sums"
    about = "Releases noisy class sums of propagated rows, once; Gaussian noise."

    def learn(self, nodes: PublicNodes, edges: PaidEdges) -> Trained:
        (encoder, rows, answers), plan = self._without_edges(nodes), self._plan(nodes)
        with edges.spend(plan, "class sums") as account:
            sums = account.release(plan.noisy(ClassSums(rows, answers, SCHEMES), share=1.0))
        linear = discriminant(sums.value, rows, answers, nodes)
        return Trained(
            score_functions=linear_scorers(encoder, linear, SCHEMES, INFERENCE_RESTART), receipts=(account.receipt,)
        )
