"""Options that belong together, as one record: written once, and handed to a verb whole."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints


def with_records(verb: Callable[..., None]) -> Callable[..., None]:
    """Let a verb take records: a parameter that is a dataclass stands for one option per field.

    Typer sees the options, and the verb gets the record. The fields are annotated like parameters of a verb.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Place:
        ...     host: str = "127.0.0.1"
        ...     port: int = 8000
        >>> @with_records
        ... def listen(place: Place, *, quiet: bool = False) -> None:
        ...     print(place)
        >>> list(inspect.signature(listen).parameters)
        ['host', 'port', 'quiet']
        >>> listen(host="::1", port=80, quiet=True)
        Place(host='::1', port=80)
    """
    signature = inspect.signature(verb, eval_str=True)
    records: dict[str, Any] = {
        name: entry.annotation for name, entry in signature.parameters.items() if is_dataclass(entry.annotation)
    }

    @functools.wraps(verb)
    def called(**given: Any) -> None:
        taken = {
            name: record(**{field.name: given.pop(field.name) for field in fields(record)})
            for name, record in records.items()
        }
        verb(**given, **taken)

    options = []
    for name, entry in signature.parameters.items():
        if name not in records:
            options.append(entry.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        usual, kinds = records[name](), get_type_hints(records[name], include_extras=True)
        options += [
            inspect.Parameter(
                each.name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=kinds[each.name],
                default=getattr(usual, each.name),
            )
            for each in fields(records[name])
        ]
    called.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    return called
