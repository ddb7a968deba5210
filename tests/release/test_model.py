"""The paper's released model: exactly what is public, and nothing else."""

import copy
import pickle
from dataclasses import FrozenInstanceError, fields

import pytest
import torch

from gcon.methods.objective import ObjectiveModel
from gcon.privacy.boundary import Private
from gcon.privacy.randomness import SeededRandomness


def test_the_fields_are_exactly_these(trained):
    common = ["class_names", "training_nodes", "training_rows", "encoder", "receipt", "feature_columns"]
    names = [*common, "weights", "schemes", "inference_restart", "loss"]
    assert [entry.name for entry in fields(ObjectiveModel)] == names
    assert set(vars(trained())) == set(names)


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


def test_nothing_private_and_no_edge_is_inside(trained):
    model = trained()
    inside = everything_inside(model, [])
    assert not any(isinstance(value, Private) for value in inside)
    digests = model.training_rows  # of public rows
    tensors = [value for value in inside if isinstance(value, torch.Tensor) and value is not digests]
    assert len(tensors) == 6  # weights, four of the encoder, its centre
    assert all(tensor.is_floating_point() and tensor.numel() < 60 for tensor in tensors)
    assert not any(tensor.requires_grad or tensor.grad_fn is not None for tensor in tensors)


def test_the_storage_of_the_weights_holds_the_weights_only(trained):
    weights = trained().weights
    assert weights.untyped_storage().nbytes() == weights.numel() * 8
    assert weights.shape == (4, 3)
    assert weights.dtype == torch.float64


def test_it_can_be_stored_and_read_again(trained, circles):
    model = trained()
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert torch.equal(again.weights, model.weights)
        assert again.receipt == model.receipt
        for name in ("schemes", "inference_restart", "loss", "class_names", "training_nodes"):
            assert getattr(again, name) == getattr(model, name)
        assert str(again.statement()) == str(model.statement())
        features = circles[0].features
        assert torch.equal(again.encoder.encode(features), model.encoder.encode(features))


def test_it_cannot_be_changed(trained):
    model = trained()
    for name in ("weights", "receipt"):
        with pytest.raises(FrozenInstanceError):
            setattr(model, name, None)


def test_the_statement_is_that_of_the_receipt(trained):
    model = trained(epsilon=0.5, delta=1e-6)
    assert "(0.5, 1e-06)-differentially private" in str(model.statement())
    assert model.statement().fields["plan"] == model.receipt.plan


def test_a_seeded_model_says_so(trained):
    text = str(trained(randomness=SeededRandomness(8675309)).statement())
    assert "There is no promise" in text
    assert "8675309" not in text
