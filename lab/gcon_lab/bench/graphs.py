"""Symmetric graphs of any size, made on the spot on any device: row by row, so that no sorting of all edges is needed.

With m the power of two above n, node i is joined to a_k i + b_k (mod m) for those k of a few slots for which that is a node and a
hash of i and k says so. An odd a_k has an inverse, so the other end finds i again. Neighbours lie all over the place, which is
the worst case for caches.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gcon.edges.edge_list import EdgeList

KINDS = 16  # of nodes, by their number
ENTRIES_A_NODE = 40  # unless something else is asked for
_SHARE = 0.6  # of the slots of a node are edges, about
_CANDIDATES = {"cpu": 2**21, "cuda": 2**26}  # slots that are looked at together


class MadeRows:
    """The rows of a made-up graph, some at a time.

    Args:
        num_nodes: n.
        entries: both directions of all edges, about.
        device: where to make them.
        alike: the share of edges that join nodes whose numbers are the same modulo `KINDS`; else chance decides.
    """

    def __init__(self, num_nodes: int, entries: int, device: str = "cpu", *, alike: float = 0.0) -> None:
        self.num_nodes, self.device = num_nodes, torch.device(device)
        self._size = 1 << (num_nodes - 1).bit_length()
        wanted = entries / num_nodes / 2 * self._size / num_nodes  # candidates that are no nodes count too
        self._slots = max(1, round(wanted / _SHARE))
        self._bar = round(wanted / self._slots * 2**31)
        generator = torch.Generator().manual_seed(0)
        self._factors = (torch.randint(2**20, 2**60, (self._slots,), generator=generator) * 2 + 1).tolist()
        self._shifts = torch.randint(self._size, (self._slots,), generator=generator).tolist()
        for slot in range(round(alike * self._slots)):  # i -> a i + b keeps i modulo 16 if a is 1 and b is 0 there
            self._factors[slot] = self._factors[slot] // KINDS * KINDS + 1
            self._shifts[slot] = self._shifts[slot] // KINDS * KINDS
        self._inverses = [pow(factor, -1, self._size) for factor in self._factors]

    def chunks(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Consecutive rows: how many neighbours each has, and these one after another, rising, each once."""
        step = max(1, _CANDIDATES[self.device.type] // self._slots)
        for start in range(0, self.num_nodes, step):
            nodes = torch.arange(start, min(start + step, self.num_nodes), device=self.device)
            candidates = self._candidates(nodes).sort(dim=1).values
            there = candidates >= 0
            there[:, 1:] &= candidates[:, 1:] != candidates[:, :-1]
            yield there.sum(dim=1), candidates[there].to(torch.int32)

    def _candidates(self, nodes: Tensor) -> Tensor:
        """Two per slot, -1 where there is no edge."""
        found = torch.empty(len(nodes), 2 * self._slots, dtype=torch.int64, device=self.device)
        for slot, (factor, inverse, shift) in enumerate(zip(self._factors, self._inverses, self._shifts, strict=True)):
            forward = (nodes * factor).add_(shift).bitwise_and_(self._size - 1)
            backward = (nodes - shift).mul_(inverse).bitwise_and_(self._size - 1)
            for place, other, first in ((0, forward, nodes), (1, backward, backward)):
                there = (_hash(first * self._slots + slot) < self._bar) & (other < self.num_nodes) & (other != nodes)
                found[:, 2 * slot + place] = torch.where(there, other, -1)
        return found


def made_edges(num_nodes: int, entries: int, device: str = "cpu", *, alike: float = 0.0) -> EdgeList:
    """The whole graph in memory. On a GPU the rows are made twice, so that nothing is ever there twice."""
    rows = MadeRows(num_nodes, entries, device, alike=alike)
    kept = None if rows.device.type == "cuda" else list(rows.chunks())
    pointers = torch.zeros(num_nodes + 1, dtype=torch.int64, device=rows.device)
    torch.cumsum(torch.cat([degrees for degrees, _ in kept or rows.chunks()]), 0, out=pointers[1:])
    columns = torch.empty(int(pointers[-1]), dtype=torch.int32, device=rows.device)
    place = 0
    for _, part in kept or rows.chunks():
        columns[place : place + len(part)] = part
        place += len(part)
    return EdgeList(pointers, columns, num_nodes)


def save_edges(edges: EdgeList, folder: Path) -> None:
    """Keep a graph for the processes of a run; written once."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "pointers.npy", edges.row_pointers.numpy())
    np.save(folder / "columns.npy", edges.columns.numpy())
    (folder / "done.json").write_text(json.dumps({"num_nodes": edges.num_nodes}))


def load_edges(folder: Path) -> EdgeList:
    """Such a graph in memory."""
    pointers, columns = (torch.from_numpy(np.load(folder / name)) for name in ("pointers.npy", "columns.npy"))
    return EdgeList(pointers, columns, json.loads((folder / "done.json").read_text())["num_nodes"])


def _hash(numbers: Tensor) -> Tensor:
    """Whole numbers below 2^31 that look random."""
    mixed = numbers * 0x5851F42D4C957F2D + 0x14057B7EF767814F
    mixed = (mixed ^ (mixed >> 29)) * 0x2545F4914F6CDD1D
    return (mixed >> 31) & (2**31 - 1)
