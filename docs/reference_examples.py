"""For the Python reference: how griffe reads our docstrings."""

import re
from typing import Any

import griffe


def one_name_per_line(found: re.Match[str]) -> str:
    """Several names that share a line of text, each with it: griffe knows the type of a single name only."""
    return "\n".join(f"{found[1]}{name}: {found[3]}" for name in found[2].split(", "))


class Examples(griffe.Extension):
    """Show doctests as code, and every parameter and attribute with its own type."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring before it is parsed: "Example:" would be a note, "Examples:" is code."""
        if obj.docstring is not None:
            text = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)
            obj.docstring.value = re.sub(r"^( +)(\w+(?:, \w+)+): (.+)$", one_name_per_line, text, flags=re.MULTILINE)
