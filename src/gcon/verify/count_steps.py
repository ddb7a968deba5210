"""Steps for tables of neighbour counts, and for the count of right answers (method `moments`): docs/proofs/neighbour-counts.md.

A folder cannot show the counts without noise, but it shows some numbers twice. The neighbours of code j that nodes of code k have
are the edges between the two codes, and so are the neighbours of code k that nodes of code j have; and two tables tell the same
degree of a node. Their differences are noise alone. In one-way tables nodes without a label have no code: nobody counts them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcon.verify.arithmetic import agrees, finite, geometric_deviation, shown, whole
from gcon.verify.branch_steps import GEOMETRIC, Branches
from gcon.verify.folder import Folder
from gcon.verify.noise import check_differences, farthest
from gcon.verify.steps import Steps, UnfitError

COUNTS = "neighbour counts"
_TABLE = {"columns", "noise", "rate", "rounds", "standard_deviation", "statistic"}
_ANSWERS = {"epsilon", "noise", "sensitivity", "standard_deviation"}
_CHANGED_ENTRIES = 2  # of a table, by one edge between two nodes that are counted
_ENDS_OF_AN_EDGE = 2  # their answers are all that one edge can change
# The method's rules: neighbours over the noise of a count, and how sure answers may be, for one table and for two.
_HEARD, _LOUD, _UNSURE = 4.0, 10.0, 0.6
_LEAST_LABELLED, _MOST_CLASSES = 0.4, 10  # of the nodes, and classes, for one-way counts
# Edges tell something: homophily so far from chance (1 is perfect), or so many times chance; or counts spared judges so much.
_TELLING, _MANY_TIMES, _LEAST_GAIN = 0.1, 3.0, 0.02
_NAMES = {0: "moments again", 1: "one table", 2: "two tables"}
_COUNT = 0.3  # the column of the answers that counts edges
_EXACT, _SINGLE = 1e-9, 1e-6  # relative room for float64; absolute room for probabilities in single precision


@dataclass(frozen=True, kw_only=True)
class Table:
    """One released table: its numbers in the settings, its record in the plan, its values."""

    place: int
    settings: dict[str, Any]
    record: dict[str, Any]
    value: Tensor

    @property
    def name(self) -> str:
        return f"Table {self.place} ({COUNTS}, {' x '.join(map(str, self.value.shape))})"


def check_branch(folder: Folder, branches: Branches, answers: Tensor, steps: Steps) -> None:
    """What came second is what the numbers that were released first lead to.

    Args:
        folder: the release.
        branches: what the plan allows.
        answers: the released moments of answers, whose last column counts edges.
        steps: where the steps go.
    """
    tables = folder.settings["tables"]
    rounds, one_way = (tables[0]["rounds"], bool(tables[0].get("one_way"))) if tables else (0, False)
    degree = float(answers[-1, -1]) / _COUNT**2 / whole(folder.settings, "nodes")
    heard, loud = (
        factor * float(geometric_deviation(rate)) for factor, rate in zip((_HEARD, _LOUD), branches.rates, strict=True)
    )
    tensors = folder.model.tensors()
    likeliest, known = tensors["answers"].max(dim=1).values, tensors["labels"] >= 0
    sure = float(torch.where(known, 1.0, likeliest).mean(dtype=torch.float64))  # of the codes
    labelled = float(known.double().mean())
    steps.check(
        f"The plan is {'' if branches.one_way else 'not '}for one-way counts, as the share of public labels says: {labelled:.6g} "
        f"(from {_LEAST_LABELLED} on)",
        branches.one_way is (int(known.sum()) >= _LEAST_LABELLED * len(known)),
    )
    twice = degree >= loud * (1 - _EXACT) and sure <= _UNSURE + _SINGLE
    once = degree < loud * (1 + _EXACT) or sure > _UNSURE - _SINGLE
    words = f"two from {loud:.6g} if codes are no surer than {_UNSURE}; they are {sure:.6g}"
    if branches.one_way:
        alone = _labels_alone(likeliest[~known], labelled, degree, tensors["answers"].shape[1], branches.rates)
        classes = len(folder.model.class_names)
        few = classes <= _MOST_CLASSES
        twice, once = False, few and alone >= 1 - _SINGLE if one_way else not few or alone <= 1 + _SINGLE
        words = (
            f"one-way if that tells at least as much, of at most {_MOST_CLASSES} classes; it tells {alone:.6g} times as much, "
            f"of {classes}"
        )
    fits = {
        0: degree < heard * (1 + _EXACT),
        1: degree >= heard * (1 - _EXACT) and once,
        2: degree >= heard * (1 - _EXACT) and twice,
    }
    steps.check(
        f"The branch, {'one-way, ' * one_way}{_NAMES[min(rounds, 2)]}, follows from what was released before: a mean degree of "
        f"{degree:.6g} (tables from {heard:.6g}, {words})",
        fits.get(rounds, False),
    )


def _labels_alone(sure: Tensor, labelled: float, degree: float, classes: int, rates: tuple[Any, ...]) -> float:
    """How much counts of labelled neighbours alone tell, as a multiple of what counts of all do: signal over noise, squared.

    Args:
        sure: the probability of the likeliest class, of nodes without a label.
        labelled: the share of nodes with one.
        degree: the mean one.
        classes: how many.
        rates: of the noise of counts of all, and of one-way ones.
    """
    above = (sure.double() * classes - 1) / (classes - 1)
    worth = float(above.mean()) ** 2 if len(sure) else 0.0
    every, alone = (
        float(geometric_deviation(rate)) ** 2 + share * degree / classes
        for rate, share in zip(rates, (1.0, labelled), strict=True)
    )
    return (labelled / (labelled + (1 - labelled) * worth)) ** 2 * every / alone


def check_tables(folder: Folder, records: list[dict[str, Any]], branches: Branches, steps: Steps) -> None:
    """The plan's records, the settings, and the numbers themselves."""
    settings, tensors = folder.settings["tables"], folder.model.tensors()
    tables = [
        Table(place=place, settings=entry, record=record, value=tensors[f"counts.{place}"])
        for place, (entry, record) in enumerate(zip(settings, records, strict=True))
    ]
    if not tables:
        return
    rounds, one_way = whole(settings[0], "rounds"), bool(settings[0].get("one_way"))
    if (rounds, one_way) not in branches.kinds:
        raise UnfitError("'rounds' and 'one_way' must be those of a branch of the plan")
    rate = branches.rates[branches.kinds.index((rounds, one_way))]
    steps.check(
        f"There are at most as many tables as the branch pays for: {len(tables)} of {rounds}", len(tables) <= rounds
    )
    for table in tables:
        _check_record(table, rounds=rounds, rate=rate, one_way=one_way, steps=steps)
    codes = tensors["codes"]
    if one_way:
        check_labels_alone(codes, tensors["labels"], steps)
    else:
        check_codes(codes, tensors["labels"], tensors["answers"] if len(tables) == 1 else tensors["start"], steps)
    check_values(tables, codes, rate=rate, one_way=one_way, steps=steps)


