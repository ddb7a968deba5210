"""Rows of many labelled nodes, round after round, from features that may lie on disk."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import torch
from torch import Tensor

from gcon.learn.encoder import scaled_input
from gcon.nodes import BATCH_ROWS

MANY_ROWS = BATCH_ROWS
STEP_ROWS = 4096
_RUN_ROWS = 256  # labelled nodes that follow each other are read together: a disk gives neighbouring rows at once


def rounds(
    features: Tensor, labelled: Tensor, *, unit: bool, generator: torch.Generator
) -> Iterator[list[tuple[Tensor, Tensor]]]:
    """Endless rounds of about `MANY_ROWS` labelled rows, each in steps of about `STEP_ROWS`; all rows take their turn.

    Short runs of rows are drawn at random, and the rows of all runs of a round are mixed. Only those are in memory.

    Args:
        features: of all nodes.
        labelled: numbers of the labelled nodes, rising.
        unit: scale rows to length 1.
        generator: decides on the order.

    Yields:
        One list a round: for every step float32 rows, and their places in `labelled`.
    """
    runs = torch.arange(len(labelled)).split(_RUN_ROWS)
    order = itertools.chain.from_iterable(
        torch.randperm(len(runs), generator=generator).tolist() for _ in itertools.count()
    )
    while True:
        drawn = sorted(itertools.islice(order, MANY_ROWS // _RUN_ROWS))
        places = torch.cat([runs[number] for number in drawn])
        rows = scaled_input(features[labelled[places]], unit=unit)
        mixed = torch.randperm(len(places), generator=generator)
        yield [(rows[part], places[part]) for part in mixed.tensor_split(math.ceil(len(mixed) / STEP_ROWS))]


def at_most_many(numbers: Tensor, seed: int) -> Tensor:
    """The numbers, or `MANY_ROWS` of them that the seed decides on, in their order."""
    if len(numbers) <= MANY_ROWS:
        return numbers
    drawn = torch.randperm(len(numbers), generator=torch.Generator().manual_seed(seed))[:MANY_ROWS]
    return numbers[drawn.sort().values]
