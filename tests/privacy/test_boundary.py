"""Private: every quiet way out is refused, and no refusal says what is inside."""

import copy
import inspect
import io
import json
import math
import operator
import pickle
import pprint
import re
import shelve
import statistics
from dataclasses import asdict, dataclass

import numpy as np
import pytest
import torch

from gcon.errors import BoundaryError, GconError
from gcon.privacy.boundary import Private
from gcon.privacy.opening import apply_private

KINDS = {
    "number": 977,
    "float": 977.5,
    "text": "977",
    "list": [977, 978],
    "mapping": {977: 978},
    "array": np.array([977.0, 978.0]),
    "tensor": torch.tensor([977.0, 978.0]),
    "truth": True,
    "nothing": None,
}


@pytest.fixture(params=KINDS, ids=str)
def secret(request):
    return Private(KINDS[request.param], "some numbers")


def refused(function, *arguments, error=BoundaryError):
    with pytest.raises(error) as raised:
        function(*arguments)
    message = str(raised.value)
    assert "977" not in message
    assert "978" not in message
    return raised.value


SHOWN = {
    "repr": repr,
    "str": str,
    "format": lambda private: f"{private}",
    "format with a width": lambda private: f"{private:>80}",
    "format as a number": lambda private: f"{private:.3f}",
    "percent": lambda private: "%s" % private,  # noqa: UP031
    "percent r": lambda private: "%r" % private,  # noqa: UP031
    "pretty print": pprint.pformat,
    "method": lambda private: format(private, "d"),
}


@pytest.mark.parametrize("show", SHOWN.values(), ids=SHOWN)
def test_printing_shows_the_description_only(secret, show):
    assert show(secret) == "<private: some numbers>"


def test_printing_from_inside_containers(secret, capsys):
    print(secret, [secret], {"key": secret}, (secret,))
    assert capsys.readouterr().out == (
        "<private: some numbers> [<private: some numbers>] {'key': <private: some numbers>} (<private: some numbers>,)\n"
    )


REFUSED = {
    # size and content
    "len": len,
    "iter": iter,
    "list": list,
    "tuple": tuple,
    "set": set,
    "dict": dict,
    "unpack": lambda private: [*private],
    "enumerate": enumerate,
    "zip": zip,
    "reversed": reversed,
    "index": lambda private: private[0],
    "slice": lambda private: private[:1],
    "contains": lambda private: 977 in private,
    "is in a list": lambda private: private in [1, 2],
    "bytes": bytes,
    # comparison
    "equal to itself": lambda private: private == private,
    "equal": lambda private: private == 977,
    "equal, other side": lambda private: operator.eq(977, private),
    "not equal, other side": lambda private: operator.ne(977, private),
    "less, other side": lambda private: operator.lt(977, private),
    "not equal": lambda private: private != 977,
    "less": lambda private: private < 977,
    "less or equal": lambda private: private <= 977,
    "greater": lambda private: private > 977,
    "greater or equal": lambda private: private >= 977,
    "sorted": lambda private: sorted([private, private]),
    "max": lambda private: max(private, private),
    "min": lambda private: min([private, private]),
    # hashing
    "hash": hash,
    "dictionary key": lambda private: {private: 1},
    "set member": lambda private: {private},
    # truth and numbers
    "bool": bool,
    "if": lambda private: 1 if private else 2,
    "not": lambda private: not private,
    "and": lambda private: private and 1,
    "int": int,
    "float": float,
    "complex": complex,
    "operator.index": operator.index,
    "as an index": lambda private: [1, 2, 3][private],
    "hex": hex,
    "round": round,
    "floor": math.floor,
    "sqrt": math.sqrt,
    "isclose": lambda private: math.isclose(private, 977),
    "mean": statistics.mean,
    "sum": lambda private: sum([private]),
    # numpy
    "np.asarray": np.asarray,
    "np.array of objects": lambda private: np.array(private, dtype=object),
    "np.array of a list": lambda private: np.array([private]),
    "np ufunc": lambda private: np.add(private, 1),
    "np unary ufunc": np.sqrt,
    "array plus": lambda private: np.ones(2) + private,
    "array equal": lambda private: np.ones(2) == private,
    "array floor division": lambda private: np.ones(2) // private,
    "np function": np.sum,
    "np.concatenate": lambda private: np.concatenate([np.ones(2), private]),
    "np.linalg.norm": np.linalg.norm,
    "np.from_dlpack": np.from_dlpack,
    "np.save": lambda private: np.save(io.BytesIO(), private),
    # torch
    "torch.tensor": torch.tensor,
    "torch.as_tensor": torch.as_tensor,
    "torch.tensor of a list": lambda private: torch.tensor([private]),
    "torch.from_dlpack": torch.from_dlpack,
    "torch.add": lambda private: torch.add(private, 1),
    "torch.sum": torch.sum,
    "torch.cat": lambda private: torch.cat([torch.ones(2), private]),
    "torch.stack": lambda private: torch.stack([private]),
    "tensor plus": lambda private: torch.ones(2) + private,
    "tensor product": lambda private: torch.ones(2) @ private,
    "tensor equal": lambda private: torch.equal(torch.ones(2), private),
    "torch.save": lambda private: torch.save(private, io.BytesIO()),
    # arithmetic
    "plus": lambda private: private + 1,
    "plus, other side": lambda private: 1 + private,
    "minus": lambda private: private - 1,
    "minus, other side": lambda private: 1 - private,
    "times": lambda private: private * 2,
    "times, other side": lambda private: 2 * private,
    "divided": lambda private: private / 2,
    "divided, other side": lambda private: 2 / private,
    "matrix product": lambda private: private @ private,
    "power": lambda private: private**2,
    "negative": operator.neg,
    "absolute": abs,
    # storage
    "pickle": pickle.dumps,
    "old pickle": lambda private: pickle.dumps(private, protocol=0),
    "pickle of a list": lambda private: pickle.dumps([private]),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "deepcopy of a list": lambda private: copy.deepcopy([private]),
    "reduce": lambda private: private.__reduce__(),
    "getstate": lambda private: private.__getstate__(),
    # change in place
    "new attribute": lambda private: setattr(private, "note", 1),
    "changed value": lambda private: setattr(private, "_Private__value", 1),
    "changed description": lambda private: setattr(private, "_Private__description", "x"),
    "deleted value": lambda private: delattr(private, "_Private__value"),
}


