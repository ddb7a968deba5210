"""The sweep against the product: a batch of models scores what each model scores alone, with the paper's promise."""

import dataclasses
import math
from types import SimpleNamespace

import polars as pl
import pytest
import torch

from gcon.edges.edge_list import public_edges
from gcon.edges.schemes import Schemes, propagate
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.learn.training_rows import training_rows
from gcon.mechanisms.aggregates import Aggregates
from gcon.mechanisms.influence import paper_influence
from gcon.mechanisms.objective_perturbation import ObjectivePerturbation
from gcon.mechanisms.samplers.objective_noise import objective_noise
from gcon.methods.objective import ObjectiveModel
from gcon.methods.own_edges import own_edge_predictions
from gcon.methods.public_graph import predict_on_public_graph
from gcon.privacy.gates import declassify
from gcon.privacy.ledger import MemoryLedger
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.experiments.sweep import models
from gcon_lab.experiments.sweep.graphs import (
    INDUCTIVE,
    MADE_UP,
    WITHOUT_LABELLED,
    open_graph,
    public_test_graphs,
    restricted,
    training_part,
)
from gcon_lab.experiments.sweep.grid import Grid, paper_grid, quick_grid
from gcon_lab.experiments.sweep.models import ModelUnit, seed_of, step_words

GRID = Grid(
    hidden=(8,),
    expansions=("labelled", "all"),
    restarts=(0.4,),
    schemes=((2,), (math.inf,)),
    losses=("soft-margin", "pseudo-huber:0.2"),
    ridges=(0.2, 1.0),
    budgets=(1.0, 4.0),
    inference_restarts=(0.1,),
)
UNIT = ModelUnit(graph=MADE_UP, run=1, hidden=8, grid=GRID)
PROBLEMS = list(GRID.objectives(GRID.budgets))
# Several schemes side by side, as on Actor: there is no public test graph then.
BLOCKS = dataclasses.replace(UNIT, grid=dataclasses.replace(GRID, schemes=((0, 1),), public_test=False))
ONE_BLOCK = [Schemes(0.4, steps) for steps in GRID.schemes]
ALL_SCHEMES = [*ONE_BLOCK, Schemes(0.4, (0, 1))]


def captured(unit):
    """The unit's results, and what each batch released, by the name that its noise is seeded with."""
    names, batches = [], {}

    def seed(name):
        names.append(name)
        return seed_of(name)

    def release(mechanism, edges, **options):
        released = models_release(mechanism, edges, **options)
        batches[names[-1].removeprefix(f"{unit.name}|")] = SimpleNamespace(
            mechanism=mechanism, edges=edges, weights=released.value, receipt=released.receipt
        )
        return released

    models_release = models.release_once
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "seed_of", seed)
        patch.setattr(models, "release_once", release)
        results = unit.results()
    assert len(names) == len(set(names)) == len(batches)
    seeds = {name: seed_of(name) for name in names}
    return SimpleNamespace(unit=unit, results=results, batches=batches, seeds=list(seeds.values()))


@pytest.fixture(scope="module")
def sweeps():
    return {unit: captured(unit) for unit in (UNIT, BLOCKS)}


@pytest.fixture
def swept(sweeps):
    return sweeps[UNIT]


@pytest.fixture
def sweep_of(sweeps):
    """The sweep in which these schemes are tried."""
    return lambda schemes: sweeps[UNIT if schemes in ONE_BLOCK else BLOCKS]


@pytest.fixture(scope="module")
def opened():
    return open_graph(MADE_UP, UNIT.run)


@pytest.fixture(scope="module")
def encoder(opened):
    return train_encoder(opened.graph.nodes, EncoderSettings(hidden=8, seed=UNIT.run))


@pytest.fixture(scope="module")
def encoded(opened, encoder):
    return encoder.encode(opened.graph.nodes.features)


def edges_of(edges):
    return {(node, int(other)) for node in range(edges.num_nodes) for other in edges.neighbours(node)}


def stored(swept, problem, **where):
    """The one stored pair of scores."""
    epsilon, loss, ridge = problem
    found = swept.results.filter(epsilon=epsilon, loss=loss, ridge=ridge, **where)
    assert found.height == 1
    return found["validation"][0], found["test"][0]


