"""Small released models of both methods, made by hand: what the pages show is their receipt, classes and answers."""

import math

import torch

from gcon.edges.schemes import Schemes
from gcon.learn.encoder import Encoder
from gcon.mechanisms.losses import loss_by_name
from gcon.mechanisms.mixed_release import mixed_plan
from gcon.mechanisms.objective_plan import make_plan
from gcon.methods.moments import FIRST_SHARE, MOST_COUNTED, MomentsModel
from gcon.methods.objective import ObjectiveModel
from gcon.nodes import PublicNodes
from gcon.privacy.budget import Budget
from gcon.privacy.receipt import Receipt

NAMES = ("cats", "dogs & owls", "the 'others'")
HOSTILE = ("<script>alert(1)</script>", "</script><img src=x onerror=alert(2)>", "\"' onload=alert(3) \u2028 \u00e9")
WIDTH, HIDDEN = 4, 5


def nodes(names=NAMES, count=90):
    """Public nodes whose class can be seen in their features; the last third are test nodes."""
    labels = torch.arange(count) % len(names)
    features = torch.nn.functional.one_hot(labels, WIDTH).double() + 0.3 * torch.sin(
        torch.arange(count * WIDTH)
    ).reshape(count, WIDTH)
    place = torch.arange(count)
    return PublicNodes(
        features=features,
        labels=labels,
        num_classes=len(names),
        train_mask=place < count // 3,
        validation_mask=(place >= count // 3) & (place < 2 * count // 3),
        test_mask=place >= 2 * count // 3,
        class_names=names,
    )


def encoder(classes):
    return Encoder(
        hidden_weight=torch.eye(WIDTH, HIDDEN),
        hidden_bias=torch.zeros(HIDDEN),
        head_weight=torch.eye(HIDDEN, classes),
        head_bias=torch.zeros(classes),
        unit_input=False,
        centre=None,
    )


def receipt(budget, plan, *, seeded=False, **words):
    return Receipt(
        **{
            "time": "2030-01-02T00:00:00+00:00",
            "data_set": "friends",
            "protected_change": "one undirected edge",
            "mechanism": "made by hand",
            "purpose": "node classification",
            "budget": budget,
            "keeps_promise": math.isfinite(budget.epsilon) and not seeded,
            "randomness": "seeded: no promise" if seeded else "operating system",
            "plan": plan,
            "total": Budget(budget.epsilon * 2, budget.delta * 2),
            **words,
        }
    )


def moments(epsilon=1.0, delta=1e-5, *, names=NAMES, protect_edges=1, **words):
    plan = mixed_plan(
        epsilon,
        delta,
        first_share=FIRST_SHARE,
        answer_share=MOST_COUNTED,
        method="moments",
        protect_edges=protect_edges,
    )
    table = nodes(names)
    answers = torch.softmax(3 * table.features[:, : len(names)], dim=1).float()
    return MomentsModel(
        answers=answers,
        cached=None,
        labels=torch.where(table.train_mask, table.labels, -1),
        counts=None,
        encoder=encoder(len(names)),
        homophily=0.7,
        class_names=names,
        training_nodes=table.fingerprint,
        right=20,
        asked=int(table.validation_mask.sum()),
        own_edges=True,
        statistics=(),
        tables=(),
        receipt=receipt(plan.budget, plan.public_record(()), **words),
    )


def paper(epsilon=2.0, delta=1e-5, *, names=NAMES, edge_influence=0.4, ridge=1.0, protect_edges=1, **words):
    plan = make_plan(
        Budget(epsilon, delta),
        loss=loss_by_name("soft-margin", len(names)),
        num_features=HIDDEN,
        num_labelled=60,
        edge_influence=edge_influence,
        ridge=ridge,
        protect_edges=protect_edges,
    )
    return ObjectiveModel(
        weights=torch.eye(HIDDEN, len(names), dtype=torch.float64),
        encoder=encoder(len(names)),
        schemes=Schemes(restart=0.8, steps=(2,)),
        inference_restart=0.25,
        loss="soft-margin",
        class_names=names,
        training_nodes=nodes(names).fingerprint,
        receipt=receipt(Budget(epsilon, delta), plan.public_record(), **words),
    )
