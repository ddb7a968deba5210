"""The promise in words: everything a reader needs, and nothing that is not so."""

import json
import math
import re
from dataclasses import replace
from typing import get_args

import pytest

from gcon.mechanisms.samplers.rounded import EXACT_GAUSSIAN
from gcon.methods.predictions import Access
from gcon.privacy.budget import Budget
from gcon.privacy.receipt import Receipt
from gcon.privacy.statement import ACCESS_PROMISES, statement

RECEIPT = Receipt(
    time="2031-05-06T07:08:09+00:00",
    data_set="friendships",
    protected_change="one undirected edge",
    mechanism="objective perturbation (GCON)",
    purpose="node classification",
    budget=Budget(1.5, 1e-5),
    keeps_promise=True,
    randomness="operating system",
    plan={"noise_rate": 4.5, "gradient_tolerance": 1e-10, "final_noise": 5e-6},
    total=Budget(4.0, 3e-5),
)
SEEDED = replace(RECEIPT, keeps_promise=False, randomness="seeded: no promise", total=Budget(math.inf, 0.0))
NOISELESS = replace(RECEIPT, keeps_promise=False, budget=Budget(math.inf, 1e-5), total=Budget(math.inf, 1e-5))


@pytest.mark.parametrize(
    "words",
    [
        "One undirected edge of a simple graph, added or removed",
        "Public, and not protected: the node set, features, labels, splits, all settings",
        "(1.5, 1e-05)-differentially private",
        "e^1.5 = 4.49",
        "Released, once: what objective perturbation (GCON) computed, for node classification",
        "'friendships' so far, as its ledger knows: epsilon 4, delta 3e-05 (basic composition)",
        "Noise: operating system",
        "choosing settings by looking at results on the private edges costs extra",
        "floating-point",
        "run time is not protected",
    ],
)
def test_the_sentences_of_a_release_with_a_promise(words):
    assert words in str(statement(RECEIPT))


SEVERAL = {1: Budget(1.5, 1e-5), 2: Budget(3.052, 1e-5), 5: None}


def test_several_edges_are_told_in_words_and_as_data():
    told = statement(RECEIPT, by_edges=SEVERAL)
    assert (
        "Edges that change together, wherever they are: 1 edge, epsilon 1.5, delta 1e-05; 2 edges, epsilon 3.052, delta "
        "1e-05; 5 edges, nothing is promised."
    ) in told.sentences
    assert told.fields["by_edges"] == [
        {"edges": 1, "epsilon": 1.5, "delta": 1e-5},
        {"edges": 2, "epsilon": 3.052, "delta": 1e-5},
        {"edges": 5, "epsilon": None, "delta": None},
    ]
    assert "by_edges" not in statement(RECEIPT).fields


def test_the_protected_number_of_edges_is_told():
    told = statement(replace(RECEIPT, plan={"protect_edges": 4}))
    assert told.fields["protected_change"] == "any 4 undirected edges"
    assert told.sentences[0].startswith("Protected: Any 4 undirected edges of a simple graph together, anywhere in it")
    assert "(1.5, 1e-05)-differentially private for any 4 edges together" in str(told)
    assert "it would have without them, except" in str(told)
    assert "one edge" not in str(told)


def test_the_certificate_is_named():
    assert "Certificate: the solver's answer was accepted" in str(statement(RECEIPT))
    assert "Certificate" not in str(statement(replace(RECEIPT, plan={})))


def test_the_noise_is_named_as_the_mechanism_names_it():
    assert "Noise: operating system; floating-point numbers, the proof is about real ones." in str(statement(RECEIPT))
    exact = replace(RECEIPT, plan={"noise": EXACT_GAUSSIAN})
    assert f"Noise: operating system; {EXACT_GAUSSIAN}." in str(statement(exact))
    assert "floating-point" not in str(statement(exact))
    assert "Noise: operating system." in str(statement(NOISELESS))


def test_the_text_is_the_sentences():
    made = statement(RECEIPT)
    assert str(made).splitlines() == list(made.sentences)
    assert all(sentence.endswith(".") for sentence in made.sentences)


