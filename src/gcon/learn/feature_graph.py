"""What public features say about who is alike: their principal directions, and a graph that everybody may know.

Features are taken as they are, or weighted (for bags of words tf-idf, so that the directions are those of latent semantic
indexing). Weights and directions are those of the sampled nodes (sample.py). In the graph every node is joined to the nodes with
the most similar rows along these directions. Nothing here can see private edges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, normalize

from gcon.learn import sample
from gcon.learn.cells import matches_in_cells
from gcon.learn.sparse_rows import THIN, SparseRows, compact, with_rows_divided

_NARROW = 1000  # so many columns have a square matrix of products that is cheap, and gives the directions exactly
_ENOUGH = 5000  # rows, about, whose directions are those of all
_MORE, _POWERS, _NEAR = 10, 8, 1e-6  # axes beside those that are kept, powers, and what keeps products of axes regular
_LITTLE, _NOTHING = 0.01, 1e-12  # beside what a node hears on average, and instead of a division by 0
_PARTS = 16  # that the similarities of a row are cut into
_COLUMNS = 32  # smoothed at a time: so few stay in the processor's cache; it does not change the result

Weighting = Callable[[Tensor], Tensor]  # features of some nodes, float32 -> unit rows
Times = Callable[[Tensor], Tensor]  # a table -> rows, or their transpose, times it


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Directions:
    """Leading principal directions of features (not centred), the strongest first.

    Attributes:
        weigh: makes unit rows of features.
        axes: d x k: weighted features times these are rows along the directions.
        rows: n x k, the nodes that the directions were found by along them.
    """

    weigh: Weighting
    axes: Tensor
    rows: Tensor

    def unit_rows(self, features: Tensor, device: str) -> Tensor:
        """Rows of length 1 for all nodes of a large graph, a block at a time (features may lie in a file); float32."""
        rows, axes = torch.empty(len(features), self.axes.shape[1]), self.axes.to(device)
        for nodes in sample.blocks(len(features)):
            rows[nodes] = normalize(self.weigh(features[nodes].to(device, torch.float32)) @ axes, dim=1).cpu()
        return rows


def principal_directions(
    features: Tensor | scipy.sparse.csr_matrix, width: int, *, weighted: bool = True, start: Tensor | None = None
) -> Directions:
    """The directions of unit rows of features; `width` of them, or fewer where there are fewer rows or columns.

    Args:
        features: n x d; sparse if they are mostly zeros.
        width: how many directions.
        weighted: by tf-idf for bags of words, to columns of mean 0 and deviation 1 for anything else; the weights are those of
            these features.
        start: axes of the same features with other weights, which are not far off; of wide ones the search begins there.
    """
    entries = compact(features) if isinstance(features, Tensor) else features
    kept, factors, centre, deviations = min(width, *features.shape), None, None, None
    given = features.to(torch.float32) if isinstance(features, Tensor) else torch.empty(0)
    if weighted and entries is not None and (entries.nnz == 0 or entries.data.min() >= 0):
        filled = np.bincount(entries.indices, minlength=entries.shape[1])
        factors = torch.from_numpy(np.log(entries.shape[0] / (1 + filled)).clip(0).astype(np.float32))
    elif weighted:
        if entries is not None:
            given, entries = torch.from_numpy(entries.toarray()), None
        centre, deviations = given.mean(dim=0), given.std(dim=0, correction=0)
        deviations = deviations.masked_fill(deviations == 0, 1.0)

    def weigh(some: Tensor) -> Tensor:
        if factors is not None:
            some = some * factors.to(some.device)
        if centre is not None and deviations is not None:
            some = (some - centre.to(some.device)) / deviations.to(some.device)
        return normalize(some, dim=1)

    scaled: Any
    if entries is not None:
        data = entries.data if factors is None else entries.data * factors.numpy()[entries.indices]
        scaled = scipy.sparse.csr_matrix((data, entries.indices, entries.indptr), shape=entries.shape)
        scaled = with_rows_divided(scaled, "length")
        sparse = SparseRows.of(scaled)
        products: tuple[Times, Times] = sparse.__matmul__, sparse.turned_times
    else:
        rows = weigh(given)
        scaled, products = rows.numpy(), (rows.__matmul__, rows.T.__matmul__)
    size, across = features.shape
    if across > _NARROW or (entries is not None and entries.nnz < THIN * size * across):
        axes, rows = _strongest(*products, start, across, kept)
        return Directions(weigh=weigh, axes=axes, rows=rows)
    some = scaled[:: max(size // _ENOUGH, 1)]
    some = some if isinstance(some, np.ndarray) else some.toarray()
    axes = torch.linalg.eigh(torch.from_numpy(some.T @ some).double()).eigenvectors  # the strongest last
    axes = axes[:, -kept:].flip(1).float().contiguous()
    return Directions(weigh=weigh, axes=axes, rows=products[0](axes))


def _strongest(
    times: Times,
    turned_times: Times,
    start: Tensor | None,
    width: int,
    kept: int,
) -> tuple[Tensor, Tensor]:
    """The axes of most energy, nearly, by powers; and the rows along them.

    Args:
        times: rows times a table.
        turned_times: the transpose of rows times a table.
        start: axes that are probably not far off: half the powers do from there. None for random ones.
        width: of the rows.
        kept: how many axes.
    """
    axes = torch.rand(width, min(kept + _MORE, width), generator=torch.Generator().manual_seed(0)) - 0.5
    if start is not None:
        axes[:, : start.shape[1]] = start
    powers = _POWERS if start is None else _POWERS // 2
    for step in range(powers + 1):
        if step < powers:
            axes = turned_times(times(axes))
        # Nearly orthonormal again, by the root of their products; more nearly at the end, when it is done twice.
        products = torch.from_numpy(axes.numpy().T @ axes.numpy()).double()
        products.diagonal().add_(_NEAR * float(products.trace()) + _NOTHING)
        root, one = torch.linalg.cholesky(products), torch.eye(axes.shape[1], dtype=torch.float64)
        axes = axes @ torch.linalg.solve_triangular(root, one, upper=False).T.float()
    rows = times(axes)
    turns = torch.linalg.eigh((rows.T @ rows).double()).eigenvectors[:, -kept:].flip(1).float()
    return axes @ turns, rows @ turns


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class FeatureGraph:
    """Every node joined to the nodes with the most similar rows.

    Attributes:
        places: n x k node numbers, the nearest first; never the node itself. Of 32 bits if they are many.
        cosines: n x k similarities; negative ones count as 0.
        matrix: D^-1/2 (W + W^T) D^-1/2 with W the squared cosines: symmetric, without loops.
    """

    places: Tensor
    cosines: Tensor
    matrix: scipy.sparse.csr_matrix

    def smoothed(self, rows: Tensor, restarts: Sequence[float], *, steps: int = 10) -> list[Tensor]:
        """Personalised PageRank of rows, for several restarts: Z <- (1 - restart) G Z + restart X, so many times from Z = X.

        All of them are sums of the same products G^k X, which are made once.

        Args:
            rows: X, n x d.
            restarts: 1 leaves the rows as they are.
            steps: how often.
        """
        smoothed = [torch.empty_like(rows) for _ in restarts]
        # A weighted sum of rows for each node, as in sparse_rows.py: five times as fast as scipy's product.
        heard, starts, weights = map(torch.from_numpy, (self.matrix.indices, self.matrix.indptr[:-1], self.matrix.data))
        for start in range(0, rows.shape[1], _COLUMNS):
            part = slice(start, start + _COLUMNS)
            product = rows[:, part].float().contiguous()
            sums = [torch.zeros_like(product) for _ in restarts]
            for step in range(steps + 1):
                if step > 0:
                    product = embedding_bag(heard, product, starts, mode="sum", per_sample_weights=weights)
                for restart, total in zip(restarts, sums, strict=True):
                    weight = (1 - restart) ** step * (restart if step < steps else 1.0)
                    if weight > 0:
                        total.add_(product, alpha=weight)
            for total, table in zip(sums, smoothed, strict=True):
                table[:, part] = total
        return smoothed

    def answers_around(self, answers: Tensor, *, restart: float = 0.0, steps: int = 1) -> Tensor:
        """Class probabilities from what nodes hear over the graph; float64.

        Args:
            answers: n x c, not negative, as loud as they are long.
            restart: of their own; without it, and in one step, they hear the mean answer of their neighbours.
            steps: how far answers spread.
        """
        (found,) = self.smoothed(answers, (restart,), steps=steps)
        # A little is added everywhere: whoever hears nothing knows nothing.
        some = found.double() + _LITTLE * found.mean().double() + _NOTHING
        return some / some.sum(dim=1, keepdim=True)

    def label_agreement(self, labels: Tensor, known: Tensor) -> float:
        """How much more often than chance a node and its nearest nodes share their label, where both labels are known.

        Returns:
            1 for always, 0 for as often as two random nodes do (and if no pair of known labels is there).
        """
        places = self.places[known].long()
        pairs = known[places]
        if not bool(pairs.any()):
            return 0.0
        same = float((labels[known, None] == labels[places])[pairs].double().mean())
        chance = float((torch.bincount(labels[known]).double() / int(known.sum())).square().sum())
        return (same - chance) / (1 - chance) if chance < 1 else 0.0


def feature_graph(rows: Tensor, count: int, *, chunk: int = 1024) -> FeatureGraph:
    """The graph of rows that are similar by cosine; of more than `COMPARED_NODES` nearly the most similar ones (cells.py).

    Args:
        rows: one per node.
        count: the number of neighbours, or all others if there are fewer.
        chunk: so many rows at a time are compared with all; it bounds the memory and does not change the result.
    """
    units = normalize(rows.to(torch.float32), dim=1)
    if len(units) > sample.COMPARED_NODES:
        places, cosines = matches_in_cells(units, count)
    else:
        found, wanted = [], min(count, len(units) - 1)
        # The largest numbers of a row lie in the parts with the largest maxima: so most numbers are looked at only once.
        apart = math.ceil(len(units) / _PARTS)
        for start in range(0, len(units), chunk):
            similar = torch.full((min(chunk, len(units) - start), _PARTS * apart), -math.inf)
            torch.mm(units[start : start + chunk], units.T, out=similar[:, : len(units)])
            own = torch.arange(len(similar))
            similar[own, start + own] = -math.inf
            parts = similar.view(-1, _PARTS, apart)
            best = parts.amax(dim=1).topk(min(wanted, apart), dim=1).indices
            some = parts.gather(2, best[:, None].expand(-1, _PARTS, -1)).flatten(1).topk(wanted, dim=1)
            rows, places = some.indices // best.shape[1], some.indices % best.shape[1]
            found.append((rows * apart + best.gather(1, places), some.values))
        places, cosines = (torch.cat(each) for each in zip(*found, strict=True))
    cosines = cosines.clamp_min(0)
    size, width = places.shape
    weights, columns = cosines.numpy().reshape(-1) ** 2, places.numpy().reshape(-1).copy()  # sorted, below
    starts = np.arange(size + 1) * width
    one_way = scipy.sparse.csr_matrix((weights, columns, starts), shape=(size, size))
    one_way.sort_indices()
    both = one_way + one_way.T
    degrees = np.asarray(both.sum(axis=1)).reshape(-1)
    roots = scipy.sparse.diags_array(1 / np.sqrt(np.where(degrees > 0, degrees, 1.0)))
    scaled = roots @ both @ roots
    return FeatureGraph(places=places, cosines=cosines, matrix=scipy.sparse.csr_matrix(scaled, dtype=np.float32))
