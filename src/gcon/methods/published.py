"""What every released model is, whichever method made it: public tensors, public settings, and a receipt."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor

from gcon.learn.encoder import Encoder
from gcon.privacy.receipt import Receipt
from gcon.privacy.statement import Statement, statement


class PublishedModel(ABC):
    """A model that may be published. How it predicts is in `gcon.methods`.

    Attributes:
        method: the name of the method that made it.
        accesses: what it can be asked under.
        choices: how its settings were chosen, and whether that was public, free or paid.
        encoder: turns features of any node into what prediction starts from.
        receipt: what was paid and what is promised.
    """

    method: ClassVar[str]
    accesses: ClassVar[tuple[str, ...]]
    choices: ClassVar[str]
    encoder: Encoder
    receipt: Receipt

    @property
    @abstractmethod
    def class_names(self) -> tuple[object, ...]:
        """What the class numbers stand for."""

    @property
    @abstractmethod
    def training_nodes(self) -> str:
        """Checksum of the public feature table that the model was trained on."""

    @abstractmethod
    def description(self) -> str:
        """What it is, for the model card."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """All of its tensors but the encoder's, by the name that they have in a file."""

    def statement(self) -> Statement:
        """The promise in words and as data."""
        return statement(self.receipt, self.accesses, self.choices)
