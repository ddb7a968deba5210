"""Counts for Prometheus. Nothing in them depends on edges: answers from private edges are counted, and not timed.

The counts of all workers are in memory that they share: every worker adds to a row of its own, and a page adds up all rows. No
file is written, so a full disk changes nothing and nothing is left behind.
"""

from __future__ import annotations

import bisect
import itertools
import mmap
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MOST_WORKERS = 256
_STATUSES = ("200", "401", "404", "405", "413", "422", "429", "500", "503", "other")
_OUTCOMES = ("taken", "refused")
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class Metrics:
    """The counts of one service, over all its workers.

    Args:
        routes: paths that are told apart; all others are one.

    Attributes:
        worker: which row is added to; every worker has a number of its own.
    """

    def __init__(self, routes: Iterable[str] = ()) -> None:
        self._routes = (*sorted(routes), "other")
        names: list[tuple[str, ...]] = list(itertools.product(("requests",), self._routes, _STATUSES))
        names += itertools.product(("reloads",), _OUTCOMES)
        names += itertools.product(("seconds",), self._routes, (*map(str, _BOUNDS), "+Inf", "sum"))
        self._place = {name: place for place, name in enumerate(names)}
        self._said = {int(said): said for said in _STATUSES[:-1]}
        memory = mmap.mmap(-1, MOST_WORKERS * len(names) * 8)
        self._counts: NDArray[np.float64] = np.frombuffer(memory, dtype=np.float64).reshape(MOST_WORKERS, len(names))
        self.worker = 0

    def request(self, route: str, status: int, seconds: float | None) -> None:
        """One request was answered or refused; its time only where no private edge was read."""
        known = route if ("requests", route, "200") in self._place else "other"
        self._add(("requests", known, self._said.get(status, "other")), 1)
        if seconds is not None:
            place = bisect.bisect_left(_BOUNDS, seconds)
            self._add(("seconds", known, str(_BOUNDS[place]) if place < len(_BOUNDS) else "+Inf"), 1)
            self._add(("seconds", known, "sum"), seconds)

    def reload(self, outcome: str) -> None:
        """A new release was taken or refused."""
        self._add(("reloads", outcome), 1)

    def page(self) -> bytes:
        """All counts as Prometheus reads them."""
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> Iterator[Metric]:
        """The counts that are not zero, added up over the workers."""
        total = dict(zip(self._place, self._counts.sum(axis=0).tolist(), strict=True))
        requests = CounterMetricFamily("gcon_requests", "Requests by route and status.", labels=["route", "status"])
        reloads = CounterMetricFamily("gcon_reloads", "New releases by outcome.", labels=["outcome"])
        for (kind, *labels), count in total.items():
            if count and kind != "seconds":
                (requests if kind == "requests" else reloads).add_metric(labels, count)
        yield requests
        yield reloads
        seconds = HistogramMetricFamily(
            "gcon_request_seconds", "Time of requests that read no private edge.", labels=["route"]
        )
        for route in self._routes:
            steps = [total["seconds", route, step] for step in (*map(str, _BOUNDS), "+Inf")]
            if any(steps):
                names: list[Any] = [*map(str, _BOUNDS), "+Inf"]
                rising = list(zip(names, itertools.accumulate(steps), strict=True))
                seconds.add_metric([route], buckets=rising, sum_value=total["seconds", route, "sum"])
        yield seconds

    def _add(self, name: tuple[str, ...], amount: float) -> None:
        self._counts[self.worker, self._place[name]] += amount
