"""`gcon serve`: answer people about themselves over HTTP. `gcon serve tokens`: who owns which node."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from gcon.cli import options, serve_tokens
from gcon.cli.app import VERBS
from gcon.cli.options import EdgeFormat, Edges, Features, LedgerPath
from gcon.cli.output import Output
from gcon.errors import InputError, MissingExtraError
from gcon.serve.settings import Limits


class _OrRun(TyperGroup):
    """`gcon serve RELEASE` is `gcon serve run RELEASE`, and `gcon serve --help` tells its options."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        if args and args[0] not in self.commands:
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_OrRun, no_args_is_help=True, help=VERBS["serve"])
app.add_typer(serve_tokens.app, name="tokens")


@app.command()
@options.verb
def run(
    output: Output,
    *,
    release: Annotated[
        Path, typer.Argument(help="A release folder. A new release that takes its place is taken over.")
    ],
    host: Annotated[
        str, typer.Option(help="The address to listen on; put a proxy with TLS before others.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 takes a free one.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes that answer.")] = 1,
    nodes: Annotated[Path | None, typer.Option(help="The public node table: people can then be named by ids.")] = None,
    features: Features = None,
    edges: Edges = None,
    tokens: Annotated[Path | None, typer.Option(help="The file of gcon serve tokens; with --edges, for /me.")] = None,
    access_log: Annotated[Path | None, typer.Option(help="Who was answered, when; by default beside --tokens.")] = None,
    edge_format: EdgeFormat,
    ledger: LedgerPath = None,
    most_bytes: Annotated[int, typer.Option(help="Of a request's body.")] = Limits.most_bytes,
    most_neighbours: Annotated[int, typer.Option(help="In one question.")] = Limits.most_neighbours,
    idle_seconds: Annotated[int, typer.Option(help="For a connection that asks nothing.")] = Limits.idle_seconds,
    seconds: Annotated[float, typer.Option(help="For one request.")] = Limits.seconds,
    per_address: Annotated[
        float, typer.Option(help="Requests per minute from one address; each 16 KiB sent is one more.")
    ] = Limits.per_address,
    per_token: Annotated[float, typer.Option(help="Requests per minute with one token.")] = Limits.per_token,
    burst: Annotated[int, typer.Option(help="Requests that may come at once after a pause.")] = Limits.burst,
    behind_proxy: Annotated[str, typer.Option(help="Address of your proxy: its X-Forwarded-For is believed.")] = "",
    allow_origin: Annotated[str | None, typer.Option(help="Another site whose pages may ask.")] = None,
    log_requests: Annotated[bool, typer.Option(help="A line on standard error for every request.")] = True,
    config: options.Config = None,
) -> None:
    """Serve a released model: /predict, /statement, /card, /health, /metrics and pages; with --edges and --tokens also /me.

    Stops on SIGTERM and Ctrl+C, after the requests that are being answered. SIGHUP opens tokens and access log anew.
    Tokens of owners: gcon serve tokens --help. Needs gcon with its extra 'serve' (pip).
    Example: gcon serve model --nodes nodes.csv
    """
    with ExitStack() as until:
        try:
            import fastapi  # noqa: F401  first: all others take seconds to load
            import uvicorn  # noqa: F401

            from gcon.cli.serve_inputs import open_owners, read_table
            from gcon.machine import keep_to_one_thread
            from gcon.release.read import load_release
            from gcon.serve.logs import Log
            from gcon.serve.served_release import read_served_release
            from gcon.serve.state import Service
            from gcon.serve.tokens import TokenStore
            from gcon.serve.workers import listening_socket, run_workers
        except ModuleNotFoundError as error:
            raise MissingExtraError(error.name or "FastAPI", extra="serve") from None

        keep_to_one_thread()  # workers are forked, and each has one
        limits = Limits(
            most_bytes=most_bytes,
            most_neighbours=most_neighbours,
            idle_seconds=idle_seconds,
            seconds=seconds,
            per_address=per_address,
            per_token=per_token,
            burst=burst,
        )
        if (edges is None) != (tokens is None) or (edges is not None and nodes is None):
            raise InputError(
                "--edges, --tokens, --nodes",
                rule="are all needed to answer owners from private edges",
                got="some of them",
                fix="Pass all three, or --nodes alone, or none.",
            )
        # Everything public is read and checked before the ledger hears of it.
        listener = until.enter_context(closing(listening_socket(host, port)))
        with output.progress.status("read"):
            known = None if nodes is None else read_table(nodes, features, load_release(release).feature_columns)
            table = None if known is None else known.table
            held, seen = read_served_release(release, table=table)
            owners, log = None, None
            if edges is not None and tokens is not None and known is not None:
                TokenStore(tokens).close()
                beside = tokens.with_name(f"{tokens.name}.log") if access_log is None else access_log
                owners, log = open_owners(
                    edges, known, output, edge_format=edge_format, ledger=ledger, access_log=beside
                )
                held.owners = owners
        service = Service(
            held=held,
            folder=release,
            seen=seen,
            limits=limits,
            tokens=tokens,
            access_log=log,
            origin=allow_origin,
            log=Log(requests=log_requests and not output.quiet),
        )
        if edges is not None and edges.stat().st_mode & 0o007:  # a group may: a service needs a user of its own
            words = f"Everybody on this machine may open {edges.name}. Take that away: chmod o= {edges.name}"
            service.log.event("warning", message=words)
        address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        fields = {"address": address, "release": held.release, "me": owners is not None, "workers": workers}

        def ready() -> None:
            output.result(fields, f"Listening on {address} (release {held.release}). Stop with Ctrl+C.")

        code = run_workers(service, listener, count=workers, proxies=behind_proxy, ready=ready)
    raise typer.Exit(code)
