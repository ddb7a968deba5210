"""NumPy's .npz and .npy from unknown sources: what an archive announces is checked before unpacking. Loading never runs code."""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcon.files.file_problems import check_room


def tensor_over(array: NDArray[Any]) -> Tensor:
    """A tensor over the same memory. Where that is a read-only map, the system refuses every write to it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable", category=UserWarning)
        return torch.from_numpy(array)


def load_archive(path: Path, wanted: Sequence[str]) -> tuple[NDArray[Any] | None, Any, list[str]]:
    """The first wanted array of an .npz, else the sparse matrix in it if there is one, and the names of all arrays.

    Raises:
        TooLargeError: it would unpack to more than is trusted.
        Exception: whatever numpy, zipfile or scipy say about a damaged file.
    """
    with path.open("rb") as file, warnings.catch_warnings():
        warnings.simplefilter("error", np.exceptions.ComplexWarning)  # scipy would take complex numbers for places
        with zipfile.ZipFile(file) as archive:  # a member never gives more than it announces here
            check_room(path, sum(member.file_size for member in archive.infolist()))
            for member in archive.infolist():
                _check_member(archive, member)
        file.seek(0)
        with np.load(file, allow_pickle=False) as arrays:
            names = list(arrays.files)
            found = next((arrays[name] for name in wanted if name in names), None)
        if found is not None and not isinstance(found, np.ndarray):
            raise ValueError("a member that is no array")
        file.seek(0)
        matrix: Any = scipy.sparse.load_npz(file) if found is None and "format" in names else None
    if matrix is not None and matrix.format in ("csr", "csc", "bsr"):
        matrix.check_format(full_check=True)
        # scipy takes them on trust where the last is not positive, and then reads and writes wherever they lead.
        if (matrix.indptr[1:] < matrix.indptr[:-1]).any():
            raise ValueError("row pointers that fall")
    return found, matrix, names


def _check_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Raise if an array announces more than its member holds: that is a damaged file, and no lack of memory."""
    if not member.filename.endswith(".npy"):
        return
    with archive.open(member) as file:
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        read = readers.get(np.lib.format.read_magic(file))
        if read is not None:
            shape, _, dtype = read(file)
            if math.prod(shape) * dtype.itemsize > member.file_size:
                raise ValueError("an array that announces more than is there")


def dense(path: Path, matrix: Any) -> NDArray[Any]:
    """A sparse matrix with all its zeros."""
    check_room(path, math.prod(matrix.shape) * max(matrix.dtype.itemsize, 4))
    values: NDArray[Any] = matrix.toarray()
    return values
