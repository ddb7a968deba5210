"""What is expensive and needed by several workers of a parallel run is made once."""

import fcntl
import os


def once(tmp_path_factory, name, make):
    """The text that `make` gives; the first worker that asks makes it, the others wait and read it."""
    place = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = place.parent
    with (place / name).open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        if not (text := file.read()):
            file.write(text := make())
    return text
