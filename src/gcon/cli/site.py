"""`gcon site`: the pages about a released model, as files that any web server can serve."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gcon.cli import options
from gcon.cli.options import Features, Nodes
from gcon.cli.output import Output
from gcon.errors import InputError
from gcon.files.tables import read_nodes
from gcon.pages.build import checked_service, site_pages
from gcon.pages.write import write_site
from gcon.release.read import load_release


@options.verb
def site(
    output: Output,
    model: Annotated[Path, typer.Argument(help="A release folder.")],
    *,
    out: Annotated[Path, typer.Option(help="Folder for the pages; it may hold nothing else.")],
    name: Annotated[str | None, typer.Option(help="What to call the data set; by default as it was trained.")] = None,
    nodes: Nodes = None,
    features: Features = None,
    service: Annotated[
        str | None,
        typer.Option(help="Origin of a running service that the form asks, such as https://answers.example.org"),
    ] = None,
    me: Annotated[bool, typer.Option("--me", help="That service answers owners with a token.")] = False,
    node_table: Annotated[bool, typer.Option("--node-table", help="That service knows nodes by their id.")] = False,
) -> None:
    """Write three pages for the people in the graph: the promise, a form to ask the model, and what the model is.

    They hold public things only and may be published. gcon serve serves the same pages by itself.
    Example: gcon site model --out pages
    """
    place = checked_service(service)
    if place is None and (me or node_table):
        raise InputError(
            "--me, --node-table", rule="say what a service can do", got="no --service", fix="Pass its address."
        )
    released = load_release(model)
    known = released.feature_columns
    table = None if nodes is None else read_nodes(nodes, features_path=features, feature_columns=known).nodes
    pages = site_pages(released, nodes=table, name=name, service=place, me=me, node_table=node_table)
    paths = write_site(pages, out)
    fields: dict[str, object] = {
        "out": str(out),
        "pages": [path.name for path in paths],
        "service": place,
        "promise": released.receipt.keeps_promise,
    }
    output.result(fields, "\n".join(f"Written: {path}" for path in paths))
