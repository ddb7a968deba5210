"""Where noise comes from: random bytes, from the operating system unless an experiment asks for a seed."""

from __future__ import annotations

import os
from typing import Final, NoReturn, Protocol, final

import numpy as np

from gcon.errors import BoundaryError, InputError


class Randomness(Protocol):
    """A source of random bytes. All samplers of the package draw from `take` alone."""

    @property
    def source(self) -> str:
        """Public words for the source; never the seed."""

    @property
    def keeps_promise(self) -> bool:
        """Whether noise from this source cannot be predicted by anybody."""

    def take(self, count: int, /) -> bytes:
        """The next `count` random bytes; no byte is ever given twice."""


@final
class SystemRandomness:
    """Bytes of the operating system's cryptographic generator."""

    source: Final = "operating system"
    keeps_promise: Final = True

    take = staticmethod(os.urandom)
    """The next so many random bytes."""


@final
class SeededRandomness:
    """Repeatable bytes, for experiments. Whoever knows the seed can subtract the noise, so there is no promise.

    The seed is never shown; the state cannot be copied or stored, so noise is never drawn twice.
    """

    source: Final = "seeded: no promise"
    keeps_promise: Final = False

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Generator(np.random.Philox(seed))

    def take(self, count: int) -> bytes:
        """The next `count` bytes of the sequence."""
        return self._generator.bytes(count)

    def __repr__(self) -> str:
        return f"<randomness, {self.source}>"

    def _refuse(self, *_: object) -> NoReturn:
        raise BoundaryError("A random state cannot be copied or stored: the same noise would be drawn twice.")

    __copy__ = __deepcopy__ = __reduce_ex__ = __getstate__ = _refuse


def randomness_from(seed: int | None) -> Randomness:
    """System randomness for None, repeatable randomness without a promise for a seed."""
    if seed is None:
        return SystemRandomness()
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(
            "random_state",
            rule="must be None or a non-negative integer",
            got=f"a {type(seed).__name__}",
            fix="Use None for a release with a promise; a seed is for experiments.",
        )
    return SeededRandomness(int(seed))
