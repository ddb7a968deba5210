"""polars and pyarrow, which read and write tables; where one of them is missing, the extra that brings them is named."""

from gcon.errors import MissingExtraError, wants_memory

try:
    import polars as pl
    import pyarrow  # type: ignore[import-untyped]
    import pyarrow.compute  # type: ignore[import-untyped]
    import pyarrow.csv  # type: ignore[import-untyped]
    import pyarrow.parquet  # type: ignore[import-untyped]
except ImportError as error:
    if wants_memory(error):
        raise  # it is installed
    raise MissingExtraError((error.name or "polars or pyarrow").split(".")[0], extra="files") from error

__all__ = ["pl", "pyarrow"]
