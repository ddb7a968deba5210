"""What people read first in the folder of a released model: the model card and the page about privacy."""

from __future__ import annotations

import re

from gcon.methods.model import Model
from gcon.privacy.statement import ACCESS_PROMISES

_HEAD = """\
---
library_name: gcon
tags:
- differential-privacy
- graph-neural-network
- node-classification
---
"""

_LIMITS = """\
- Nothing is promised about nodes, features or labels: they count as public. Features that were computed from private
  edges would leak them.
- One edge is protected. A group of k edges is protected about k times less, so a person's whole neighbourhood is not
  hidden if it is large.
- Every further release from the same edges adds to what is spent; the number above is what the ledger knew at the time.
- No accuracy is stated here: measured with private edges, it would depend on them without noise.
- The checksums in `release.json` find damage and careless edits. They are not a signature: get the folder from somebody
  you trust.
"""


def model_card(model: Model) -> str:
    """The README of a released model: what it is, how to use it, what is promised and what is not.

    The metadata at its head names no licence: that is for whoever publishes the model to choose.

    Privacy:
        Reads the released model, which is public; measures nothing.
    """
    num_features = model.encoder.num_features
    warning = "" if model.receipt.keeps_promise else "**This model carries no promise about edges.** See below why.\n\n"
    return f"""\
{_HEAD}
# A node classifier, released with gcon

{warning}{_description(model)}

## Load and predict

```python
from gcon.methods.no_edges import predict_without_edges
from gcon.release.store import load_release

model = load_release("path/to/this/folder")
predictions = predict_without_edges(model, features)  # a tensor with {num_features} columns; no edge is read
predictions.labels
print(model.statement())
```

Loading reads numbers and words and runs no code. It checks the size and checksum of every file that `release.json`
lists, this one included, and refuses changed ones; other files are ignored, so put notes of your own into those.

## The promise

{_items(model)}

The same as data is in `privacy.json`.

## Access at prediction

{_access_table(model)}

## Limits

{_LIMITS}"""


def privacy_page(model: Model) -> str:
    """The statement of a released model as a page of its own.

    Privacy:
        Reads the receipt, which is public.
    """
    return f"""\
# Privacy of this model

{_items(model)}

## Access at prediction

{_access_table(model)}
"""


def _description(model: Model) -> str:
    return (
        f"It tells {len(model.class_names)} classes of nodes apart, from {model.encoder.num_features} features per node.\n"
        f"{model.description()}\nWhat the model may tell about those edges is said below."
    )


def _items(model: Model) -> str:
    return "\n".join(f"- {_plain(sentence)}" for sentence in model.statement().sentences)


def _access_table(model: Model) -> str:
    rows = [f"| `{access}` | {_plain(ACCESS_PROMISES[access])} |" for access in model.accesses]
    return "\n".join(["| access | what is promised |", "|---|---|", *rows])


def _plain(text: str) -> str:
    """Words on one line, without markup: the names in them were chosen by whoever ran the training."""
    return re.sub(r"([\\`*<>\[\]|])", r"\\\1", " ".join(text.split()))
