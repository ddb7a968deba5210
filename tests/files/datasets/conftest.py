"""The real graphs, read from GCON_DATA into a cache of this test session."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = os.environ.get("GCON_DATA")
    if not folder:
        pytest.skip("GCON_DATA is not set")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GCON_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield Path(folder)
