"""Releases that protect several edges: honest ones verify, and another number of edges, or a better epsilon, does not."""

import copy
import json

import pytest

from gcon.errors import ReleaseFormatError
from gcon.mechanisms.mixed_release import MixedPlan, branch_delta
from gcon.privacy.budget import Budget
from gcon.release.read import load_release
from gcon.verify.arithmetic import digits
from gcon.verify.branch_steps import Branches
from gcon.verify.folder import read_folder
from gcon.verify.moments_steps import check_moments
from gcon.verify.objective_steps import check_paper
from gcon.verify.steps import Steps, UnfitError
from gcon.verify.verify import verify_release


@pytest.fixture(scope="module")
def three(moments_release):
    return moments_release(2.0, protect_edges=3)


@pytest.fixture(scope="module")
def four_by_the_paper(paper_release):
    return paper_release(protect_edges=4)


@pytest.fixture(scope="module")
def two_with_tables(moments_release):
    return moments_release(16.0, sparse=False, tables=1, protect_edges=2)


def failed(folder):
    return [step.words for step in verify_release(folder).steps if not step.holds]


def verifies(folder):
    try:
        return verify_release(folder).holds
    except ReleaseFormatError:
        return False


def test_honest_releases(three, two_with_tables, four_by_the_paper):
    for folder, edges in ((three, 3), (two_with_tables, 2), (four_by_the_paper, 4)):
        found = verify_release(folder)
        assert failed(folder) == []
        assert f"-differentially private for any {edges} undirected edges" in found.verdict
        assert f"any {edges} undirected edges" in load_release(folder).receipt.protected_change
        assert f"Any {edges} edges together are protected" in (folder / "README.md").read_text()


@pytest.mark.parametrize("edges", [1, 2, 5, 10, 0, 11, -3, 3.0, True, "3", None])
@pytest.mark.parametrize(("kind", "protected"), [("three", 3), ("four_by_the_paper", 4)])
def test_another_number_of_edges_is_noticed(request, forger, kind, protected, edges):
    """Also if every word follows from it, and the protected change is named to fit."""
    forged = forger(request.getfixturevalue(kind))
    document = forged.document()
    for name in (f"any {protected} undirected edges", f"any {edges} undirected edges", "one undirected edge"):
        for write in (forged.put_document, forged.put_consistently):
            changed = copy.deepcopy(document)
            changed["receipt"]["plan"]["protect_edges"] = edges
            changed["receipt"]["protected_change"] = name
            forged.restore()
            write(changed)
            assert not verifies(forged.folder)


def test_a_number_left_out_or_added_is_noticed(three, releases, forger, tmp_path):
    forged = forger(three)
    document = forged.document()
    del document["receipt"]["plan"]["protect_edges"]
    document["receipt"]["protected_change"] = "one undirected edge"
    forged.put_consistently(document)
    assert any("largest one" in words for words in failed(forged.folder))  # noise for three is too much for one
    for kind in ("moments", "paper"):
        forged = type(forged)(releases[kind], tmp_path / kind)
        document = forged.document()
        document["receipt"]["plan"]["protect_edges"] = 2
        document["receipt"]["protected_change"] = "any 2 undirected edges"
        forged.put_consistently(document)
        assert not verifies(forged.folder)


@pytest.mark.parametrize("kind", ["moments", "paper", "three", "four_by_the_paper"])
def test_every_stated_number_is_recomputed(releases, request, forger, kind):
    """Against the noise, not only against the words that this version writes."""
    forged = forger(releases.get(kind) or request.getfixturevalue(kind))
    said = forged.document("privacy.json")
    for place, entry in enumerate(said["fields"]["by_edges"]):
        for name, factor in (("epsilon", 0.99), ("epsilon", 1.01), ("delta", 0.5), ("delta", 2.0), ("edges", 2)):
            if entry[name] is None:
                continue
            changed = copy.deepcopy(said)
            changed["fields"]["by_edges"][place][name] *= factor
            assert stated_fails(forged, changed), (entry, name, factor)
        changed = copy.deepcopy(said)
        del changed["fields"]["by_edges"][place]
        assert stated_fails(forged, changed)
    del said["fields"]["by_edges"]
    assert stated_fails(forged, said)


def stated_fails(forged, said):
    """Whether a step about several edges fails for this privacy.json."""
    read = read_folder(forged.folder)
    read.texts["privacy.json"] = json.dumps(said).encode()
    steps = Steps()
    check = check_moments if read.model.method == "moments" else check_paper
    try:
        check(read, steps)
    except UnfitError as error:
        return "privacy.json" in str(error)
    return any(not step.holds and "edge" in step.words for step in steps.taken)


@pytest.mark.parametrize("edges", [1, 2, 3, 6, 10])
@pytest.mark.parametrize("one_way", [False, True])
def test_both_curves_agree(edges, one_way):
    """The plan's, with few lists of degrees, and the verifier's, with all; and for one-way counts."""
    numbers = {"distance": 0.2, "first_share": 0.1, "rates": (0.3, 0.16), "answer_epsilon": 0.05, "one_way": one_way}
    plan = MixedPlan(budget=Budget(2.0, 0.1), name="test", **numbers)
    branches = Branches(
        **{name: digits.mpf(numbers[name]) for name in ("distance", "first_share", "answer_epsilon")},
        rates=tuple(map(digits.mpf, plan.rates)),
        one_way=one_way,
    )
    for epsilon in (0.1 * edges, 0.7 * edges, 1.5 * edges):
        for (distance, *kind, rate), same in zip(plan.branches[1:], branches.kinds, strict=True):
            assert (*kind,) == same
            rounds, pure = kind
            cost = branch_delta(epsilon, edges * distance, 0.05, edges=edges, rounds=rounds, one_way=pure, rate=rate)
            other = branches.cost(digits.mpf(epsilon), rounds, pure, digits.mpf(rate), edges)
            assert float(other) == pytest.approx(cost, rel=1e-12)
