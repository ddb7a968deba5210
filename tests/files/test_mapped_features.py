"""Features in an .npy stay where they are: nothing is copied, and nobody can write to the file."""

import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch

from gcon.files.node_features import features_of_arrays
from gcon.nodes import features_fingerprint

ROWS = np.arange(60.0).reshape(20, 3) / 7


def features(path, values, rows=20):
    np.save(path, values)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # torch's, about memory that cannot be written to, must not come through
        found, problems = features_of_arrays(path, rows)
    assert problems == []
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_file_is_the_memory(tmp_path, dtype):
    path = tmp_path / "x.npy"
    found = features(path, ROWS.astype(dtype))
    assert np.array_equal(found.numpy(), ROWS.astype(dtype))
    assert found.numpy().dtype == dtype
    content = bytearray(path.read_bytes())
    content[-found.element_size() :] = np.array(7, dtype=dtype).tobytes()
    with path.open("r+b") as file:  # a change of the file shows: there is no copy
        file.write(content)
    assert float(found[-1, -1]) == 7


@pytest.mark.parametrize(
    "values",
    [ROWS.astype(np.float16), np.asfortranarray(ROWS), ROWS.astype(int), ROWS > 3, ROWS.astype(">f4")],
    ids=str,
)
def test_other_numbers_are_converted_as_ever(tmp_path, values):
    wide = np.float64 if values.dtype == np.float64 else np.float32
    found = features(tmp_path / "x.npy", values)
    expected = torch.from_numpy(np.ascontiguousarray(values, dtype=wide))
    assert torch.equal(found, expected)
    assert found.dtype == expected.dtype
    assert found.is_contiguous()
    assert features_fingerprint(found) == features_fingerprint(expected)


def test_numbers_that_do_not_start_at_a_round_address(tmp_path):
    np.save(tmp_path / "x.npy", ROWS)
    content = (tmp_path / "x.npy").read_bytes()
    length = int.from_bytes(content[8:10], "little")
    header, data = content[10 : 10 + length - 1], content[10 + length :]
    moved = content[:8] + (length + 3).to_bytes(2, "little") + header + b"   \n" + data
    (tmp_path / "x.npy").write_bytes(moved)
    found, problems = features_of_arrays(tmp_path / "x.npy", 20)
    assert problems == []
    assert np.array_equal(found.numpy(), ROWS)


def test_a_write_ends_the_writer_and_leaves_the_file(tmp_path):
    """Torch knows no read-only tensors, so the system must refuse."""
    path = tmp_path / "x.npy"
    np.save(path, ROWS)
    before = path.read_bytes()
    script = (
        "import sys; from pathlib import Path; from gcon.files.node_features import features_of_arrays\n"
        "features_of_arrays(Path(sys.argv[1]), 20)[0][3, 1] = 5"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, check=False, timeout=60)
    assert done.returncode == -signal.SIGSEGV
    assert path.read_bytes() == before


@pytest.mark.parametrize("kept", [40, 127, 130, -1])
def test_a_file_that_was_cut_is_refused(tmp_path, kept):
    np.save(tmp_path / "x.npy", ROWS)
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:kept])
    found, problems = features_of_arrays(tmp_path / "x.npy", 20)
    assert found is None
    assert "damaged" in str(problems[0])


def test_an_archive_is_no_array(tmp_path):
    with (tmp_path / "x.npy").open("wb") as file:
        np.savez(file, x=ROWS)
    found, problems = features_of_arrays(tmp_path / "x.npy", len(ROWS))
    assert found is None
    assert "without pickle" in str(problems[0])
