"""Templates of what people read first in the folder of a released model: the model card and the page about privacy.

The metadata at the head of the card names no licence: that is for whoever publishes the model to choose.
"""

from __future__ import annotations

ONE_EDGE = """\
- One edge is protected. Several edges together are protected less, as the promise says, so a person's whole neighbourhood is
  not hidden if it is large."""
SEVERAL_EDGES = """\
- Any {edges} edges together are protected, so a person's whole neighbourhood is not hidden if it is larger."""

NO_PROMISE = "**This model carries no promise about edges.** See below why.\n\n"

ANY_TABLE = "an array, data frame, tensor or PyG Data with {num_features} columns"
NAMED_TABLE = "a data frame with the columns below, in this order"
BEST = """\
best = model.predict(features, access="cached")  # as public, with released counts: the training table, whole, as it was
"""
COLUMNS = """
## Columns

Numbers, unless another thing is said: {names}.
{table}
"""

CARD = """\
---
library_name: gcon
tags:
- differential-privacy
- graph-neural-network
- node-classification
---

# A node classifier, released with gcon

{warning}It tells {num_classes} classes of nodes apart, from {num_features} features per node.
{description}
What the model may tell about those edges is said below.

## Load and predict

```python
import gcon

model = gcon.load("path/to/this/folder")
labels = model.predict(features)  # {table}; no edge is read
{best}probabilities = model.predict_proba(features)
print(model.statement())
```

Loading reads numbers and words and runs no code. It checks the size and checksum of every file that `release.json`
lists, this one included, and refuses changed ones; other files are ignored, so put notes of your own into those.
{columns}
## The promise

{promise}

The same as data is in `privacy.json`.

## Access at prediction

{accesses}

## Limits

- Nothing is promised about nodes, features or labels: they count as public. Features that were computed from private
  edges would leak them.
{group}
- Every further release from the same edges adds to what is spent; the number above is what the ledger knew at the time.
- No accuracy is stated here: measured with private edges, it would depend on them without noise.
- The checksums in `release.json` find damage and careless edits. They are not a signature: get the folder from somebody
  you trust.
"""

PRIVACY = """\
# Privacy of this model

{promise}

## Access at prediction

{accesses}
"""
