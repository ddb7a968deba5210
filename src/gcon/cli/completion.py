"""`gcon completion`: what a shell needs to complete verbs and options.

The scripts hold all words: a shell that asked `gcon` at every tab would wait seconds for torch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

import typer

from gcon.cli.app import VERBS, command
from gcon.errors import InputError


class Shell(StrEnum):
    """The shells that can be taught."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


class _Word(NamedTuple):
    """A verb or a long option, and one line about it."""

    word: str
    about: str


_SAME_IN_BASH_AND_ZSH = """\
_gcon_words() {{
  case "$1" in
{cases}
    *) return 1 ;;
  esac
}}
"""
_BASH = """\
_gcon() {
  local place="" word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if _gcon_words "${place:+$place }$word" > /dev/null; then place="${place:+$place }$word"; fi
  done
  COMPREPLY=($(compgen -W "$(_gcon_words "$place")" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _gcon gcon
"""
_ZSH = """\
_gcon() {
  local place="" word
  for word in ${words[2,CURRENT-1]}; do
    if _gcon_words "${place:+$place }$word" > /dev/null; then place="${place:+$place }$word"; fi
  done
  compadd -- $(_gcon_words "$place")
  _files
}
compdef _gcon gcon
"""


def completion(shell: Annotated[Shell, typer.Argument(help="Your shell.")]) -> None:
    """Print a script by which a shell completes verbs and options.

    bash: gcon completion bash > ~/.local/share/bash-completion/completions/gcon

    zsh: gcon completion zsh > ~/.gcon.zsh, and after compinit in ~/.zshrc: source ~/.gcon.zsh

    fish: gcon completion fish > ~/.config/fish/completions/gcon.fish
    """
    table = dict(_table())
    if shell is Shell.FISH:
        script = "\n".join(_fish(table)) + "\n"
    else:
        cases = (f'    "{place}") echo {" ".join(word.word for word in words)} ;;' for place, words in table.items())
        script = _SAME_IN_BASH_AND_ZSH.format(cases="\n".join(cases)) + (_BASH if shell is Shell.BASH else _ZSH)
    sys.stdout.write(script)


def _table() -> Iterator[tuple[str, list[_Word]]]:
    """By the verbs so far ("", "ledger", "ledger show"): what may come next. Verbs that are not installed are left out."""
    loaded = {}
    for name in VERBS:
        try:
            loaded[name] = command(name)
        except InputError:
            continue
    yield "", [*(_Word(name, VERBS[name]) for name in loaded), _Word("--version", "Print the version.")]
    for name, found in loaded.items():
        yield from _below(name, found)


def _below(place: str, found: Any) -> Iterator[tuple[str, list[_Word]]]:
    verbs = getattr(found, "commands", {})
    options = [
        _Word(name, getattr(parameter, "help", None) or "")
        for parameter in found.params
        for name in (*parameter.opts, *parameter.secondary_opts)
        if name.startswith("--")
    ]
    yield place, [*(_Word(name, each.help or "") for name, each in verbs.items()), *options, _Word("--help", "Help.")]
    for name, each in verbs.items():
        yield from _below(f"{place} {name}", each)


def _fish(table: dict[str, list[_Word]]) -> Iterator[str]:
    for place, words in table.items():
        seen = [f"__fish_seen_subcommand_from {name}" for name in place.split()]
        condition = "; and ".join(seen) or "__fish_use_subcommand"
        for word, about in words:
            kind = f"-l {word[2:]}" if word.startswith("--") else f"-f -a {word}"
            line = about.split("\n")[0].replace("\\", "\\\\").replace("'", "\\'")
            yield f"complete -c gcon -n '{condition}' {kind} -d '{line}'"
