"""The type checker refuses a private tensor where a tensor is expected, before anything runs."""

from pathlib import Path

import pytest
from mypy import api

import gcon

# The rest of the package and of torch is not needed to know what a Private[Tensor] is; leaving it out saves 20 seconds.
CONFIG = """
[mypy]
strict = true
[mypy-gcon.*]
follow_imports = skip
[mypy-gcon.privacy.boundary]
follow_imports = normal
[mypy-gcon.errors]
follow_imports = normal
[mypy-torch.*]
follow_imports = skip
[mypy-torch]
follow_imports = silent
[mypy-torch._tensor]
follow_imports = silent
[mypy-torch._C]
follow_imports = silent
"""

SNIPPET = """
from torch import Tensor
from gcon.privacy.boundary import Private

def bare(values: Tensor) -> None: ...
def number(value: float) -> None: ...
def numbers(values: list[float]) -> None: ...
def wrapped(values: Private[Tensor]) -> None: ...
def wrapped_number(value: Private[float]) -> None: ...

def use(private: Private[Tensor], private_count: Private[int], public: Tensor) -> None:
    bare(public)  # accepted
    wrapped(private)  # accepted
    wrapped_number(private_count)  # accepted
    bare(private)  # refused
    number(private)  # refused
    numbers(private)  # refused
    wrapped(public)  # refused
    wrapped(private_count)  # refused
    private.sum()  # refused
    private.shape  # refused
    changed: Tensor = private  # refused
"""


@pytest.fixture(scope="module")
def complaints(tmp_path_factory):
    folder = tmp_path_factory.mktemp("types")
    (folder / "mypy.ini").write_text(CONFIG)
    (folder / "snippet.py").write_text(SNIPPET)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MYPYPATH", str(Path(gcon.__file__).parents[1]))
        out, err, _ = api.run(
            [
                "--config-file",
                str(folder / "mypy.ini"),
                "--cache-dir",
                str(folder / "cache"),
                str(folder / "snippet.py"),
            ]
        )
    assert not err
    return {int(line.split(":")[1]): line for line in out.splitlines() if ": error:" in line}


def lines_marked(word):
    return {number for number, line in enumerate(SNIPPET.splitlines(), 1) if line.endswith(f"# {word}")}


def test_private_is_refused_where_a_bare_value_is_expected(complaints):
    assert lines_marked("refused") == set(complaints)


def test_private_is_accepted_where_private_is_expected(complaints):
    assert lines_marked("accepted").isdisjoint(complaints)


def test_the_complaint_names_both_types(complaints):
    first = complaints[min(lines_marked("refused"))]
    assert 'incompatible type "Private[Tensor]"; expected "Tensor"' in first