@pytest.mark.parametrize(
    ("receipt", "words"),
    [
        (SEEDED, "There is no promise: the noise was drawn from a seed"),
        (NOISELESS, "There is no promise: no noise was added"),
    ],
)
def test_no_promise_is_said_plainly(receipt, words):
    made = statement(receipt)
    assert words in str(made)
    assert "differentially private" not in str(made)
    assert "epsilon inf" in str(made)
    assert made.fields["promise"] is False


def test_the_fields_hold_the_receipt():
    fields = statement(RECEIPT).fields
    assert (fields["epsilon"], fields["delta"], fields["promise"]) == (1.5, 1e-5, True)
    assert fields["total"] == {"epsilon": 4.0, "delta": 3e-5, "composition": "basic"}
    assert fields["plan"] == {"noise_rate": 4.5, "gradient_tolerance": 1e-10, "final_noise": 5e-6}
    assert fields["protected_change"] == "one undirected edge"
    assert fields["public"] == ["the node set", "features", "labels", "splits", "all settings"]
    for name in ("time", "data_set", "mechanism", "purpose", "randomness"):
        assert fields[name] == getattr(RECEIPT, name)
    assert json.loads(json.dumps(fields)) == fields


def test_the_fields_are_a_copy():
    statement(RECEIPT).fields["plan"]["noise_rate"] = 0.0
    assert RECEIPT.plan["noise_rate"] == 4.5


def test_every_access_has_its_promise():
    assert statement(RECEIPT).fields["access"] == ACCESS_PROMISES
    some = {"none": "no edge", "own-edges": "one's own"}
    assert statement(RECEIPT, some).fields["access"] == some
    assert set(ACCESS_PROMISES) == set(get_args(Access))
    assert "may be published" in ACCESS_PROMISES["none"]
    assert "joint" in ACCESS_PROMISES["own-edges"]
    assert "not covered" in ACCESS_PROMISES["own-edges"]
    assert "nothing is promised" in ACCESS_PROMISES["public-graph"]
    assert "may be published" in ACCESS_PROMISES["cached"]
    assert "Nothing is promised" in ACCESS_PROMISES["full"]


@pytest.mark.parametrize("epsilon", [1e-6, 50.0, 709.0, 1000.0, 1e6])
def test_any_epsilon_can_be_stated(epsilon):
    text = str(statement(replace(RECEIPT, budget=Budget(epsilon, 1e-5))))
    shown = re.search(r"\(([\d.e-]+), 1e-05\)-differentially private", text)
    assert float(shown[1]) == epsilon


def test_a_promise_that_says_little_is_said_to():
    def told(receipt):
        return [sentence for sentence in statement(receipt).sentences if "promises little" in sentence]

    words = "An epsilon of 10 or more promises little: for one edge the odds may change by a factor of e^epsilon"
    assert told(replace(RECEIPT, budget=Budget(10.0, 1e-5))) == [f"{words} = 22100."]
    assert told(replace(RECEIPT, budget=Budget(800.0, 1e-5))) == [f"{words}."]
    (several,) = told(replace(RECEIPT, budget=Budget(10.0, 1e-5), plan={"protect_edges": 4}))
    assert "for any 4 edges together the odds" in several
    assert told(replace(RECEIPT, budget=Budget(9.9, 1e-5))) == told(NOISELESS) == []
    assert told(replace(SEEDED, budget=Budget(10.0, 1e-5))) == []


def test_the_printed_numbers_never_understate():
    epsilon, delta = 1.0000004, 1.0000004e-5
    text = str(statement(replace(RECEIPT, budget=Budget(epsilon, delta), total=Budget(epsilon, delta))))
    release = re.search(r"\(([\d.e-]+), ([\d.e-]+)\)-differentially", text)
    total = re.search(r"epsilon ([\d.e-]+), delta ([\d.e-]+) \(basic", text)
    for match in (release, total):
        assert float(match[1]) >= epsilon
        assert float(match[2]) >= delta


def test_a_release_that_reads_no_edge_has_a_whole_promise():
    made = statement(replace(RECEIPT, budget=Budget(0.0, 0.0), total=Budget(0.0, 0.0)))
    assert "Nothing in the release depends on any edge" in str(made)
