"""A score that says what it read, what it cost and who may see it."""

from __future__ import annotations

from dataclasses import dataclass

from gcon.privacy.budget import NOTHING, Budget


@dataclass(frozen=True, kw_only=True)
class NodeScore:
    """A share of right answers, with what it read and who may see it.

    Attributes:
        micro_f1: the share.
        nodes: of how many.
        access: which edges were read.
        audience: `public` or `operator only`.
        cost: what was charged.
        standard_deviation: of the noise in it; 0 if there is none.
    """

    micro_f1: float
    nodes: int
    access: str
    audience: str
    cost: Budget = NOTHING
    standard_deviation: float = 0.0

    def __str__(self) -> str:
        noise = f" (noise: {self.standard_deviation:.4f})" if self.standard_deviation else ""
        price = "nothing was charged" if self.cost == NOTHING else f"epsilon {self.cost.epsilon:g} was charged"
        who = "may be published" if self.audience == "public" else "for the operator's eyes: do not publish"
        return f"micro-F1 {self.micro_f1:.4f}{noise} on {self.nodes} nodes (access {self.access}); {price}; {who}"