@pytest.mark.parametrize("way_out", REFUSED.values(), ids=REFUSED)
def test_refusals(secret, way_out):
    error = refused(way_out, secret)
    # A torch function meets the class, not the value: it cannot name the description.
    assert "<private: some numbers>" in str(error) or "passed to a torch function" in str(error)
    assert "gcon.privacy.account" in str(error)


# What Private says nothing about: Python itself refuses.
REFUSED_BY_PYTHON = {
    "vars": vars,
    "__dict__": lambda private: private.__dict__,
    "json": json.dumps,
    "json of a list": lambda private: json.dumps([private]),
    "json with default": lambda private: json.dumps(private, default=vars),
    "memoryview": memoryview,
    "np.frombuffer": np.frombuffer,
    "torch.from_numpy": torch.from_numpy,
    "next": next,
    "call": lambda private: private(),
    "keywords": lambda private: dict(**private),
    "floor division": lambda private: private // 2,
    "modulo": lambda private: private % 2,
    "divmod": lambda private: divmod(private, 2),
    "power, other side": lambda private: 2**private,
    "positive": operator.pos,
    "invert": operator.invert,
    "bitwise and": lambda private: private & 1,
    "bitwise or": lambda private: 1 | private,
    "bitwise xor": lambda private: private ^ 1,
    "shift": lambda private: 1 << private,
    "percent d": lambda private: "%d" % private,  # noqa: UP031
    "value": lambda private: private.value,
    "shape": lambda private: private.shape,
    "append": lambda private: private.append(1),
    "item assignment": lambda private: operator.setitem(private, 0, 1),
    "join": lambda private: "".join([private]),
}


@pytest.mark.parametrize("way_out", REFUSED_BY_PYTHON.values(), ids=REFUSED_BY_PYTHON)
def test_refused_by_python(secret, way_out):
    refused(way_out, secret, error=(TypeError, AttributeError))


def test_the_refusal_is_a_type_error_of_ours(secret):
    error = refused(len, secret)
    assert isinstance(error, GconError)
    assert isinstance(error, TypeError)
    assert error.__cause__ is None
    assert error.__context__ is None


def test_nothing_of_the_value_shows_in_the_attributes(secret):
    assert not hasattr(secret, "__dict__")
    assert not hasattr(secret, "shape")
    assert not {"append", "keys", "shape", "dtype", "real", "upper"} & set(dir(secret))
    members = re.sub("0x[0-9a-f]+", "", repr(inspect.getmembers(type(secret))))  # an address may hold any digits
    assert "977" not in members


def test_size_does_not_tell():
    assert Private([1] * 1000, "x").__sizeof__() == Private([], "x").__sizeof__()
    assert operator.length_hint(Private([1] * 1000, "x")) == operator.length_hint(Private([], "x"))


def test_the_value_is_never_touched():
    touched = []

    class Tripwire:
        def __getattribute__(self, name):
            touched.append(name)
            return object.__getattribute__(self, name)

        def __repr__(self):
            touched.append("repr")
            return "977"

        def __len__(self):
            touched.append("len")
            return 977

        def __eq__(self, other):
            touched.append("eq")
            return True

        __hash__ = None

    private = Private(Tripwire(), "a tripwire")
    for way_out in [*REFUSED.values(), *REFUSED_BY_PYTHON.values()]:
        with pytest.raises((TypeError, AttributeError)):
            way_out(private)
    assert [show(private) for show in SHOWN.values()] == ["<private: a tripwire>"] * len(SHOWN)
    assert not touched


def test_records_that_hold_one_can_be_printed_but_not_unfolded(secret, tmp_path):
    @dataclass(frozen=True)
    class Record:
        value: Private
        bound: float

    record = Record(secret, 2.0)
    assert "977" not in repr(record)
    refused(asdict, record)
    refused(lambda: record == Record(secret, 2.0) and record == Record(Private(977, "x"), 2.0))
    refused(hash, record)
    with shelve.open(tmp_path / "shelf") as shelf:
        refused(operator.setitem, shelf, "key", secret)


def test_the_value_comes_through_untouched():
    value = torch.tensor([977.0])
    assert apply_private(lambda opened: opened, Private(value, "x")) is value


def test_a_type_argument_at_construction_changes_nothing():
    assert repr(Private[int](977, "a number")) == "<private: a number>"


def test_torch_functions_are_refused_in_the_way_torch_wants():
    # Torch warns about a plain method, and announces that it will be an error: the refusal must be a class method.
    assert isinstance(inspect.getattr_static(Private, "__torch_function__"), classmethod)