def scored(nodes, classes):
    """Validation and test micro-F1, counted node by node."""
    parts = []
    for mask in (nodes.validation_mask, nodes.test_mask):
        members = [node for node in range(nodes.num_nodes) if mask[node]]
        parts.append(sum(int(classes[node]) == int(nodes.labels[node]) for node in members) / len(members))
    return pytest.approx(tuple(parts), abs=1e-12)


def by_hand(opened, encoded, weights, steps, inference):
    """The paper's private inference, one node after the other."""
    classes = []
    for node in range(opened.edges.num_nodes):
        own, around = encoded[node], encoded[opened.edges.neighbours(node)]
        mean = (own + around.sum(dim=0)) / (len(around) + 1)
        hop = (1 - inference) * mean + inference * own
        row = torch.cat([hop if count else own for count in steps]) / len(steps)
        classes.append(int((row @ weights).argmax()))
    return classes


def product_model(batch, place, encoder, schemes):
    names = {"class_names": (0, 1, 2), "training_nodes": "", "schemes": schemes, "loss": PROBLEMS[place][1]}
    given = {"weights": batch.weights[place], "encoder": encoder, "receipt": batch.receipt}
    return ObjectiveModel(inference_restart=0.3, **names, **given)


def test_the_papers_grid():
    assert paper_grid("cora-ml").num_models == 9600  # ten runs: 96,000
    assert paper_grid("citeseer") == paper_grid("pubmed") == paper_grid("cora-ml")
    actor = paper_grid("actor")
    assert len(actor.schemes) == len(set(actor.schemes)) == 14
    assert {len(steps) for steps in actor.schemes} == {1, 2, 3}
    assert all(set(steps) <= {0, 1, 2, 5} and list(steps) == sorted(set(steps)) for steps in actor.schemes)
    assert not actor.public_test
    assert actor.num_models == 3 * 2 * 4 * 14 * 4 * 4 * 5
    for graph in ("cora-ml", "actor"):
        whole, quick = dataclasses.asdict(paper_grid(graph)), dataclasses.asdict(quick_grid(graph))
        assert all(set(quick[name]) <= set(whole[name]) for name in whole if name != "public_test")


def test_another_grid_has_another_digest():
    others = [
        dataclasses.replace(GRID, **{field.name: value})
        for field in dataclasses.fields(Grid)
        for value in [not GRID.public_test if field.name == "public_test" else getattr(GRID, field.name)[:-1]]
    ]
    digests = {grid.digest for grid in [GRID, *others]}
    assert len(digests) == 1 + len(dataclasses.fields(Grid))
    assert Grid().digest == Grid().digest
    units = [dataclasses.replace(UNIT, **change) for change in ({"run": 2}, {"hidden": 9}, {"graph": "actor"})]
    assert len({unit.name for unit in [UNIT, *units]}) == 4


@pytest.mark.parametrize("expand", GRID.expansions)
@pytest.mark.parametrize("schemes", ALL_SCHEMES, ids=str)
def test_a_batch_gives_what_each_problem_gives_alone(sweep_of, opened, encoder, encoded, expand, schemes):
    swept, name = sweep_of(schemes), f"{expand}|{schemes}"
    batch, rows = swept.batches[name], training_rows(opened.graph.nodes, encoder, expand)
    aggregates = Aggregates(encoded, schemes, bound="paper")
    for place in (0, 3, len(PROBLEMS) - 1):
        noise = SeededRandomness(seed_of(f"{swept.unit.name}|{name}"))
        for plan in batch.mechanism.plans[:place]:  # the noise of the problems before it
            objective_noise(
                noise, noise_rate=plan.noise_rate, num_features=plan.num_features, num_classes=plan.loss.num_classes
            )
        plan = batch.mechanism.plans[place]
        alone = ObjectivePerturbation(aggregates=aggregates, plans=(plan,), mask=rows.mask, targets=rows.targets)
        (weights,) = alone.apply(opened.edges, noise)
        # The final noise is drawn after that of all objectives, so it differs; it is small beside the other one.
        near = 12 * plan.final_noise
        assert float((weights - batch.weights[place]).abs().max()) < near
        (other,) = alone.apply(opened.edges, SeededRandomness(place))
        assert float((other - batch.weights[place]).abs().max()) > 2 * near
        classes = by_hand(opened, encoded, weights, schemes.steps, 0.1)
        where = {"expand": expand, "restart": 0.4, "steps": step_words(schemes.steps), "inference": "0.1"}
        assert stored(swept, PROBLEMS[place], **where) == scored(opened.graph.nodes, classes)


