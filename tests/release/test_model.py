"""The released model: exactly what is public, and one price a plan."""

import copy
import math
import pickle
from dataclasses import FrozenInstanceError, fields

import pytest
import torch

from gcon.edges.schemes import Schemes
from gcon.errors import PlanMismatchError
from gcon.methods.objective import ObjectiveModel, release_model, release_models
from gcon.privacy.boundary import Private
from gcon.privacy.budget import NOTHING, Budget, compose
from gcon.privacy.randomness import SeededRandomness, SystemRandomness


def release(kit, *plans, ledger=None, randomness=None, aggregates=None, single=True):
    function = release_model if single else release_models
    return function(
        kit.mechanism(*plans),
        aggregates or kit.aggregates,
        encoder=kit.encoder,
        settings=kit.settings(),
        ledger=ledger or kit.ledger(data_set="circles"),
        randomness=randomness or SystemRandomness(),
        purpose="a test",
    )


def test_the_fields_are_exactly_these(kit):
    assert [entry.name for entry in fields(ObjectiveModel)] == ["weights", "encoder", "settings", "receipt"]
    assert set(vars(release(kit))) == {"weights", "encoder", "settings", "receipt"}


def everything_inside(value, seen):
    seen.append(value)
    if isinstance(value, list | tuple):
        for entry in value:
            everything_inside(entry, seen)
    elif isinstance(value, dict):
        for entry in (*value, *value.values()):
            everything_inside(entry, seen)
    elif not isinstance(value, torch.Tensor) and hasattr(value, "__dict__"):
        everything_inside(vars(value), seen)
    return seen


def test_nothing_private_and_no_edge_is_inside(kit):
    inside = everything_inside(release(kit), [])
    assert not any(isinstance(value, Private) for value in inside)
    tensors = [value for value in inside if isinstance(value, torch.Tensor)]
    assert len(tensors) == 6  # weights, four of the encoder, its centre
    assert all(tensor.is_floating_point() and tensor.numel() < 60 for tensor in tensors)
    assert not any(tensor.requires_grad or tensor.grad_fn is not None for tensor in tensors)


def test_the_storage_of_the_weights_holds_the_weights_only(kit):
    weights = release(kit).weights
    assert weights.untyped_storage().nbytes() == weights.numel() * 8
    assert weights.shape == (4, 3)
    assert weights.dtype == torch.float64


def test_it_can_be_stored_and_read_again(kit):
    model = release(kit)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert torch.equal(again.weights, model.weights)
        assert again.receipt == model.receipt
        assert again.settings == model.settings
        assert str(again.statement()) == str(model.statement())
        features = kit.graph.nodes.features
        assert torch.equal(again.encoder.encode(features), model.encoder.encode(features))


def test_it_cannot_be_changed(kit):
    model = release(kit)
    for name in ("weights", "receipt"):
        with pytest.raises(FrozenInstanceError):
            setattr(model, name, None)


def test_the_statement_is_that_of_the_receipt(kit):
    model = release(kit, kit.plan(0.5, 1e-6))
    assert "(0.5, 1e-06)-differentially private" in str(model.statement())
    assert model.statement().fields["plan"] == kit.mechanism(kit.plan(0.5, 1e-6)).public_record()


def test_a_batch_of_plans_costs_the_sum(kit):
    plans = [kit.plan(epsilon, 1e-6) for epsilon in (0.1, 0.2, 0.3)]
    ledger = kit.ledger()
    models = release(kit, *plans, ledger=ledger, single=False)
    assert len(models) == 3
    assert ledger.total() == Budget(0.6, 3e-6) == compose(plan.budget for plan in plans)
    assert len(ledger.entries()) == 1
    assert all(model.receipt.budget == Budget(0.6, 3e-6) for model in models)
    assert [record["epsilon"] for record in models[0].receipt.plan["plans"]] == [0.1, 0.2, 0.3]
    assert not torch.equal(models[0].weights, models[1].weights)


def test_equal_plans_of_a_batch_draw_their_own_noise(kit):
    first, second = release(kit, kit.plan(), kit.plan(), single=False)
    assert not torch.equal(first.weights, second.weights)


def test_each_model_of_a_batch_can_be_published_alone(kit):
    # A view would carry the weights of the whole batch into the file of one model.
    for model in release(kit, kit.plan(), kit.plan(2.0), single=False):
        assert model.weights.untyped_storage().nbytes() == model.weights.numel() * 8


def test_a_batch_with_one_plan_without_noise_has_no_promise(kit):
    models = release(kit, kit.plan(), kit.plan(math.inf), single=False)
    assert not any(model.receipt.keeps_promise for model in models)


def test_a_batch_solves_each_plan_as_if_alone(kit):
    alone = release(kit, kit.plan(math.inf, ridge=0.5)).weights
    batch = release(kit, kit.plan(math.inf, ridge=2.0), kit.plan(math.inf, ridge=0.5), single=False)
    torch.testing.assert_close(batch[1].weights, alone, rtol=0, atol=1e-8)


def test_a_batch_that_reads_no_edge_costs_nothing(kit):
    aggregates = kit.propagated(Schemes(restart=1.0, steps=(1,)))
    plans = [kit.plan(epsilon, aggregates=aggregates) for epsilon in (1.0, 2.0)]
    assert release(kit, *plans, aggregates=aggregates, single=False)[0].receipt.budget == NOTHING


def test_a_refused_plan_releases_no_model(kit):
    ledger = kit.ledger()
    with pytest.raises(PlanMismatchError):
        release(kit, kit.plan(edge_influence=0.01), ledger=ledger)
    assert not ledger.entries()


def test_a_seeded_model_says_so(kit):
    text = str(release(kit, randomness=SeededRandomness(8675309)).statement())
    assert "There is no promise" in text
    assert "8675309" not in text