def check_values(tables: list[Table], codes: Tensor, *, rate: Any, one_way: bool, steps: Steps) -> None:
    """Where the numbers lie; and those that are shown twice.

    Args:
        tables: the released ones.
        codes: that were counted last; in one-way counts -1 for nodes that nobody counts.
        rate: of the branch.
        one_way: whether counts are so: an edge between two nodes that are counted changes two entries, and rows of these nodes
            have noise for that.
        steps: where the steps go.
    """
    counted, nodes = codes >= 0, len(codes)
    if one_way:
        rows_rate, most = rate / _CHANGED_ENTRIES, torch.bincount(codes[counted], minlength=tables[0].value.shape[1])
        kinds = [("nodes that nobody counts", ~counted, rate), ("nodes that are counted", counted, rows_rate)]
    else:
        rows_rate, most = rate, torch.tensor(nodes - 1)
        kinds = [("all nodes", counted, rate)]
    inside = [
        _check_range(table, rows, who=who, rate=own, most=most, steps=steps)
        for table in tables
        for who, rows, own in kinds
        if bool(rows.any())
    ]
    if all(inside):
        _check_both_ends(tables[-1], codes, rate=rows_rate, steps=steps)
        if len(tables) > 1:
            degrees = [table.value.sum(dim=1) for table in tables]
            numbers = np.full(nodes, 2 * tables[0].value.shape[1])
            check_differences(
                "The two tables: the degrees that they tell", (degrees[0] - degrees[1]).numpy(), numbers, rate, steps
            )


def _check_record(table: Table, *, rounds: int, rate: Any, one_way: bool, steps: Steps) -> None:
    record, settings, names, quieter = table.record, table.settings, _TABLE, True
    if one_way:
        names, counted = _TABLE | {"one_way", "counted_deviation"}, geometric_deviation(rate / _CHANGED_ENTRIES)
        quieter = record.get("one_way") is True and agrees(finite(record, "counted_deviation"), counted)
    deviation = geometric_deviation(rate)
    steps.check(
        f"{table.name}: plan and settings name the same rate, {shown(rate)}, that of the branch; the "
        f"deviation of a count is sqrt(2q)/(1-q) = {shown(deviation)}, q = e^-rate",
        set(record) == names
        and quieter
        and (record["statistic"], record["noise"]) == (COUNTS, GEOMETRIC)
        and type(record["rounds"]) is int
        and record["rounds"] == settings["rounds"] == rounds
        and finite(record, "rate") == finite(settings, "rate") == rate
        and type(record["columns"]) is int
        and record["columns"] == table.value.shape[1]
        and agrees(finite(record, "standard_deviation"), deviation),
    )


