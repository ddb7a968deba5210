"""For the Python reference: our docstrings say "Example:", which griffe takes for a note; it knows "Examples:"."""

import re
from typing import Any

import griffe


class Examples(griffe.Extension):
    """Show doctests as code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rename the section before its docstring is parsed."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)
