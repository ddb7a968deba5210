"""What is bought in small: a choice of settings, a noisy count, a look. The values themselves, for they are few."""

from dataclasses import asdict
from itertools import count

from common import DENSE, graph_of, ledger, named, receipt_facts

from gcon.choose.advice import advise
from gcon.choose.paid_accuracy import paid_accuracy
from gcon.choose.paid_look import take_look
from gcon.choose.paid_restart import choose_inference_restart
from gcon.choose.settings import tune_paid
from gcon.learn.perceptron import EncoderSettings
from gcon.methods.objective import Objective
from gcon.privacy.randomness import SeededRandomness

SEEDS = range(5)


def questions():
    graph = graph_of(DENSE)
    encoder = EncoderSettings(epochs=20)
    method = Objective(epsilon=4.0, encoder=encoder)
    model = method.train(graph.nodes, graph.edges, ledger=ledger(), randomness=SeededRandomness(1))
    return selection(model, graph) | tuned(graph, encoder) | noisy_count(model, graph) | look(graph)


def selection(model, graph):
    chosen = [
        choose_inference_restart(model, graph, epsilon=0.2, ledger=ledger(), randomness=SeededRandomness(seed))
        for seed in SEEDS
    ]
    return {
        "selection/chosen": [each.value for each in chosen],
        **named("selection", receipt_facts(chosen[0].receipt)),
    }


def tuned(graph, encoder):
    seeds = count()
    books = ledger()
    found = tune_paid(
        graph,
        Objective(epsilon=2.0, encoder=encoder),
        pay=0.2,
        ledger=books,
        randomness=lambda: SeededRandomness(next(seeds)),
        draws=1,
    )
    return {
        **{f"tune/{choice.setting}": [str(choice.value), choice.how] for choice in found.choices},
        "tune/rehearsals": [rehearsal.mean for rehearsal in found.rehearsals],
        "tune/epsilon left": found.settings.epsilon,
        "tune/ledger": [f"{entry.request.kind}: {entry.request.mechanism}" for entry in books.entries()],
    }


def noisy_count(model, graph):
    nodes = graph.nodes
    paid = [
        paid_accuracy(
            model,
            nodes.features,
            nodes.labels,
            nodes.test_mask,
            graph.edges,
            epsilon=0.2,
            ledger=ledger(),
            randomness=SeededRandomness(seed),
        )
        for seed in SEEDS
    ]
    return {
        "noisy-count/micro-F1": [each.micro_f1 for each in paid],
        "noisy-count/standard deviation": paid[0].standard_deviation,
        **named("noisy-count", receipt_facts(paid[0].receipt)),
    }


def look(graph):
    seen = take_look(graph, epsilon=0.5, ledger=ledger(), randomness=SeededRandomness(3))
    advice = advise(graph.nodes, epsilon=2.0, look=seen)
    shown = {name: value for name, value in asdict(seen).items() if name != "receipt"}
    return {
        **named("look", shown),
        **named("look", receipt_facts(seen.receipt)),
        "look/edge-free strength": advice.facts.edge_free_strength,
        **{f"look/verdict/{each.access}": [each.spend, each.method, each.stage] for each in advice.verdicts},
    }