@pytest.mark.parametrize("schemes", ALL_SCHEMES, ids=str)
def test_scores_are_those_of_the_product(sweep_of, opened, encoder, encoded, schemes):
    swept = sweep_of(schemes)
    nodes, batch = opened.graph.nodes, swept.batches[f"all|{schemes}"]
    base = {"expand": "all", "restart": 0.4, "steps": step_words(schemes.steps)}
    public = dict(public_test_graphs(opened))
    for place, problem in enumerate(PROBLEMS):
        model = product_model(batch, place, encoder, schemes)
        for inference in (0.1, 0.4):
            classes = own_edge_predictions(model, encoded, opened.edges, restart=inference).classes
            where = base | {"access": "own-edges", "inference": f"{inference:g}"}
            assert stored(swept, problem, **where) == scored(nodes, classes)
        alone = by_hand(opened, encoded, model.weights, schemes.steps, 1.0)
        assert stored(swept, problem, **base, access="none") == scored(nodes, alone)
        where = base | {"access": "public-graph", "reading": WITHOUT_LABELLED}
        if problem[0] == 4.0 and schemes in ONE_BLOCK:
            classes = predict_on_public_graph(model, nodes.features, public[WITHOUT_LABELLED]).classes
            assert stored(swept, problem, **where) == scored(nodes, classes)
        else:
            assert swept.results.filter(epsilon=problem[0], access="public-graph").is_empty()


@pytest.mark.parametrize("schemes", ONE_BLOCK, ids=str)
def test_the_inductive_reading_trains_inside_its_part_and_scores_outside(swept, opened, encoder, encoded, schemes):
    nodes, part = opened.graph.nodes, training_part(opened)
    batch = swept.batches[f"all|{schemes}|inductive"]
    assert [plan.budget.epsilon for plan in batch.mechanism.plans] == [4.0] * 4
    assert batch.mechanism.mask.tolist() == part.tolist()
    opened_edges = declassify(batch.edges, reason="a test", ledger=MemoryLedger("test"))
    read = batch.mechanism.aggregates.of(opened_edges)
    kept_edges = [pair for pair in edges_of(opened.edges) if part[pair[0]] and part[pair[1]]]
    alone = public_edges(torch.tensor(kept_edges).T, nodes.num_nodes)
    assert torch.allclose(read, propagate(alone, encoded, schemes), rtol=0, atol=1e-12)
    rows = training_rows(nodes, encoder, "all")
    kept = [target for target, inside in zip(rows.targets.tolist(), part.tolist(), strict=True) if inside]
    assert batch.mechanism.targets.tolist() == kept
    labelled = swept.batches[f"labelled|{schemes}|inductive"].mechanism
    assert labelled.mask.tolist() == nodes.train_mask.tolist()
    problems = [problem for problem in PROBLEMS if problem[0] == 4.0]
    public = dict(public_test_graphs(opened))[INDUCTIVE]
    where = {"expand": "all", "restart": 0.4, "steps": step_words(schemes.steps), "reading": INDUCTIVE}
    for place, problem in enumerate(problems):
        classes = predict_on_public_graph(product_model(batch, place, encoder, schemes), nodes.features, public).classes
        assert stored(swept, problem, **where) == scored(nodes, classes)


def test_the_control_reads_no_edge_in_training(swept, opened, encoded):
    batch = swept.batches["labelled|without edges"]
    assert batch.mechanism.aggregates.edge_influence == 0
    assert not any(plan.adds_noise for plan in batch.mechanism.plans)
    for place, (loss, ridge) in enumerate([(loss, ridge) for loss in GRID.losses for ridge in GRID.ridges]):
        where = {"expand": "labelled", "restart": 1.0, "access": "own-edges", "inference": "0.4"}
        classes = by_hand(opened, encoded, batch.weights[place], (1,), 0.4)
        assert stored(swept, (math.inf, loss, ridge), **where) == scored(opened.graph.nodes, classes)
    settings = swept.results.filter(epsilon=math.inf, access="public-graph")["inference"].unique().sort().to_list()
    assert settings == ["restart 0.4, steps 2", "restart 0.4, steps inf"]


