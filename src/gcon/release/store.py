"""A released model as a folder: numbers and words only, written whole or not at all, read without running code.

| file                | holds                                                                                         |
|---------------------|-----------------------------------------------------------------------------------------------|
| `model.safetensors` | the model's tensors and its encoder's                                                         |
| `release.json`      | format, library versions, settings, class names, receipt; size and SHA-256 of all other files |
| `privacy.json`      | the statement as data                                                                         |
| `privacy.md`        | the statement as sentences                                                                    |
| `README.md`         | the model card                                                                                |

The same model gives the same bytes. JSON is strict: infinity is the string "inf". `release.json` ends the writing and
starts the reading, so a folder without it is no release. Checksums find damage and careless edits; they are no signature.
Other files in the folder are ignored and never opened.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from gcon.errors import InputError, ReleaseFormatError
from gcon.methods.model import Model
from gcon.methods.record import GET_IT_AGAIN
from gcon.release.layout import NAMES, release_files, unfit
from gcon.release.read import load_release
from gcon.writing import whole_folder


def hold_room(folder: Path, *, num_nodes: int, num_features: int, num_classes: int) -> Path:
    """Take more room on the disk of a folder than a release needs, in a file that is removed when the room is needed.

    Raises:
        OSError: there is not so much.

    Privacy:
        Public sizes alone decide how much.
    """
    of_nodes = num_nodes * (28 * num_classes + 16)  # answers three times, counts twice, labels and codes
    of_features = 16 * (num_features + 1) * max(64, num_classes)
    size = of_nodes + of_features + 2**23  # moments of up to some hundred directions, and words
    path = folder / "room"
    if shutil.disk_usage(folder).free < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
    with open(path, "xb") as file:  # whoever made the folder removes it, whatever happens
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        except AttributeError:  # not on every Unix
            pass
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):  # nor on every disk
                raise OSError(error.errno, error.strerror, str(folder)) from None
    return path


def save_release(model: Model, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a released model into a new folder, all of it or nothing.

    The files are written to a hidden neighbour of the folder and read back; then the neighbour is renamed.

    Args:
        model: the released model.
        folder: where to; must not exist yet.
        overwrite: replace a release that is there (only a folder that holds nothing but a release). It is moved aside
            first and removed last. A process killed between the two renames leaves both models, whole, in hidden
            neighbours that end in `.old` and `.new`.

    Example:
        >>> import gcon, tempfile
        >>> model = gcon.GCON(epochs=5).fit(gcon.datasets.social_circles(100, seed=1)).model_
        >>> with tempfile.TemporaryDirectory() as place:
        ...     save_release(model, Path(place) / "friends")
        ...     load_release(Path(place) / "friends").receipt.budget
        Budget(epsilon=1.0, delta=1e-05)

    Privacy:
        Writes what is in the model, all of it public, and library versions. No seed, no count of edges, no time but the
        receipt's, no name of a user, a machine or a path.
    """
    if not isinstance(model, Model):
        rule, fix = "must be a released model", "Of a fitted classifier that is its model_."
        raise InputError("model", rule=rule, got=type(model).__name__, fix=fix)
    folder = Path(folder).absolute()
    if os.path.lexists(folder):
        if not overwrite:
            rule, fix = "must not exist yet", "Choose another name, or pass overwrite=True to replace a release."
            raise InputError("folder", rule=rule, got=f"'{folder}', which does", fix=fix)
        found: str | None = "a link or a file"
        if folder.is_dir() and not folder.is_symlink():
            others = sorted(entry.name for entry in folder.iterdir() if entry.name not in NAMES or entry.is_dir())
            found = f"a folder that also holds {others[0]!r}" if others else None
        if found is not None:
            rule = "must hold a release and nothing else to be overwritten"
            fix = "Move away what is there, or choose another name."
            raise InputError("folder", rule=rule, got=found, fix=fix)
    files = release_files(model)
    with whole_folder(folder, replaces=NAMES if overwrite else None) as new:
        for name in NAMES:
            (new / name).write_bytes(files[name])
        try:  # what cannot be read again as the same model is never given its name
            copy = load_release(new)
        except ReleaseFormatError as error:
            raise unfit(str(error).removesuffix(f". {GET_IT_AGAIN}")) from error
        parts = ("class_names", "receipt", "feature_columns")
        if copy.record() != model.record() or any(getattr(copy, part) != getattr(model, part) for part in parts):
            raise unfit("settings or a plan that JSON cannot hold, such as a tuple, or the word 'inf'")
        if release_files(copy) != files:
            raise unfit("tensors that read back differently")
