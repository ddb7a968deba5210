"""Counts for Prometheus. Nothing in them depends on edges: answers from private edges are counted, and not timed."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, multiprocess

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SEVERAL = (
    "PROMETHEUS_MULTIPROC_DIR"  # a folder where workers add up their counts; the library reads it when it is imported
)


class Metrics:
    """The counts of one service, over all its workers."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "gcon_requests", "Requests by route and status.", ["route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "gcon_request_seconds", "Time of requests that read no private edge.", ["route"], registry=self._registry
        )
        self._reloads = Counter("gcon_reloads", "New releases by outcome.", ["outcome"], registry=self._registry)

    def request(self, route: str, status: int, seconds: float | None) -> None:
        """One request was answered or refused; its time only where no private edge was read."""
        self._requests.labels(route, str(status)).inc()
        if seconds is not None:
            self._seconds.labels(route).observe(seconds)

    def reload(self, outcome: str) -> None:
        """A new release was taken or refused."""
        self._reloads.labels(outcome).inc()

    def page(self) -> bytes:
        """All counts as Prometheus reads them."""
        if SEVERAL not in os.environ:
            return generate_latest(self._registry)
        everybody = CollectorRegistry()
        multiprocess.MultiProcessCollector(everybody)  # type: ignore[no-untyped-call]
        return generate_latest(everybody)
