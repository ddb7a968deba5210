"""What verbs share: `verb`, which makes one of a function, and options, each written once.

Options that belong together are a record, which a verb takes whole; every option has the name of its field, with hyphens.
"""

from __future__ import annotations

import functools
import inspect
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from gcon.cli.output import reporting
from gcon.errors import InputError
from gcon.privacy.budget import protected_change

if TYPE_CHECKING:
    from gcon.files.edge_files import EdgeOptions

MOST_BYTES = 2**14  # tomllib needs memory with the square of the length
Json = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]


def verb(work: Callable[..., None]) -> Callable[..., None]:
    """A verb of the command line: `work` gets its output first, and every verb has --json and --quiet.

    A parameter that is a dataclass stands for one option per field: typer sees the options, and the work gets the record. The
    fields are annotated like parameters of a verb.

    Example:
        >>> @dataclass(frozen=True)
        ... class Place:
        ...     host: str = "127.0.0.1"
        ...     port: int = 8000
        >>> @verb
        ... def listen(output: object, *, place: Place) -> None:
        ...     print(place)
        >>> list(inspect.signature(listen).parameters)
        ['host', 'port', 'json', 'quiet']
        >>> listen(host="::1", port=80, json=False, quiet=True)
        Place(host='::1', port=80)
    """
    _, *parameters = inspect.signature(work, eval_str=True).parameters.values()
    records: dict[str, Any] = {each.name: each.annotation for each in parameters if is_dataclass(each.annotation)}

    @functools.wraps(work)
    def called(*, json: bool, quiet: bool, **given: Any) -> None:
        for name, record in records.items():
            given[name] = record(**{each.name: given.pop(each.name) for each in fields(record)})
        with reporting(as_json=json, quiet=quiet) as output:
            work(output, **given)

    options: list[tuple[str, Any, Any]] = []
    for each in parameters:
        if each.name in records:
            usual, kinds = each.annotation(), get_type_hints(each.annotation, include_extras=True)
            options += [(field.name, kinds[field.name], getattr(usual, field.name)) for field in fields(usual)]
        else:
            options.append((each.name, each.annotation, each.default))
    options += [("json", Json, False), ("quiet", Quiet, False)]
    made = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for name, kind, default in options
    ]
    called.__signature__ = inspect.Signature(made)  # type: ignore[attr-defined]
    return called


def _read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take defaults from a TOML file: its keys are the verb's long options."""
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise typer.BadParameter(f"has more than {MOST_BYTES} bytes. Keep the defaults of one verb in it.")
        content = tomllib.loads(text.decode())
    except (OSError, ValueError, RecursionError) as error:  # what tomllib says of damage and of numbers is a ValueError
        raise typer.BadParameter(
            f"cannot be read as TOML ({type(error).__name__}). Write lines like, for example, epsilon = 1.0"
        ) from None
    known = {parameter.name for parameter in context.command.params}
    values = {key.replace("-", "_"): value for key, value in content.items()}
    unknown = sorted(set(values) - {name for name in known if name})
    if unknown:
        shown = ", ".join(key[:80] for key in unknown[:8])
        raise typer.BadParameter(f"has keys that this verb does not know: {shown}. Keys are the verb's long options.")
    context.default_map = {**(context.default_map or {}), **values}
    return path


Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="TOML file with defaults; keys are the long option names.",
        is_eager=True,
        callback=_read_config,
        exists=True,
        dir_okay=False,
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace a file that is there; never an input or a ledger.")
]
Epsilon = Annotated[float, typer.Option(help="Privacy budget; smaller is more private. 'inf' promises nothing.")]
ProtectEdges = Annotated[
    int, typer.Option(help="How many edges, 1 to 10, may change together within epsilon and delta.")
]
Nodes = Annotated[Path | None, typer.Option(help="Nodes: CSV or Parquet with columns id, label, split and features.")]
Features = Annotated[Path | None, typer.Option(help="Features as .npy or .npz, one row per node, beside --nodes.")]
Edges = Annotated[
    Path | None, typer.Option(help="Edges: CSV, TSV, Parquet with columns source and target, .npz or .csr.")
]
LedgerPath = Annotated[Path | None, typer.Option("--ledger", help="Ledger file; by default beside the edges.")]


@dataclass(frozen=True, kw_only=True)
class EdgeFormat:
    """How an edges file is written."""

    source_column: Annotated[str, typer.Option(help="The column of the edges file with one end of each edge.")] = (
        "source"
    )
    target_column: Annotated[str, typer.Option(help="The column of the edges file with the other end.")] = "target"
    ignore_column: Annotated[
        list[str], typer.Option(help="A further column of the edges file to leave unread; repeat.")
    ] = field(default_factory=list)
    no_header: Annotated[bool, typer.Option("--no-header", help="The edges file has two columns and no header.")] = (
        False
    )

    def columns(self) -> EdgeOptions:
        """The same by the names that `read_edges` has, for `**`."""
        return {
            "source_column": self.source_column,
            "target_column": self.target_column,
            "header": not self.no_header,
            "ignore_columns": self.ignore_column,
        }


