"""The part of a released model that reads features only, for programs without gcon: a `torch.nn.Module`, or ONNX.

Access `none` for nodes never seen is a short chain of public matrices. It is written down twice: once for torch, once for ONNX.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gcon.errors import MissingExtraError
from gcon.learn.encoder import scaled_rows
from gcon.learn.unit_rows import unit_rows
from gcon.methods.model import Model
from gcon.methods.objective import ObjectiveModel
from gcon.version import __version__

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

_OPSET, _IR = 18, 9  # old enough for runtimes of 2023


class FeaturesOnly(torch.nn.Module):
    """Features in, class probabilities out: what the model answers under access `none` for nodes that it was not trained on.

    Its weights are parameters that are not trained any further unless you ask for it (`requires_grad_()`).

    Attributes:
        class_names: what the columns of the answer stand for.
    """

    hidden_weight: Tensor | None
    hidden_bias: Tensor | None
    centre: Tensor | None
    weight: Tensor
    bias: Tensor | None
    class_names: tuple[object, ...]

    def __init__(self, model: Model) -> None:
        super().__init__()
        encoder = model.encoder
        self.class_names, self.unit_input = model.class_names, encoder.unit_input
        self.unit_hidden, self.shares = False, False
        parts = {"hidden_weight": encoder.hidden_weight, "hidden_bias": encoder.hidden_bias, "centre": None}
        if isinstance(model, ObjectiveModel):  # without edges all of its blocks are the encoded features
            blocks = model.weights.reshape(len(model.schemes.steps), -1, len(self.class_names))
            parts |= {"weight": blocks.mean(dim=0), "bias": None, "centre": encoder.centre}
            self.unit_hidden, self.shares = True, model.loss == "soft-margin"
        else:
            parts |= {"weight": encoder.head_weight, "bias": encoder.head_bias}
        for name, part in parts.items():
            kept = None if part is None else torch.nn.Parameter(part.detach().clone(), requires_grad=False)
            self.register_parameter(name, kept)

    def forward(self, features: Tensor) -> Tensor:
        """Class probabilities, float32, one row per node."""
        rows = scaled_rows(features, by="length" if self.unit_input else "nothing")
        if self.hidden_weight is not None and self.hidden_bias is not None:
            rows = torch.relu(rows @ self.hidden_weight + self.hidden_bias)
        if self.unit_hidden:
            rows = unit_rows(rows, self.centre)
        scores = rows @ self.weight
        if self.bias is not None:
            scores = scores + self.bias
        if not self.shares:
            return torch.softmax(scores, dim=1).float()
        shares = torch.sigmoid(scores)
        return (shares / shares.sum(dim=1, keepdim=True)).float()


def onnx_bytes(model: Model) -> bytes:
    """The same as an ONNX file: input `features` (float32, n x d), output `probabilities` (float32, n x c).

    Its metadata hold the class names and the promise.

    Raises:
        MissingExtraError: the package onnx is not installed.
    """
    try:
        from onnx import TensorProto, checker, helper
    except ImportError:
        raise MissingExtraError("onnx", extra="onnx") from None
    module = FeaturesOnly(model)
    chain = _Chain(module)
    width = int((module.weight if module.hidden_weight is None else module.hidden_weight).shape[0])
    given = helper.make_tensor_value_info("features", TensorProto.FLOAT, ["nodes", width])
    found = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["nodes", len(module.class_names)])
    graph = helper.make_graph(chain.nodes, "gcon", [given], [found], chain.constants)
    proto: ModelProto = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR,
        producer_name="gcon",
        producer_version=__version__,
    )
    said = {"classes": json.dumps([str(name) for name in module.class_names]), "promise": str(model.statement())}
    helper.set_model_props(proto, said)
    checker.check_model(proto)
    return bytes(proto.SerializeToString(deterministic=True))


class _Chain:
    """The nodes of a graph, one after the other; the last one gives `probabilities`."""

    def __init__(self, module: FeaturesOnly) -> None:
        from onnx import TensorProto, helper

        self._helper, self._double, self._float = helper, TensorProto.DOUBLE, TensorProto.FLOAT
        self.nodes: list[NodeProto] = []
        self.constants: list[Any] = []
        self._columns = self._constant(torch.tensor([1]))
        rows = "features"
        if module.unit_input:
            rows = self._add("Div", rows, self._never_zero(self._add("ReduceL2", rows, self._columns)))
        if module.hidden_weight is not None and module.hidden_bias is not None:
            rows = self._linear(rows, module.hidden_weight, module.hidden_bias)
            rows = self._add("Relu", rows)
        if module.unit_hidden:
            rows = self._unit(self._add("Cast", rows, to=self._double), module.centre, width=module.weight.shape[0])
        scores = self._linear(rows, module.weight, module.bias)
        if module.shares:
            shares = self._add("Sigmoid", scores)
            answer = self._add("Div", shares, self._add("ReduceSum", shares, self._columns))
        else:
            answer = self._add("Softmax", scores, axis=1)
        self.nodes.append(helper.make_node("Cast", [answer], ["probabilities"], to=self._float))

    def _unit(self, rows: str, centre: Tensor | None, *, width: int) -> str:
        """As `unit_rows`: first by the largest entry, then by the length."""
        if centre is not None:
            rows = self._add("Sub", rows, self._constant(centre.double()))
        largest = self._add("ReduceMax", self._add("Abs", rows), self._columns)
        rows = self._add("Div", rows, self._never_zero(largest, double=True))
        lengths = self._never_zero(self._add("ReduceL2", rows, self._columns), double=True)
        unit = torch.zeros(1, width, dtype=torch.float64)
        unit[0, 0] = 1.0
        shrink = unit_rows(unit)[0, 0]  # just below 1
        return self._add("Mul", self._add("Div", rows, lengths), self._constant(shrink))

    def _linear(self, rows: str, weight: Tensor, bias: Tensor | None) -> str:
        scores = self._add("MatMul", rows, self._constant(weight))
        return scores if bias is None else self._add("Add", scores, self._constant(bias))

    def _never_zero(self, lengths: str, *, double: bool = False) -> str:
        """The same, with 1 for 0: rows of zeros stay zero."""
        kind = torch.float64 if double else torch.float32
        zero, one = (self._constant(torch.tensor(number, dtype=kind)) for number in (0.0, 1.0))
        return self._add("Where", self._add("Equal", lengths, zero), one, lengths)

    def _constant(self, value: Tensor) -> str:
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value.detach().cpu().numpy(), name))
        return name

    def _add(self, operation: str, *inputs: str, **settings: Any) -> str:
        name = f"{operation.lower()}_{len(self.nodes)}"
        self.nodes.append(self._helper.make_node(operation, list(inputs), [name], **settings))
        return name
