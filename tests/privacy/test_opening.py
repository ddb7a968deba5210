"""Opening: by few modules, and no failure tells anything."""

import ast
import sys
import traceback
from pathlib import Path

import pytest
import torch

import gcon
from gcon.errors import BoundaryError, GconError, NoCertificateError, PrivateComputationError
from gcon.privacy.boundary import Private
from gcon.privacy.opening import apply_private

PACKAGE = Path(gcon.__file__).parent
SECRET = "977 is the number of edges"


def test_apply_private_returns_what_the_function_returns():
    assert apply_private(lambda value: value + 1, Private(1, "x")) == 2


def raise_value_error(opened):
    raise ValueError(f"bad value {opened}")


def raise_chained(opened):
    try:
        raise KeyError(opened)
    except KeyError as error:
        raise RuntimeError(f"while {opened}") from error


def raise_ours(opened):
    raise BoundaryError(f"ours {opened}")


def divide(opened):
    return len(opened) / 0


def torch_error(opened):
    return torch.ones(len(opened)) @ torch.ones(977)


def stop_iteration(opened):
    raise StopIteration(opened)


FAILURES = [raise_value_error, raise_chained, raise_ours, divide, torch_error, stop_iteration]


@pytest.mark.parametrize("fail", FAILURES)
@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_any_failure_becomes_one_fixed_message(fail, where):
    run = None if where == "here" else lambda function: function(SECRET)
    with pytest.raises(PrivateComputationError) as raised:
        apply_private(fail, Private(SECRET, "words", run=run))
    error = raised.value
    assert str(error) == str(fixed_failure())
    assert error.__cause__ is None
    assert error.__context__ is None
    assert not getattr(error, "__notes__", [])
    assert "977" not in "".join(traceback.format_exception(error))


def fixed_failure():
    with pytest.raises(PrivateComputationError) as raised:
        apply_private(divide, Private("", "empty"))
    return raised.value


@pytest.mark.parametrize("fail", FAILURES)
def test_no_private_frame_survives(fail):
    private = Private(SECRET, "words")
    with pytest.raises(PrivateComputationError) as raised:
        apply_private(fail, private)
    frames = [frame for frame, _ in traceback.walk_tb(raised.value.__traceback__)]
    names = [frame.f_code.co_name for frame in frames]
    assert names == ["test_no_private_frame_survives", "apply_private"]
    inside = frames[1].f_locals
    assert not any(isinstance(value, str) and "977" in value for value in inside.values())
    assert SECRET not in repr(inside)


@pytest.mark.parametrize("run", [None, lambda function: function(SECRET)], ids=["here", "elsewhere"])
def test_the_frame_that_raises_names_nothing_but_its_arguments(run):
    with pytest.raises(PrivateComputationError) as raised:
        apply_private(divide, Private(SECRET, "words", run=run))
    *_, last = (frame for frame, _ in traceback.walk_tb(raised.value.__traceback__))
    assert set(last.f_locals) == {"function", "private", "failure"}


def test_nothing_lingers_as_the_current_exception():
    with pytest.raises(PrivateComputationError):
        apply_private(raise_value_error, Private(SECRET, "words"))
    assert sys.exc_info() == (None, None, None)


def test_a_missing_certificate_passes_with_its_fixed_text():
    def fail(opened):
        local = opened  # noqa: F841
        raise NoCertificateError(f"not proven: {opened}")

    with pytest.raises(NoCertificateError, match=r"nothing is released\. The budget stays charged") as raised:
        apply_private(fail, Private(SECRET, "words"))
    assert "977" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    assert all(frame.f_code.co_name != "fail" for frame, _ in traceback.walk_tb(raised.value.__traceback__))


def test_a_missing_certificate_brings_no_chain():
    def fail(opened):
        try:
            raise ValueError(opened)
        except ValueError as error:
            raise NoCertificateError("not proven") from error

    with pytest.raises(NoCertificateError) as raised:
        apply_private(fail, Private(SECRET, "words"))
    assert "977" not in "".join(traceback.format_exception(raised.value))


class TimeOut(BaseException):
    """As test runners, schedulers and profilers have them."""

    def __init__(self, opened):
        super().__init__(f"stopped at {opened}")


class Quit(SystemExit, KeyboardInterrupt):
    """Cannot be made without an argument, as `type(error)()` would."""

    def __init__(self, opened):
        super().__init__(opened)


class Interruption(KeyboardInterrupt):
    def __init__(self, opened):
        super().__init__(f"interrupted at {opened}")


@pytest.mark.parametrize(
    ("raised", "left"),
    [
        (TimeOut, PrivateComputationError),
        (GeneratorExit, PrivateComputationError),
        (lambda opened: BaseExceptionGroup("all", [TimeOut(opened)]), PrivateComputationError),
        (SystemExit, SystemExit),
        (KeyboardInterrupt, KeyboardInterrupt),
        (Interruption, KeyboardInterrupt),
        (Quit, KeyboardInterrupt),
    ],
)
def test_what_ends_a_process_brings_nothing_out_either(raised, left):
    def fail(opened):
        local = opened  # noqa: F841
        try:
            raise ValueError(opened)
        except ValueError as error:
            raise raised(opened) from error

    with pytest.raises(left) as caught:
        apply_private(fail, Private(SECRET, "words"))
    error = caught.value
    assert type(error) is left
    assert error.__cause__ is error.__context__ is None
    assert "977" not in "".join(traceback.format_exception(error))
    assert "977" not in repr(getattr(error, "code", None))
    assert all(frame.f_code.co_name != "fail" for frame, _ in traceback.walk_tb(error.__traceback__))


def test_an_exit_is_no_success():
    def leave(opened):
        raise SystemExit(0)

    with pytest.raises(SystemExit) as caught:
        apply_private(leave, Private(SECRET, "words"))
    assert isinstance(caught.value.code, str)  # told, and exit code 1


def test_failures_are_ours():
    assert isinstance(fixed_failure(), GconError)


def sources():
    return {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}


def imported(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute, so that this scan sees them"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_the_slot_is_named_in_two_modules_only():
    named = {name for name, text in sources().items() if "_Private__" in text}
    assert named == {"privacy/boundary.py", "privacy/opening.py"}


def test_the_modules_that_open_private_values():
    openers = {name for name, text in sources().items() if "gcon.privacy.opening" in set(imported(text))}
    assert openers == {"privacy/account.py", "privacy/gates.py"}


def test_nobody_imports_by_name_at_run_time():
    for name, text in sources().items():
        if name.startswith(("privacy/", "edges/", "mechanisms/", "learn/", "methods/", "release/", "verify/")):
            assert "import_module" not in text
            assert "__import__" not in text
