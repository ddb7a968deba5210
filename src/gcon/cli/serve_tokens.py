"""`gcon serve tokens`: give the owner of a node a secret, list who has one, and take it back."""

from __future__ import annotations

import csv
import io
import time
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from gcon.cli import options
from gcon.cli.checks import check_replaceable
from gcon.cli.output import Output
from gcon.errors import InputError
from gcon.files.tables import read_node_ids
from gcon.files.write_files import checked_target
from gcon.serve.tokens import TokenFacts, TokenStore
from gcon.writing import uninterrupted, write_whole

app = typer.Typer(no_args_is_help=True, help="Tokens of node owners: stored as hashes, expiring, revocable.")
TokenFile = Annotated[Path, typer.Argument(help="The file of tokens; issue makes a new one.")]


@app.command()
@options.verb
def issue(
    output: Output,
    tokens: TokenFile,
    nodes: Annotated[Path, typer.Option(help="The public node table; only its nodes can have owners.")],
    out: Annotated[Path, typer.Option(help="CSV to write, readable by you alone: node, token. Hand out, then delete.")],
    node: Annotated[list[str], typer.Option(help="Whose; repeat. By default all nodes of the table.")] = [],  # noqa: B006
    days: Annotated[float, typer.Option(help="Until they expire.")] = 90.0,
    overwrite: options.Overwrite = False,
) -> None:
    """Issue tokens, one per node. They can be seen in --out and never again; earlier ones stay valid.

    Example: gcon serve tokens issue tokens.sqlite --nodes nodes.csv --out tokens.csv
    """
    check_replaceable(checked_target(out, "out"), overwrite=overwrite, inputs=(tokens, nodes))
    known = dict.fromkeys(str(entry) for entry in read_node_ids(nodes).tolist())
    unknown = [entry for entry in node if entry not in known]
    if unknown:
        rule, fix = "must be in the node table", "Check the ids."
        raise InputError("node", rule=rule, got=repr(unknown[0][:60]), fix=fix)
    with closing(TokenStore(tokens, new=True)) as store:  # here: closing writes, and a signal then has its words
        output.notes.append("There may be tokens that nobody has seen: see gcon serve tokens list, and revoke them.")
        with uninterrupted():
            made = store.issue(node or known, days=days)
            sheet = io.StringIO()
            csv.writer(sheet, lineterminator="\n").writerows([("node", "token"), *made])
            try:
                write_whole(out, sheet.getvalue())
            except BaseException:  # nobody can see them, so nobody should hold them
                store.take_back(token for _, token in made)
                output.notes[:] = ["No token was issued: what could not be handed out was taken back."]
                raise
            output.notes[:] = [f"Issued: {len(made)}. Written: {out}."]
    fields: dict[str, object] = {"out": str(out), "issued": len(made), "days": days}
    output.result(fields, f"Issued: {len(made)}. Written: {out}. Hand each to its owner, then delete the file.")


@app.command("list")
@options.verb
def show(output: Output, tokens: TokenFile) -> None:
    """List tokens by node: when they were issued, until when they hold, and whether they were taken back."""
    facts, now = _read(tokens), time.time()
    lines = [f"{each.name}  {each.node}  {_state(each, now)}" for each in facts]
    fields: dict[str, object] = {"tokens": [{**vars(each), "valid": each.valid(now)} for each in facts]}
    output.result(fields, "\n".join(lines) or "No token was issued.")


@app.command()
@options.verb
def revoke(
    output: Output,
    tokens: TokenFile,
    node: Annotated[str | None, typer.Option(help="All tokens of this node.")] = None,
    name: Annotated[str | None, typer.Option(help="The token of this name (see list).")] = None,
) -> None:
    """Take tokens back; a running service refuses them from the next request on."""
    output.notes.append("NOTHING WAS REVOKED: the tokens still hold.")
    try:
        with closing(TokenStore(tokens)) as store, uninterrupted():
            count = store.revoke(node=node, name=name)
            output.notes[:] = [f"Revoked: {count}. That holds."]
    except OSError:  # what the disk refused to confirm may stand in the file even so: whoever opens it next will see
        mine = [each for each in _read(tokens) if node in (None, each.node) and name in (None, each.name)]
        if all(each.revoked is not None for each in mine):
            output.notes[:] = ["They are marked as revoked, but the disk did not confirm it: revoke them again."]
        raise
    output.result({"revoked": count}, f"Revoked: {count}.")


def _read(tokens: Path) -> list[TokenFacts]:
    """What the file says, to somebody who opens it now."""
    with closing(TokenStore(tokens)) as store:
        return store.facts()


def _state(facts: TokenFacts, now: float) -> str:
    if facts.revoked is not None:
        return f"revoked {_day(facts.revoked)}"
    return f"{'valid until' if facts.valid(now) else 'expired'} {_day(facts.expires)}"


def _day(seconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))