def test_readings_leave_out_the_edges_that_they_say(opened):
    nodes, part, whole = opened.graph.nodes, training_part(opened), edges_of(opened.edges)
    roles = nodes.train_mask | nodes.validation_mask | nodes.test_mask
    graphs = {name: edges_of(edges) for name, edges in public_test_graphs(opened)}
    labelled = {node for node in range(nodes.num_nodes) if nodes.train_mask[node]}
    assert graphs[WITHOUT_LABELLED] == {pair for pair in whole if not labelled & set(pair)}
    training = edges_of(restricted(opened.edges, part))
    inside = {node for node in range(nodes.num_nodes) if part[node]}
    assert training == {pair for pair in whole if set(pair) <= inside}
    assert graphs[INDUCTIVE] == {pair for pair in whole if not inside & set(pair)}
    assert training
    assert graphs[INDUCTIVE]
    assert not {node for pair in training for node in pair} & {node for pair in graphs[INDUCTIVE] for node in pair}
    assert labelled <= inside
    assert {node for node in inside - labelled if roles[node]} == set()
    assert len(inside - labelled) == int((~roles).sum()) // 2
    assert training_part(opened).tolist() == part.tolist()


def test_plans_have_the_papers_delta_and_bound(sweep_of, opened):
    assert opened.edge_count == len(edges_of(opened.edges))  # as the paper counts: both directions
    for expand, rows in (("labelled", int(opened.graph.nodes.train_mask.sum())), ("all", opened.edges.num_nodes)):
        for schemes in ALL_SCHEMES:
            batch = sweep_of(schemes).batches[f"{expand}|{schemes}"]
            bound = sum(paper_influence(0.4, count) for count in schemes.steps) / len(schemes.steps)
            assert len(batch.mechanism.plans) == len(PROBLEMS)
            for plan, (epsilon, loss, ridge) in zip(batch.mechanism.plans, PROBLEMS, strict=True):
                assert (plan.budget.epsilon, plan.budget.delta) == (epsilon, 1 / opened.edge_count)
                assert plan.theorem.edge_influence == pytest.approx(bound, rel=1e-8)
                assert plan.theorem.edge_influence >= bound
                assert plan.theorem.ridge >= ridge
                assert (plan.loss.name, plan.num_labelled) == (loss, rows)
                assert plan.num_features == 8 * len(schemes.steps)


def test_every_batch_has_its_own_noise_and_a_repeated_unit_the_same(swept):
    again = captured(UNIT)
    assert again.results.equals(swept.results)
    assert again.seeds == swept.seeds
    runs, ridges = dataclasses.replace(UNIT, run=2), dataclasses.replace(GRID, ridges=(1.0,))
    others = [captured(unit) for unit in (runs, dataclasses.replace(UNIT, grid=ridges))]
    seeds = [seed for sweep in [swept, *others] for seed in sweep.seeds]
    assert len(set(seeds)) == len(seeds) == 3 * len(swept.batches)
    batches = [batch for sweep in [swept, *others] for batch in sweep.batches.items()]
    drawn = [released.weights for name, released in batches if "without edges" not in name]
    assert len({float(weights[-1, 0, 0]) for weights in drawn}) == len(drawn)


def test_results_name_every_model_once(swept):
    keys = ["expand", "restart", "steps", "epsilon", "loss", "ridge", "access", "reading", "inference"]
    assert swept.results.select(keys).is_unique().all()
    assert set(swept.results.select("graph", "run", "hidden").unique().rows()) == {(MADE_UP, 1, 8)}
    private = swept.results.filter(pl.col("epsilon") < math.inf)
    own = private.filter(access="own-edges")
    assert own.select(keys[:6]).unique().height == GRID.num_models
    assert own.height == 2 * GRID.num_models  # alpha itself and one more
    assert private.filter(access="none").height == GRID.num_models
    assert private.filter(access="public-graph").height == GRID.num_models  # half of the budgets, two readings
