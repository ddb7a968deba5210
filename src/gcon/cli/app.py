"""The `gcon` command."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points

import typer

from gcon.cli import data, ledger, serve
from gcon.cli.advise import advise
from gcon.cli.demo import demo
from gcon.cli.evaluate import evaluate
from gcon.cli.output import print_json
from gcon.cli.plan import plan
from gcon.cli.predict import predict
from gcon.cli.report import report
from gcon.cli.site import site
from gcon.cli.statement import statement
from gcon.cli.train import train
from gcon.cli.tune import tune
from gcon.cli.version import version

app = typer.Typer(
    name="gcon",
    help="Train node classifiers on sensitive graphs, with a proven promise about every single edge.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for verb in (
    plan,
    advise,
    tune,
    train,
    predict,
    evaluate,
    statement,
    site,
    demo,
    report,
    version,
):
    app.command()(verb)
for entry in entry_points(group="gcon.verbs"):  # the laboratory, where it is installed
    app.command(entry.name)(entry.load())
app.add_typer(ledger.app, name="ledger")
app.add_typer(data.app, name="data")
app.add_typer(serve.app, name="serve")


def main() -> None:
    """Run the command; a wrong call is bad input too, and with --json it is told as one JSON object."""
    try:
        code = app(standalone_mode=False)
    except typer.TyperException as error:
        if "--json" in sys.argv:
            print_json({"error": "UsageError", "message": error.format_message(), "exit_code": 2})
        else:
            sys.stderr.write(f"error: {error.format_message()} See gcon --help.\n")
        code = 2
    except typer.Abort:
        code = 130
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
