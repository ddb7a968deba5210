"""The released model of our own method: the noisy statistics, and what was computed from them for free."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gcon.learn.encoder import Encoder
from gcon.mechanisms.gaussian_release import NoisyStatistic
from gcon.methods.published import PublishedModel
from gcon.privacy.receipt import Receipt


@dataclass(frozen=True, kw_only=True)
class MomentsSettings:
    """What prediction needs to know: public numbers and names.

    Attributes:
        homophily: the share of edges inside a class, as the released statistics tell it.
        class_names: what the columns of the answers stand for.
        training_nodes: checksum of the public feature table that the model was trained on.
    """

    homophily: float
    class_names: tuple[object, ...]
    training_nodes: str


@dataclass(frozen=True, eq=False, kw_only=True)
class MomentsModel(PublishedModel):
    """Everything here is public: each part is a function of public data and of the noisy statistics.

    Attributes:
        answers: n x c, float32: class probabilities of the training nodes, without neighbour sums.
        cached: the same with the released neighbour sums; None where there are none.
        encoder: the student, a linear model taught by the answers: it answers for nodes never seen.
        settings: public numbers.
        statistics: what was released, so that anybody can make something better of it.
        receipt: what was paid and what is promised.
    """

    method = "moments"
    accesses = ("none", "cached", "own-edges", "public-graph")
    choices = (
        "nothing was chosen by looking at private edges. Constants are the same for all graphs; what is automatic was chosen "
        "from public features and labels, or from the released numbers, which is free."
    )

    answers: Tensor
    cached: Tensor | None
    encoder: Encoder
    settings: MomentsSettings
    statistics: tuple[NoisyStatistic, ...]
    receipt: Receipt

    @property
    def class_names(self) -> tuple[object, ...]:
        """What the columns of the answers stand for."""
        return self.settings.class_names

    @property
    def training_nodes(self) -> str:
        """Checksum of the public feature table that the model was trained on."""
        return self.settings.training_nodes

    @property
    def best_answers(self) -> Tensor:
        """Of the training nodes: with neighbour sums where there are any."""
        return self.answers if self.cached is None else self.cached

    def tensors(self) -> dict[str, Tensor]:
        """The answers and the noisy statistics."""
        named = {f"statistic.{place}": statistic.value for place, statistic in enumerate(self.statistics)}
        return {"answers": self.answers, **named} | ({} if self.cached is None else {"cached": self.cached})

    def description(self) -> str:
        """What it is, for the model card."""
        names = ", ".join(dict.fromkeys(statistic.name for statistic in self.statistics))
        return (
            f"Noisy statistics of the edges of a private graph were released once ({names}). From these and from public\n"
            "features and labels alone an ensemble answers for the nodes of that graph, and a linear model, taught by it, for\n"
            f"nodes never seen. Estimated share of edges inside a class: {self.settings.homophily:.2f}."
        )
