"""One target on one graph: what `gcon attack` does between opening the edges and printing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gcon.edges.edge_list import EdgeList
from gcon.edges.graph import private_graph
from gcon.errors import InputError
from gcon.methods.method import Method, Predictor, PrivateMethod
from gcon.methods.model import Model
from gcon.nodes import PublicNodes
from gcon.privacy.budget import checked_budget
from gcon.privacy.randomness import SystemRandomness
from gcon.release.read import load_release
from gcon.writing import write_whole
from gcon_lab.attacks.roc import Roc, roc_figure
from gcon_lab.attacks.view import Clue
from gcon_lab.experiments.attacks.attacked import ATTACKED, reference_of
from gcon_lab.experiments.attacks.clues import released_clues
from gcon_lab.experiments.attacks.judged import FALSE_ALARM
from gcon_lab.experiments.attacks.measure import Measured, Progress, attack_all, canary_run, sample
from gcon_lab.methods.competitor import with_budget
from gcon_lab.methods.fitted import fit
from gcon_lab.tables import records

_REFERENCE_OF_MODEL = {"paper": "gcon", "moments": "moments"}


@dataclass(frozen=True, eq=False)
class AttackTarget:
    """Who is attacked: a method that is trained for it, or a model that was released before."""

    name: str
    method: Method | None
    model: Model | None = None

    @property
    def kind(self) -> str:
        """The method whose edge-free reference is compared with."""
        return self.name if self.model is None else _REFERENCE_OF_MODEL[self.model.method]

    @property
    def epsilon(self) -> float | None:
        """Of the promise; None if there is none."""
        if self.model is not None:
            budget = self.model.receipt.budget.epsilon
        else:
            budget = self.method.epsilon if isinstance(self.method, PrivateMethod) else math.inf
        return budget if math.isfinite(budget) else None

    def delta_for(self, nodes: PublicNodes) -> float:
        if self.model is not None:
            return self.model.receipt.budget.delta
        given = self.method.delta if isinstance(self.method, PrivateMethod) else None
        return checked_budget(1.0, None, nodes.num_nodes).delta if given is None else given

    def check_nodes(self, nodes: PublicNodes) -> None:
        """A released model is attacked on the graph that it was trained on."""
        if self.model is not None and self.model.training_nodes != nodes.fingerprint:
            rule = "must have the nodes that the model was trained on"
            raise InputError(
                "source", rule=rule, got="others", fix="The model tells nothing about other graphs' edges."
            )


def check_target(name: str, *, epsilon: float | None, delta: float | None, canaries: int) -> AttackTarget:
    """The target; everything is checked before a file of edges is read."""
    if name in ATTACKED:
        return AttackTarget(name, with_budget(ATTACKED[name], epsilon=epsilon, delta=delta))
    if not Path(name).is_dir():
        rule = f"must be a release folder, or one of {', '.join(ATTACKED)}"
        raise InputError("target", rule=rule, got=repr(name), fix="gcon baseline list describes the methods.")
    if epsilon is not None or delta is not None or canaries:
        rule = "belong to a method, which is trained anew"
        raise InputError("epsilon, delta, canaries", rule=rule, got="a release folder", fix="Leave them out.")
    return AttackTarget(name, None, load_release(Path(name)))


@dataclass(frozen=True)
class Row:
    """One attack under one access; `gain` is over the same attack on the reference."""

    access: str
    attack: str
    auc: float
    true_positives_at_0_1_percent: float
    true_positives_at_1_percent: float
    reference: str
    reference_auc: float | None
    gain: float | None


@dataclass(frozen=True)
class CanaryRow:
    access: str
    attack: str
    covered: bool
    coins: int
    guesses: int
    right: int
    auc: float
    p: float | None
    holds: bool | None


@dataclass(frozen=True, eq=False)
class Found:
    rows: list[Row]
    canaries: list[CanaryRow]
    curves: dict[str, Roc]
    promise: tuple[float, float] | None

    def words(self) -> Iterator[str]:
        yield f"{'access':11s} {'attack':28s} {'AUC':>6s} {'gain':>7s}  true positives at 0.1 % and 1 % false ones"
        for row in self.rows:
            gain = "" if row.gain is None else f"{row.gain:+.3f}"
            few, some = row.true_positives_at_0_1_percent, row.true_positives_at_1_percent
            yield f"{row.access:11s} {row.attack:28s} {row.auc:6.3f} {gain:>7s}  {few:.3f} {some:.3f}"
        for test in self.canaries:
            told = "nothing is promised" if test.holds is None else "the promise holds" if test.holds else "BROKEN"
            rate = "" if test.p is None else f", p = {test.p:.2g}"
            right = f"AUC {test.auc:.3f}, {test.right} of {test.guesses} right{rate}"
            yield f"canaries: {test.access}, {test.attack}: {right}: {told}"

    def write(self, out: Path, *, title: str) -> list[Path]:
        """The curves and the table, each whole or not at all, readable by their owner only."""
        drawn = roc_figure(self.curves, title=title, promise=self.promise)
        files = {"roc.svg": drawn, "attacks.csv": records([vars(row) for row in self.rows])}
        return [write_whole(out / name, content) for name, content in files.items()]


def run_attacks(
    target: AttackTarget, nodes: PublicNodes, edges: EdgeList, *, pairs: int, canaries: int, progress: Progress
) -> Found:
    """Train, attack, compare with the edge-free references.

    Privacy:
        Works on opened edges, inside the gate `diagnose`. The result depends on them without noise.
    """
    drawn = sample(edges, many=pairs)

    def attacked(trained: Predictor, released: tuple[Clue, ...] = ()) -> list[Measured]:
        return attack_all(trained.score_functions, nodes.features, edges, drawn, released=released, progress=progress)

    def fitted(method: Method) -> Predictor:
        progress(f"train {method.name}")
        graph = private_graph(nodes, edges.edge_index(), name="attacked")
        return fit(method, graph, randomness=SystemRandomness()).trained

    if target.method is not None:
        found = attacked(fitted(target.method))
    else:
        assert target.model is not None
        progress("read the release")
        found = attacked(target.model, released_clues(target.model, nodes))
    references = {name: attacked(fitted(ATTACKED[name]())) for name in _references(target.kind, found)}
    tests = list(_canary_rows(target, nodes, edges, canaries, progress)) if canaries else []
    curves = {f"{each.access}, {each.attack}": each.roc for each in found if _is_drawn(each)}
    promise = None if target.epsilon is None else (target.epsilon, target.delta_for(nodes))
    return Found([_row(target.kind, each, references) for each in found], tests, curves, promise)


def _references(kind: str, found: list[Measured]) -> set[str]:
    return {compared[0] for each in found if (compared := reference_of(kind, each.access)) is not None}


def _row(kind: str, each: Measured, references: dict[str, list[Measured]]) -> Row:
    compared, name, level = reference_of(kind, each.access), "", None
    if compared is not None:
        name = f"{compared[0]} ({compared[1]})"
        same = (
            other for other in references[compared[0]] if (other.access, other.attack) == (compared[1], each.attack)
        )
        level = next((other.roc.area for other in same), None)
    rates = each.roc.true_positives_at(0.001), each.roc.true_positives_at(0.01)
    gain = None if level is None else each.roc.area - level
    return Row(each.access, each.attack, each.roc.area, *rates, name, level, gain)


def _is_drawn(each: Measured) -> bool:
    """One distance and one learned model per access keep the drawing readable."""
    return each.attack in ("influence", "similarity-correlation", "supervised-logistic", "replay", "white-box")


def _canary_rows(
    target: AttackTarget, nodes: PublicNodes, edges: EdgeList, canaries: int, progress: Progress
) -> Iterator[CanaryRow]:
    assert target.method is not None, "a released model has no canaries in it"
    progress(f"train {target.name} with canaries")
    noise = SystemRandomness()
    seed = int.from_bytes(noise.take(7), "little")
    results = list(canary_run(target.method, nodes, edges, canaries=canaries, seed=seed, randomness=noise))
    level = FALSE_ALARM / max(1, sum(each.covered for each in results))
    for each in results:
        p = None if target.epsilon is None else each.guesses.p_value(target.epsilon, target.delta_for(nodes))
        counts = each.guesses.coins, each.guesses.made, each.guesses.right
        holds = p >= level if each.covered and p is not None else None
        yield CanaryRow(each.access, each.attack, each.covered, *counts, each.area, p, holds)