@dataclass(frozen=True, kw_only=True)
class NodeFormat:
    """What the columns of a nodes file are, by the names that `read_nodes` has."""

    drop: Annotated[list[str], typer.Option(help="A column of the nodes file to leave out; repeat.")] = field(
        default_factory=list
    )
    categorical: Annotated[
        list[str], typer.Option(help="A column of the nodes file that holds categories, not numbers; repeat.")
    ] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class _Graph:
    """A data set by name, or files."""

    source: Annotated[
        str | None, typer.Argument(help="A data set by name (gcon data list); or pass --edges and --nodes.")
    ] = None
    edges: Edges = None
    nodes: Nodes = None
    features: Features = None


@dataclass(frozen=True, kw_only=True)
class GraphSource(EdgeFormat, _Graph):
    """A graph, and the ledger that belongs to it. What columns are, a model knows."""

    split: Annotated[int, typer.Option(help="Which split of a named data set; 0 is the paper's.")] = 0
    ledger: LedgerPath = None


@dataclass(frozen=True, kw_only=True)
class TableSource(NodeFormat, GraphSource):
    """A graph that no model was trained on yet: what its columns are must be said."""


@dataclass(frozen=True, kw_only=True)
class TrainingSource(TableSource):
    """A graph to train on: its edges may also stay on a disk, or on the workers of a cluster."""

    buffer: Annotated[
        str | None,
        typer.Option(
            help="How much memory an edge store (.csr) is read through, for example 256MiB.", show_default="256MiB"
        ),
    ] = None
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="A Dask scheduler, tcp://HOST:PORT or tls://HOST:PORT: its workers read the edge store (.csr)."
        ),
    ] = None
    workers: Annotated[
        int | None, typer.Option(min=1, help="Start so many Dask workers on this machine for the time.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class PredictionSource(GraphSource):
    """A graph to use a model on: its edges may also be public."""

    public_edges: Annotated[
        Path | None,
        typer.Option(help="Edges that everybody may know, with --access public-graph: nothing is promised about them."),
    ] = None


def paper_option(words: str) -> Any:
    """An option of the paper's method; None, the default, leaves it to the library."""
    return typer.Option(help=words, rich_help_panel="With --method paper", show_default=False)


@dataclass(frozen=True, kw_only=True)
class PaperOptions:
    """Options of the paper's method; verbs add their own."""

    restart: Annotated[float | None, paper_option("Weight of a node's own features in every step, in [0, 1]; 0.8.")] = (
        None
    )
    steps: Annotated[
        list[str], paper_option("How far features travel; repeat for several, 'inf' for the limit; 2.")
    ] = field(default_factory=list)
    loss: Annotated[str | None, paper_option("soft-margin, or pseudo-huber:WEIGHT.")] = None
    ridge: Annotated[float | None, paper_option("Regularisation; the proof may raise it; 1.")] = None
    noise_share: Annotated[
        float | None, paper_option("Least share of epsilon that goes to the noise, in (0, 1); 0.9.")
    ] = None
    influence: Annotated[str | None, paper_option("Bound on an edge's influence: auto, paper, simple or sharp.")] = None

    def given(self, method: str, *, protect_edges: int) -> dict[str, Any]:
        """The options that were given, with restart and steps together as `schemes`.

        Raises:
            InputError: there is no such method, or an option is not its own.
        """
        from gcon.edges.schemes import Schemes  # with torch: seconds
        from gcon.methods.moments import Moments
        from gcon.methods.objective import Objective

        given = {name: value for name, value in vars(self).items() if value not in (None, [])}
        protected_change(protect_edges)
        if method == Moments.name:
            for name in given:
                raise InputError(
                    name.replace("_", "-"),
                    rule="is an option of the paper's method",
                    got="--method moments",
                    fix="Add --method paper, or leave it out.",
                )
        elif method != Objective.name:
            rule = f"must be '{Moments.name}' or '{Objective.name}'"
            raise InputError("method", rule=rule, got=repr(method), fix="Leave it out for the default.")
        else:
            steps = tuple(_number_of_steps(entry) for entry in given.pop("steps", ["2"]))
            given["protect_edges"] = protect_edges
            given["schemes"] = Schemes(restart=given.pop("restart", 0.8), steps=steps)
        return given


def _number_of_steps(entry: str) -> float:
    try:
        return float(entry)
    except ValueError:
        raise InputError(
            "steps", rule="whole numbers or 'inf'", got=repr(entry), fix="For example --steps 2."
        ) from None
