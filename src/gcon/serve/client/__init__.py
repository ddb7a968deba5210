"""Asking a service: `Client` over Python's own HTTP. What it sends, and to whom, is in `ask.py`."""

from gcon.serve.client.answers import Answer, Health
from gcon.serve.client.ask import Client
from gcon.serve.client.problems import RefusedError, ServiceError, TooManyRequestsError

__all__ = ["Answer", "Client", "Health", "RefusedError", "ServiceError", "TooManyRequestsError"]
