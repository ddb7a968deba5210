"""The `gcon` command: one file per verb."""

from gcon.errors import MissingExtraError


def main() -> None:
    """The entry point: names the extra to install where the command line's own dependencies are missing."""
    try:
        from gcon.cli.app import main as run
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] in ("typer", "rich"):
            raise SystemExit(str(MissingExtraError(error.name, extra="cli"))) from None
        raise
    run()
