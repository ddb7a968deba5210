"""The methods whose models are published, by name. Everybody else knows the interface (`methods/model.py`) and no method."""

from __future__ import annotations

from gcon.methods.model import Model, ReleasingMethod
from gcon.methods.moments import Moments, MomentsModel
from gcon.methods.objective import Objective, ObjectiveModel

METHODS: dict[str, type[ReleasingMethod]] = {method.name: method for method in (Moments, Objective)}
MODELS: dict[str, type[Model]] = {model.method: model for model in (ObjectiveModel, MomentsModel)}
