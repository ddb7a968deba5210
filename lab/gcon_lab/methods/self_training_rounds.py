"""Private self-training: every round releases features against the answers around each node, and answers anew.

Round t releases X' T_w P_t with noise, where T_w takes means over a node (with weight w) and its neighbours. P_0 are the
edge-free encoder's answers; a linear discriminant from the released matrix gives P_(t+1). Labelled nodes keep their label.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn.functional import one_hot

from gcon.edges.schemes import Schemes
from gcon.methods.method import Trained
from gcon.nodes import PublicNodes
from gcon_lab.mechanisms.bilinear_sums import BilinearSums
from gcon_lab.methods.competitor import PaidEdges
from gcon_lab.methods.linear_models import EncodedMethod, discriminant, linear_scorers

ROUNDS, SELF_WEIGHT = 2, 2.0
INFERENCE_RESTART = 0.2
_PUBLIC_SCHEMES = Schemes(restart=0.0, steps=(1,))


@dataclass(frozen=True, kw_only=True)
class SelfTrainingRounds(EncodedMethod):
    """Two rounds at equal shares of the budget. One set of settings serves all graphs."""

    name = "self-training-rounds"
    about = "Releases features against the mean answers around each node, once per round; Gaussian noise."

    def learn(self, nodes: PublicNodes, edges: PaidEdges) -> Trained:
        (encoder, rows, answers), plan = self._without_edges(nodes), self._plan(nodes)
        with edges.spend(plan, f"self-training, {ROUNDS} rounds") as account:
            for _ in range(ROUNDS):
                sums = account.release(plan.noisy(BilinearSums(rows, answers, SELF_WEIGHT), share=1 / ROUNDS))
                linear = discriminant(sums.value, rows, answers, nodes)
                classes = torch.where(nodes.train_mask, nodes.labels, linear.scores(rows).argmax(dim=1))
                answers = one_hot(classes, nodes.num_classes).to(torch.float64)
        return Trained(
            score_functions=linear_scorers(encoder, linear, _PUBLIC_SCHEMES, INFERENCE_RESTART),
            receipts=(account.receipt,),
        )
