"""Every example in a docstring runs and says the truth."""

import doctest
import importlib.util
import pkgutil

import pytest

import gcon

NEEDS = {"gcon.edges.kernels.multiply_triton": "triton"}  # an extra that is not installed for `make test`
MODULES = sorted(
    name
    for name in ["gcon", *(module.name for module in pkgutil.walk_packages(gcon.__path__, "gcon."))]
    if name not in NEEDS or importlib.util.find_spec(NEEDS[name])
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = [test.name for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples]
    assert "gcon.estimators.gcon_classifier.GCON" in found
    assert len(set(found)) >= 5
