"""How good predictions are, beyond the share that is right: class by class, and as probabilities."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sklearn.metrics import confusion_matrix, f1_score, log_loss, recall_score
from torch import Tensor

from gcon.methods.accuracy import micro_f1
from gcon.methods.calibration import calibration_error, reliability_bins
from gcon.methods.predictions import Predictions

OTHER = "(another class)"


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Scores on the nodes of a mask; a node whose class the model does not know counts as wrong in all of them.

    Attributes:
        micro_f1: the share of correct answers.
        macro_f1: the mean F1 of the classes that occur, as labels or as answers.
        balanced_accuracy: the mean recall of the classes that occur as labels.
        log_loss: mean of -log(probability of the right class); infinite if the model does not know a class.
        expected_calibration_error: mean distance between confidence and share of correct answers, in ten groups of equal
            size, from unsure to sure: the number of the report.
        recall: by class, for those that occur as labels.
        confusion: counts, by class and then by answer.

    Privacy:
        As private as the predictions: measured with private edges these are diagnostics, not for publication.
    """

    micro_f1: float
    macro_f1: float
    balanced_accuracy: float
    log_loss: float
    expected_calibration_error: float
    recall: dict[str, float]
    confusion: dict[str, dict[str, int]]


def score(predictions: Predictions, labels: Tensor, mask: Tensor) -> Scores:
    """Score the nodes of a mask.

    Args:
        predictions: of all nodes.
        labels: class numbers in the model's order; -1 for a class that the model does not know.
        mask: which nodes count; at least one.
    """
    micro = micro_f1(predictions.classes, labels, mask)
    known, answers = labels[mask].numpy(), predictions.classes[mask].numpy()
    probabilities = predictions.probabilities[mask]
    names = [*(str(name) for name in predictions.class_names), OTHER]
    numbers = [*range(len(predictions.class_names)), -1]
    occurring = [number for number in numbers if number in known]
    recalls = recall_score(known, answers, labels=occurring, average=None, zero_division=0).tolist()
    counts = confusion_matrix(known, answers, labels=numbers).tolist()
    return Scores(
        micro_f1=micro,
        macro_f1=float(f1_score(known, answers, average="macro", zero_division=0)),
        balanced_accuracy=sum(recalls) / len(recalls),
        log_loss=math.inf if -1 in occurring else float(log_loss(known, probabilities.numpy(), labels=numbers[:-1])),
        expected_calibration_error=calibration_error(reliability_bins(probabilities, labels[mask])),
        recall={names[number]: recall for number, recall in zip(occurring, recalls, strict=True)},
        confusion={names[number]: dict(zip(names[:-1], counts[number], strict=False)) for number in occurring},
    )
