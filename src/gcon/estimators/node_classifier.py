"""The default estimator: `NodeClassifier(epsilon=1.0).fit(data).predict(data)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from gcon.estimators.estimator import Callback, PrivateClassifier
from gcon.methods.method import check_seed
from gcon.methods.moments import Moments, MomentsModel
from gcon.privacy.budget import protected_change
from gcon.privacy.ledger import Ledger


class NodeClassifier(PrivateClassifier):
    """A node classifier that is differentially private for every edge of its training graph.

    Noisy statistics of the edges are released once; everything else is computed from them and from public data
    (docs/moments.md). One set of settings serves all graphs, so there is nothing to tune.

    Args:
        epsilon: the privacy budget, greater than 0; infinity trains without noise and promises nothing.
        delta: in (0, 1); None means min(1e-5, 1/(10 n)) for n nodes. Never derive it from the number of edges.
        encoder_seed: of the edge-free networks' initial weights; public, and unrelated to the noise.
        device: where sums over edges run: `auto` (a GPU if there is one), `cpu`, `cuda` or `cuda:NUMBER`.
        protect_edges: how many edges, 1 to 10, may change together within epsilon and delta; more of them, more noise.
        class_shares: how common each class is among all nodes, by its name, where that is publicly known. Rough numbers are worth
            points where there are no validation nodes, and are not used where there are; never take them from the edges.
        classes: the class list; None takes the labels in train_mask. A `PrivateGraph` brings its own.
        ledger: pays for every fit on its data set. None: nobody counts, the statement says so, and a second fit is warned about.
        random_state: None for secure noise. A seed is for experiments: such a model carries no promise.
        verbose: print the name of every stage of `fit` on standard error; in a notebook, show a bar.
        callback: is called with the name of every stage of `fit` and about which share is done. What it raises ends the fit;
            what was reserved is charged.

    Attributes:
        model_: the `MomentsModel`: answers, student, statistics, receipt. All of it may be published.
        classes_: class labels.
        n_features_in_: how many columns a table must have.
        feature_names_in_: their names, after `fit` with a data frame that has them, and from a release that was trained so.

    Example:
        >>> import gcon
        >>> graph = gcon.datasets.social_circles(300, seed=1)
        >>> model = gcon.NodeClassifier(epsilon=2.0).fit(graph)
        >>> model.predict(graph).shape
        (300,)

    Privacy:
        `fit` reads all edges and releases `model_` once, paying epsilon and delta. `predict` reads no edge unless
        `access` says so. Fitted attributes hold nothing else that depends on edges.
    """

    model_type = MomentsModel
    shares: ClassVar = {
        "learn without edges": 0.0,
        "first release": 0.7,
        "learn from the first release": 0.75,
        "second release": 0.85,
        "count right answers": 0.95,
        "learn from what was released": 0.96,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        encoder_seed: int = 0,
        device: str = "auto",
        protect_edges: int = 1,
        class_shares: Mapping[Any, float] | None = None,
        classes: Sequence[object] | None = None,
        ledger: Ledger | None = None,
        random_state: int | None = None,
        verbose: bool = False,
        callback: Callback | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.encoder_seed = encoder_seed
        self.device = device
        self.protect_edges = protect_edges
        self.class_shares = class_shares
        self.classes = classes
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def _method(self, given: Mapping[str, Any]) -> Moments:
        check_seed("encoder_seed", given["encoder_seed"])
        settings = {name: given[name] for name in ("epsilon", "delta", "device", "protect_edges", "class_shares")}
        return Moments(**settings, seed=given["encoder_seed"])

    @classmethod
    def _settings_of(cls, model: MomentsModel) -> dict[str, Any]:
        budget = model.receipt.budget
        edges = protected_change(record=model.receipt.plan).edges
        return {"epsilon": budget.epsilon, "delta": budget.delta or None, "protect_edges": edges}
