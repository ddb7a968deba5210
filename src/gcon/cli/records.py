"""Options that belong together, as one record: written once, and handed to a verb whole."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints


def with_records(verb: Callable[..., None]) -> Callable[..., None]:
    """Let a verb take records: a parameter that is a dataclass stands for one option per field, records in it included.

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
    records = {name: entry.annotation for name, entry in signature.parameters.items() if is_dataclass(entry.annotation)}

    @functools.wraps(verb)
    def called(**given: Any) -> None:
        taken = {name: _filled(record, given) for name, record in records.items()}
        verb(**given, **taken)

    options = [
        option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, entry in signature.parameters.items()
        for option in (_options(records[name]) if name in records else [entry])
    ]
    called.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    return called


def _options(record: Any) -> Iterator[inspect.Parameter]:
    """One parameter per field, with the default that a record has by itself."""
    kinds, usual = get_type_hints(record, include_extras=True), record()
    for field in fields(record):
        kind = kinds[field.name]
        if is_dataclass(kind):
            yield from _options(kind)
        else:
            default = getattr(usual, field.name)
            yield inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _filled(record: Any, given: dict[str, Any]) -> Any:
    """The record, made of the options that are its own; they are taken out of `given`."""
    kinds = get_type_hints(record)
    return record(
        **{
            field.name: _filled(kind, given) if is_dataclass(kind := kinds[field.name]) else given.pop(field.name)
            for field in fields(record)
        }
    )
