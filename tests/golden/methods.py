"""Every competitor and control that is registered: probabilities under every access, and what was paid."""

from common import DENSE, graph_of, ledger, named, other_graph, receipt_facts, tensor_checksum

from gcon.methods.method import PrivateMethod
from gcon.privacy.randomness import SeededRandomness
from gcon_lab.methods import METHODS
from gcon_lab.methods.competitor import settings_of
from gcon_lab.methods.fitted import fit

VARIANTS = {
    "dpgcn": {"variant": "random-flips"},
    "dp-sgd": {"optimiser": "sgd", "sampling": 0.5, "steps": 10},
    "gap": {"edge_sensitivity": "directed", "hops": 1},
    "progap": {"train_earlier_blocks": False},
    "gpr-gnn": {"start": "last"},
    "lpgnet": {"stacked": 2},
}
FEWER = {"epochs": 30, "steps": 10}  # than usual


def methods():
    found = {}
    for name, kind in METHODS.items():
        known = settings_of(kind)
        few = {setting: value for setting, value in FEWER.items() if setting in known}
        found |= facts(f"method-{name}", kind(**few, **budget(kind)))
        if name in VARIANTS:
            found |= facts(f"method-{name}-variant", kind(**few | VARIANTS[name], **budget(kind)))
    return found


def budget(kind):
    return {"epsilon": 2.0} if issubclass(kind, PrivateMethod) else {}


def facts(name, method):
    graph, other = graph_of(DENSE), other_graph()
    fitted = fit(method, graph, ledger=ledger(), randomness=SeededRandomness(7))
    found = {}
    for access in fitted.trained.score_functions:
        asked = other if access == "public-graph" else graph
        predictions = fitted.predictions(asked, access=access)
        found[f"{name}/predict/{access}"] = tensor_checksum(predictions.probabilities)
    for place, receipt in enumerate(fitted.receipts):
        found |= named(f"{name}/{place}", receipt_facts(receipt))
    return found