def _check_range(table: Table, rows: Tensor, *, who: str, rate: Any, most: Tensor, steps: Steps) -> bool:
    """A count is from 0 to the number of nodes that may be counted; noise reaches a little further."""
    value = table.value[rows]
    least, beyond, far = int(value.min()), int((value - most).max()), farthest(rate, value.numel())
    return steps.check(
        f"{table.name}: its whole numbers for {who}, {least} to {int(value.max())}, lie where counts from 0 to "
        f"{int(most.max())} and noise of at most {far} can put them (an honest release fails here with probability 1e-09)",
        least >= -far and beyond <= far,
    )


def check_labels_alone(codes: Tensor, labels: Tensor, steps: Steps) -> None:
    """One-way counts are of nodes with a public label."""
    steps.check(
        f"The {len(codes)} codes that were counted are the public labels, and those of no other node",
        torch.equal(codes, labels),
    )


def check_codes(codes: Tensor, labels: Tensor, answers: Tensor, steps: Steps) -> None:
    """Codes are public: the label, or the likeliest class of answers that were there before the table."""
    likeliest = answers.gather(1, codes[:, None])[:, 0] == answers.max(dim=1).values
    steps.check(
        f"The {len(codes)} codes that were counted last are public labels where there are any, and else the likeliest class of "
        "the answers before",
        bool(torch.where(labels >= 0, codes == labels, likeliest).all()),
    )


def _check_both_ends(table: Table, codes: Tensor, *, rate: Any, steps: Steps) -> None:
    """Edges between two codes, counted from both ends."""
    classes, counted = table.value.shape[1], codes >= 0
    codes, rows = codes[counted], table.value[counted]
    between = torch.zeros(classes, classes, dtype=torch.int64).index_add_(0, codes, rows)
    sizes = torch.bincount(codes, minlength=classes)
    first, second = torch.triu_indices(classes, classes, offset=1)
    numbers, differences = sizes[first] + sizes[second], (between - between.T)[first, second]
    kept = numbers > 0
    if bool(kept.any()):
        check_differences(
            f"{table.name}: the edges between two codes, counted from both ends,",
            differences[kept].numpy(),
            numbers[kept].numpy(),
            rate,
            steps,
        )


def check_right_answers(folder: Folder, records: list[dict[str, Any]], branches: Branches, steps: Steps) -> None:
    """One count of answers if there were nodes to ask, at the epsilon that the plan puts aside; then what follows from it."""
    settings = folder.settings
    asked, right, own_edges = settings["asked"], settings["right"], settings["own_edges"]
    labelled, nodes = int((folder.model.tensors()["labels"] >= 0).sum()), whole(settings, "nodes")
    paid = branches.answer_epsilon > 0
    steps.check(
        f"Right answers were counted if the plan pays for it, and if there were nodes to ask: {asked} of the {nodes - labelled} "
        "without a public label",
        (asked > 0) is paid and (right is not None) is paid and len(records) == int(paid) and asked <= nodes - labelled,
    )
    surely, perhaps = _edges_tell(settings, len(folder.model.class_names))
    if not paid:
        steps.check(
            f"Own edges are {_used(own_edges)}, as what was released says", perhaps if own_edges else not surely
        )
    if not paid or not records or right is None:
        return
    [record] = records
    epsilon = branches.answer_epsilon
    rate = epsilon / _ENDS_OF_AN_EDGE
    deviation = geometric_deviation(rate)
    steps.check(
        f"The count of right answers has the epsilon of the plan, {shown(epsilon)}, for the {_ENDS_OF_AN_EDGE} answers that one "
        f"edge can change; its deviation is {shown(deviation)}",
        set(record) == _ANSWERS
        and record["noise"] == GEOMETRIC
        and finite(record, "epsilon") == epsilon
        and type(record["sensitivity"]) is int
        and record["sensitivity"] == _ENDS_OF_AN_EDGE
        and agrees(finite(record, "standard_deviation"), deviation),
    )
    far = farthest(rate, 1)
    steps.check(
        f"{right} right answers are some of {asked} and noise of at most {far} (an honest release fails here with probability "
        "1e-09)",
        -far <= right <= asked + far,
    )
    # Own edges are used if right answers are at least those of published answers, 0 to `asked`, less three deviations and 3 %.
    margin = 3 * float(deviation) + 0.03 * asked
    steps.check(
        f"Own edges are {_used(own_edges)}, as {right} right answers and what was released before allow",
        perhaps and right >= -margin * (1 + _EXACT)
        if own_edges
        else not surely or right < asked - margin * (1 - _EXACT),
    )


def _used(own_edges: bool) -> str:
    return "used" if own_edges else "left out"


def _edges_tell(settings: dict[str, Any], classes: int) -> tuple[bool, bool]:
    """Whether what was released says surely, and perhaps, that edges tell owners something: rounding may decide."""
    homophily = float(finite(settings, "homophily", above=False))
    apart = abs(homophily - 1 / classes) * classes / (classes - 1)
    how_far = max(
        apart / _TELLING, homophily * classes / _MANY_TIMES, float(finite(settings, "gain", above=False)) / _LEAST_GAIN
    )
    return how_far >= 1 + _EXACT, how_far >= 1 - _EXACT
