"""All pages of the site, as text: for a folder or for the service."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

from gcon.errors import InputError
from gcon.methods.model import Model
from gcon.methods.predictions import why_no_promise
from gcon.nodes import PublicNodes
from gcon.pages.frame import PAGES, render
from gcon.pages.model_page import model_values
from gcon.pages.promise_page import promise_values
from gcon.privacy.budget import protected_change

_ALONE = ("localhost", "127.0.0.1", "::1")


def site_pages(
    model: Model,
    *,
    nodes: PublicNodes | None = None,
    name: str | None = None,
    service: str | None = None,
    me: bool = False,
    node_table: bool = False,
) -> dict[str, str]:
    """The pages by file name: index.html, ask.html and model.html. Each is ASCII and needs nothing but itself.

    Args:
        model: the released model.
        nodes: public nodes; with labels and a test mask they give the confusion matrix.
        name: of the data set, for people; the one in the release unless told.
        service: "" if the pages' own origin is the service, the origin of another one, None if there is none.
        me: whether the service answers from edges that it holds, for a token.
        node_table: whether the service knows nodes by their id.

    Example:
        >>> import gcon
        >>> model = gcon.GCON(epochs=5).fit(gcon.datasets.social_circles(100, seed=1)).model_
        >>> list(site_pages(model))
        ['index.html', 'ask.html', 'model.html']

    Privacy:
        Reads the released model and public nodes: the pages may be published. No edge is read.
    """
    promise = promise_values(model)
    about = {
        "index.html": ("promise.html", promise),
        "ask.html": ("ask.html", _ask_values(model, service=checked_service(service), me=me, node_table=node_table)),
        "model.html": ("model.html", model_values(model, nodes, name=name)),
    }
    shared = {
        "pages": PAGES,
        "name": name or model.receipt.data_set,
        "receipt": model.receipt,
        "reason": why_no_promise(model.receipt),
        "edges": protected_change(record=model.receipt.plan).edges,
        "several": promise["several"],
    }
    return {file: render(template, {"here": file, **shared, **values}) for file, (template, values) in about.items()}


def _ask_values(model: Model, *, service: str | None, me: bool, node_table: bool) -> dict[str, object]:
    """What ask.html shows: a form for the owner of a node, and how programs ask."""
    width = model.encoder.num_features
    you, neighbour = ({"id": name} if node_table else {"features": [0.0] * min(width, 3)} for name in ("anna", "bert"))
    return {
        "service": service,
        "me": me,
        "node_table": node_table,
        "num_features": width,
        "num_classes": len(model.class_names),
        "question": json.dumps({"access": "own-edges", "me": you, "neighbours": [neighbour]}),
    }


def checked_service(service: str | None) -> str | None:
    """The origin of a service, without a slash at its end; "" and None as they are.

    A token must not travel readable: only this very machine may do without encryption.
    """
    if not service:
        return service
    fix = "For example https://answers.example.org"
    try:
        parts = urlsplit(service)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    plain = service.isascii() and service.isprintable() and not set(service) & set(" '\";,<>\\`")
    if not plain or not host or parts.scheme not in ("http", "https"):
        raise InputError("service", rule="must be the address of a service", got=repr(service), fix=fix)
    if parts.path not in ("", "/") or parts.query or parts.fragment or parts.username is not None:
        raise InputError("service", rule="must be an origin alone: scheme, host and port", got=repr(service), fix=fix)
    if parts.scheme == "http" and host not in _ALONE:
        raise InputError(
            "service",
            rule="must use https, but for this machine: tokens would travel readable",
            got=repr(service),
            fix=fix,
        )
    named = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{named}" + ("" if port is None else f":{port}")
