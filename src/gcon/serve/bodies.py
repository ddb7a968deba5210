"""What people send, and what they get: the shapes of the interface, for its schema. Bodies are read in `questions.py`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from gcon.serve.settings import NOT_CACHED

MOST_ID = 200  # characters
Id = Annotated[str, Field(max_length=MOST_ID, description="The public id of a node.", examples=["17"])]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ById(_Strict):
    """A person whom the service knows by her public id."""

    id: Id


class ByFeatures(_Strict):
    """A person with public features: one number per feature, in the order of the training."""

    features: list[Annotated[float, Field(allow_inf_nan=False)]]


Person = ById | ByFeatures


class Question(_Strict):
    """Somebody asks about herself. Nothing of it is stored."""

    me: Person
    neighbours: list[Person] = Field(default_factory=list, description="Those with whom she shares an edge, each once.")
    access: Literal["own-edges", "none"] = Field(
        default="own-edges", description=f"Whether the neighbours that were sent are used. {NOT_CACHED}"
    )


class Owner(_Strict):
    """The owner of a node asks; her token is in the header Authorization."""

    node: Id


class Answer(BaseModel):
    """A label with its probabilities, and what it was made from."""

    label: str
    probabilities: dict[str, float]
    access: Literal["own-edges", "none"]
    audience: str = Field(description="Who may see the answer.")
    used: str = Field(description="What was used, and what was not.")
    promise: str = Field(description="What is promised.")
    release: str = Field(description="Which release answered: the beginning of its checksum.")


class Problem(BaseModel):
    """What was wrong."""

    error: Literal[
        "refused", "bad input", "too large", "too many requests", "busy", "not found", "not allowed", "withheld"
    ]
    message: str


class Health(BaseModel):
    """The service is there."""

    status: Literal["ok"]
    release: str
    me: bool = Field(description="Whether owners can be answered from edges that the service holds.")
    node_table: bool = Field(description="Whether people can be named by their ids.")
    access: list[str]
