"""Synthetic social circles: a contextual stochastic block model with heavy-tailed degrees.

For graphs of any size, and for reproducing a failure that must not be described on private edges.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from gcon.edges.graph import PrivateGraph, private_graph
from gcon.errors import InputError
from gcon.files.splits import per_class_split
from gcon.nodes import PublicNodes

Ints = np.ndarray[tuple[int], np.dtype[np.int64]]
Floats = np.ndarray[tuple[int], np.dtype[np.float64]]

# What people see first, in `gcon demo` and `gcon data make`: as dense as friendships are, and edges tell what features do not.
FRIENDS, FRIENDS_ALIKE, FRIENDS_SIGNAL = 40.0, 0.55, 1.8  # mean_degree, homophily, feature_signal


def circle_names(num_classes: int) -> tuple[str, ...]:
    """What the classes of a made-up graph are called in files and reports, in the order of their numbers.

    Example:
        >>> circle_names(2), circle_names(12)[-1]
        (('chess', 'choir'), 'circle 12')
    """
    names = ("chess", "choir", "climbing", "cooking", "cycling")
    width = len(str(num_classes))
    if num_classes <= len(names):
        return names[:num_classes]
    return tuple(f"circle {number:0{width}d}" for number in range(1, num_classes + 1))


def social_circles(
    num_nodes: int,
    *,
    num_classes: int = 4,
    mean_degree: float = 10.0,
    homophily: float = 0.8,
    degree_tail: float = 2.5,
    num_features: int = 32,
    feature_signal: float = 1.0,
    per_class: int = 20,
    num_validation: int | None = None,
    num_test: int | None = None,
    seed: int = 0,
    name: str = "social-circles",
) -> PrivateGraph:
    """Draw a graph of circles (classes) whose members mostly know each other.

    Classes have equal sizes (up to one node). An edge inside a class takes its ends with probability
    proportional to their weights; so does an edge between classes. Weights follow a power law, cut off at
    sqrt(num_nodes * mean_degree), above which two hubs would want more than one edge. The features of a node
    are the mean of its class plus standard normal noise.

    Args:
        num_nodes: at least two per class.
        num_classes: at least 2.
        mean_degree: average number of neighbours, from 0; met exactly up to rounding.
        homophily: share of the edges inside a class, in [0, 1]; met exactly up to rounding.
        degree_tail: exponent of the power law of degrees, above 2; infinity gives all nodes the same weight.
        num_features: at least 1.
        feature_signal: length of every class mean, from 0; the noise has standard deviation 1 in every feature.
        per_class: labelled nodes per class, at least 1.
        num_validation: validation nodes; by default 500, or a third of the rest if that is less.
        num_test: test nodes; by default 1000, or two thirds of the rest if that is less.
        seed: the same seed gives the same graph.
        name: the name of the graph.

    Example:
        >>> social_circles(200, mean_degree=6, seed=1).nodes.num_nodes
        200

    Privacy:
        The edges belong to no real people; they come wrapped like real ones, so that all that follows treats them so.
    """
    nodes, edge_index = social_circles_parts(
        num_nodes,
        num_classes=num_classes,
        mean_degree=mean_degree,
        homophily=homophily,
        degree_tail=degree_tail,
        num_features=num_features,
        feature_signal=feature_signal,
        per_class=per_class,
        num_validation=num_validation,
        num_test=num_test,
        seed=seed,
    )
    return private_graph(nodes, edge_index, name=name)


def social_circles_parts(
    num_nodes: int,
    *,
    num_classes: int = 4,
    mean_degree: float = 10.0,
    homophily: float = 0.8,
    degree_tail: float = 2.5,
    num_features: int = 32,
    feature_signal: float = 1.0,
    per_class: int = 20,
    num_validation: int | None = None,
    num_test: int | None = None,
    seed: int = 0,
) -> tuple[PublicNodes, Tensor]:
    """The nodes and bare edges of `social_circles`, for tests and benchmarks.

    Args: those of `social_circles`.

    Returns:
        The public nodes and a 2 x k `edge_index` that holds every undirected edge once, without loops.

    Privacy:
        The edges are public: they were made from the seed.
    """
    _check_whole("num_classes", num_classes, least=2)
    _check_whole("num_nodes", num_nodes, least=2 * num_classes)
    _check_whole("num_features", num_features, least=1)
    _check_whole("per_class", per_class, least=1, most=num_nodes // num_classes)
    _check_whole("seed", seed, least=0)
    _check_number("mean_degree", mean_degree, least=0)
    _check_number("homophily", homophily, least=0, most=1)
    _check_number("feature_signal", feature_signal, least=0)
    if not degree_tail > 2:
        raise InputError("degree_tail", rule="must be above 2", got=degree_tail, fix="Usual are 2.1 to 3.")
    rest = num_nodes - per_class * num_classes
    num_validation = min(500, rest // 3) if num_validation is None else num_validation
    num_test = min(1000, rest - rest // 3) if num_test is None else num_test
    _check_whole("num_validation", num_validation, least=0, most=rest)
    _check_whole("num_test", num_test, least=0, most=rest - num_validation)
    num_edges = round(num_nodes * mean_degree / 2)
    num_inside = round(num_edges * homophily)
    _check_density(num_nodes, num_classes, num_inside=num_inside, num_between=num_edges - num_inside)

    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(num_nodes) % num_classes)
    weights = (1.0 - rng.random(num_nodes)) ** (-1.0 / (degree_tail - 1.0))
    weights = _capped(weights, mean_degree)
    num_between = num_edges - num_inside
    edge_index = _draw_edges(rng, labels, weights, num_inside=num_inside, num_between=num_between)

    means = rng.standard_normal((num_classes, num_features))
    means *= feature_signal / np.linalg.norm(means, axis=1, keepdims=True)
    features = rng.standard_normal((num_nodes, num_features), dtype=np.float32)
    for label in range(num_classes):
        features[labels == label] += means[label].astype(np.float32)
    targets = torch.from_numpy(labels)
    split = per_class_split(
        targets,
        seed=int(rng.integers(2**32)),
        per_class=per_class,
        num_validation=num_validation,
        num_test=num_test,
    )
    nodes = PublicNodes(
        features=torch.from_numpy(features),
        labels=targets,
        num_classes=num_classes,
        train_mask=split.train,
        validation_mask=split.validation,
        test_mask=split.test,
    )
    return nodes, edge_index


def _capped(weights: Floats, mean_degree: float) -> Floats:
    """Expected degrees, at most sqrt(n * mean_degree): above that two hubs would meet more than once."""
    expected: Floats = weights * (mean_degree / weights.mean())
    return np.minimum(expected, math.sqrt(weights.size * mean_degree), out=expected)


def _draw_edges(
    rng: np.random.Generator,
    labels: Ints,
    weights: Floats,
    *,
    num_inside: int,
    num_between: int,
) -> Tensor:
    order = np.argsort(labels, kind="stable")
    grouped = labels[order]
    # Nodes in order of class: a class is an interval of the cumulative weights, a node a piece of it.
    upper = np.cumsum(weights[order])
    ends = upper[np.flatnonzero(np.diff(grouped, append=-1))]
    starts = np.concatenate([[0.0], ends[:-1]])
    widths = ends - starts

    def nodes_at(points: Floats) -> Ints:
        places = np.searchsorted(upper, points, side="right")
        return np.minimum(places, upper.size - 1, out=places)

    def inside(count: int) -> tuple[Ints, Ints]:
        first = nodes_at(rng.random(count) * upper[-1])
        group = grouped[first]
        second = nodes_at(starts[group] + rng.random(count) * widths[group])
        kept = (first != second) & (grouped[second] == group)  # rounding may step over the end of a class
        return first[kept], second[kept]

    def between(count: int) -> tuple[Ints, Ints]:
        accepted = 1.0 - float(((widths / upper[-1]) ** 2).sum())
        tries = math.ceil(1.02 * count / accepted) + 16
        first = nodes_at(rng.random(tries) * upper[-1])
        second = nodes_at(rng.random(tries) * upper[-1])
        kept = np.flatnonzero(grouped[first] != grouped[second])[:count]
        return first[kept], second[kept]

    size = labels.size
    inside_keys = _distinct_pairs(inside, num_inside, size)
    keys = np.concatenate([inside_keys, _distinct_pairs(between, num_between, size)])
    edge_index = np.empty((2, keys.size), dtype=np.int64)
    edge_index[0] = order[keys // size]
    edge_index[1] = order[keys % size]
    return torch.from_numpy(edge_index)


def _distinct_pairs(draw: Callable[[int], tuple[Ints, Ints]], target: int, num_nodes: int) -> Ints:
    """Draw unordered pairs until `target` are distinct; a pair is low * n + high, in rising order."""
    keys = np.empty(0, dtype=np.int64)
    while keys.size < target:
        first, second = draw(target - keys.size)
        fresh = np.minimum(first, second)
        fresh *= num_nodes
        fresh += np.maximum(first, second)
        keys = np.concatenate([keys, fresh])
        keys.sort()
        if keys.size:
            keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
    return keys


def _check_whole(name: str, value: int, *, least: int, most: int | None = None) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if whole and value >= least and (most is None or value <= most):
        return
    span = f"from {least}" if most is None else f"from {least} to {most}"
    fix = "Pass such a number." if most is None else "Choose from that range, or raise num_nodes."
    raise InputError(name, rule=f"must be a whole number {span}", got=repr(value), fix=fix)


def _check_number(name: str, value: float, *, least: float, most: float = math.inf) -> None:
    if not least <= value <= most or math.isinf(value):
        span = f"[{least}, {most}]" if most < math.inf else f"[{least}, infinity)"
        raise InputError(name, rule=f"must lie in {span}", got=value, fix="Pass a finite number from there.")


def _check_density(num_nodes: int, num_classes: int, *, num_inside: int, num_between: int) -> None:
    small, larger = divmod(num_nodes, num_classes)
    pairs_inside = num_classes * math.comb(small, 2) + larger * small
    pairs_between = math.comb(num_nodes, 2) - pairs_inside
    for where, asked, pairs in (
        ("inside", num_inside, pairs_inside),
        ("between", num_between, pairs_between),
    ):
        if 2 * asked > pairs:
            raise InputError(
                "mean_degree",
                rule=f"must leave half of the {pairs} pairs {where} classes without an edge",
                got=f"{asked} such edges",
                fix="Lower mean_degree, raise num_nodes, or change homophily or num_classes.",
            )
