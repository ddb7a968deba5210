"""The student outside gcon: a torch module and an ONNX file that answer as `predict_proba` does for nodes never seen."""

import json
import sys

import numpy as np
import pytest
import torch

import gcon
from gcon.errors import InputError, MissingExtraError
from gcon.methods.features_only import onnx_bytes

# The default, and the paper's method with each loss, with an encoder and without.
KINDS = {
    "default": lambda: gcon.NodeClassifier(epsilon=2.0),
    "paper": lambda: gcon.GCON(epochs=5, steps=[0, 2]),
    "embeddings": lambda: gcon.GCON(epochs=5, loss="pseudo-huber:0.3", hidden=None, centre=False),
}


@pytest.fixture(scope="module", params=KINDS)
def model(request):
    return KINDS[request.param]().fit(gcon.datasets.social_circles(200, seed=1))


@pytest.fixture(scope="module")
def strangers(model):
    """Features of nodes that the model was not trained on; one row of zeros among them."""
    rows = torch.randn(50, model.n_features_in_, generator=torch.Generator().manual_seed(2))
    rows[7] = 0
    return rows


def test_the_module_answers_as_the_model_does(model, strangers):
    module = model.to_torch()
    assert isinstance(module, torch.nn.Module)
    np.testing.assert_allclose(module(strangers).numpy(), model.predict_proba(strangers), atol=1e-6)
    assert module.class_names == tuple(model.classes_)
    names = [module.class_names[number] for number in module(strangers).argmax(dim=1)]
    assert names == model.predict(strangers).tolist()


def test_the_module_is_a_copy_with_a_state(model, strangers):
    module, again = model.to_torch(), model.to_torch()
    before = again(strangers)
    for part in module.parameters():
        assert not part.requires_grad
        part.zero_()
    assert torch.equal(model.to_torch()(strangers), before)
    module.load_state_dict(again.state_dict())
    assert torch.equal(module(strangers), before)


def test_the_file_answers_as_the_model_does(model, strangers, tmp_path):
    onnx = pytest.importorskip("onnx")
    from onnx.reference import ReferenceEvaluator

    model.to_onnx(tmp_path / "model.onnx")
    proto = onnx.load(tmp_path / "model.onnx")
    (found,) = ReferenceEvaluator(proto).run(None, {"features": strangers.numpy()})
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, model.predict_proba(strangers), atol=1e-6)
    said = {entry.key: entry.value for entry in proto.metadata_props}
    assert json.loads(said["classes"]) == [str(name) for name in model.classes_]
    assert "differentially private" in said["promise"]
    with pytest.raises(InputError, match="must not exist yet"):
        model.to_onnx(tmp_path / "model.onnx")


def test_without_onnx_the_extra_is_named(model, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"gcon\[onnx\]"):
        onnx_bytes(model.model_)
    with pytest.raises(MissingExtraError):
        model.to_onnx(tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []
