"""Every number, word and tensor of a release, changed one at a time with all checksums made right again.

Each change is refused by the reader or fails verification. What does not is listed here, exactly, with the reason why it cannot
matter to the promise or why no folder can show it.
"""

import copy
import json
import math
import re

import pytest
import torch

from gcon.errors import ReleaseFormatError
from gcon.verify.arithmetic import lattice_of
from gcon.verify.verify import verify_release

# Changed alone, with every other file as it was.
OPEN_ALONE = {
    "libraries.gcon",  # who wrote it, in versions
    "libraries.python",
    "libraries.torch",
    "class_names.*.value",  # what the classes are called
    "encoder.unit_input",  # how features of nodes never seen are scaled at prediction
    "settings.training_nodes",  # which table is refused as a public graph: needs the table
}
OPEN_ALONE_BY_KIND = {
    "moments": {"settings.homophily"},  # an estimate from released numbers; the card shows two digits of it
    "sums": {"settings.homophily"},
    # The weight of a node's own features at prediction; and the clip, for the reason below (the card does not show it).
    "paper": {"settings.inference_restart", "settings.clip"},
}
# Changed together with everything that people are told, as a forger with some patience would.
OPEN_TOGETHER = OPEN_ALONE | {
    "receipt.data_set",  # the owner's name for the data
    "receipt.purpose",
    "receipt.time",
    "receipt.total.delta",  # what the ledger knew: more than this release, or less by other releases
    "receipt.total.epsilon",
}
OPEN_TOGETHER_BY_KIND = {
    "moments": {"settings.homophily", "receipt.plan.releases.*.rounding"},  # inside the sensitivity already; bounded
    "sums": {"settings.homophily", "receipt.plan.releases.*.rounding"},
    # These matter: the receipt holds neither the bound's name nor the features' diameter, so Psi is only held against a range.
    "paper": {"settings.inference_restart", "settings.restart", "settings.steps.*", "settings.clip"},
}
# Functions of released and public numbers; and networks trained without edges.
OPEN_TENSORS = {
    "moments": {"answers", "encoder.head_weight", "encoder.head_bias"},
    "sums": {"answers", "cached", "encoder.head_weight", "encoder.head_bias"},
    "paper": {
        "encoder.head_weight",
        "encoder.head_bias",
        "encoder.hidden_weight",
        "encoder.hidden_bias",
        "encoder.centre",
    },
}
KINDS = sorted(OPEN_TENSORS)


def leaves(content, path=()):
    if isinstance(content, dict | list):
        for key, entry in content.items() if isinstance(content, dict) else enumerate(content):
            yield from leaves(entry, (*path, key))
    else:
        yield path, content


def variants(value):
    """Other values of the same kind, near and far, on both sides; and one of another kind."""
    if isinstance(value, bool):
        return [not value, "x"]
    if isinstance(value, int):
        return [value + 1, value - 1, -value - 1, 10**400, "x"]
    if isinstance(value, float):
        near = [value * (1 + 1e-4), value * (1 - 1e-4)] if value else [1e-12, 0.01]
        return [*near, value / 2, 2 * value + 1, -value - 1, 0.0, 1e300, "inf", "x", None]
    if isinstance(value, str):
        other = "b" if value[:1] == "a" else "a"
        return [value + "x", "", other + value[1:], value.upper(), 3, "inf", "pseudo-huber:0.3"]
    return [0.0, 1.0, "x"]


def changed(content, path, value):
    copied = copy.deepcopy(content)
    place = copied
    for key in path[:-1]:
        place = place[key]
    if type(place[path[-1]]) is type(value) and place[path[-1]] == value:
        return None
    place[path[-1]] = value
    return copied


def named(path):
    return ".".join("*" if isinstance(key, int) else str(key) for key in path)


def verifies(folder):
    try:
        return verify_release(folder).holds
    except ReleaseFormatError:
        return False


def open_fields(forger, put, document):
    """The fields of which some change is not noticed."""
    found = set()
    for path, value in leaves(document):
        if path[0] in ("checksum", "files"):
            continue
        for other in variants(value):
            forged = changed(document, path, other)
            if forged is None:
                continue
            try:
                put(forged)
            except ReleaseFormatError:
                continue
            finally:
                noticed = not verifies(forger.folder)
                forger.restore()
            if not noticed:
                found.add(named(path))
    return found


# Releases with neighbour sums and with moments alone have the same fields.
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.slow] * (kind == "moments")) for kind in KINDS])
class TestEveryField:
    def test_of_release_json(self, releases, forger, kind):
        one = forger(releases[kind])
        assert open_fields(one, one.put_document, one.document()) == OPEN_ALONE | OPEN_ALONE_BY_KIND[kind]

    @pytest.mark.slow
    def test_of_release_json_with_all_words_rewritten(self, releases, forger, kind):
        one = forger(releases[kind])
        assert open_fields(one, one.put_consistently, one.document()) == OPEN_TOGETHER | OPEN_TOGETHER_BY_KIND[kind]

    @pytest.mark.slow
    def test_of_privacy_json(self, releases, forger, kind):
        one = forger(releases[kind])

        def put(content):
            text = json.dumps(content, sort_keys=True, indent=2, ensure_ascii=False)
            one.put_text("privacy.json", f"{text}\n".encode())

        document = one.document("privacy.json")
        put(document)
        assert verifies(one.folder)
        assert open_fields(one, put, document) == set()

    def test_left_out_or_added(self, releases, forger, kind):
        """A field that is missing, and one more, anywhere."""
        one = forger(releases[kind])
        document = one.document()
        for path in {path[:-1] for path, _ in leaves(document)}:
            place = document
            for key in path:
                place = place[key]
            if path[:1] in (("files",), ("libraries",)) or not isinstance(place, dict):
                continue
            for key in [*place, None]:
                forged = copy.deepcopy(document)
                there = forged
                for step in path:
                    there = there[step]
                if key is None:
                    there["note"] = "epsilon 0.1"
                elif (*path, key) in (("checksum",), ("files",)):
                    continue
                else:
                    del there[key]
                one.put_document(forged)
                assert not verifies(one.folder), (path, key)
                one.restore()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["README.md", "privacy.json", "privacy.md"])
def test_every_text(releases, forger, kind, name):
    one = forger(releases[kind])
    text = (one.folder / name).read_bytes()
    for forged in (
        text + b"\n",
        text[:-2],
        re.sub(rb"1e-05", b"1e-06", text),
        text.replace(b"-differentially private", b"-private", 1),
        b"\xff" + text,
        b"{}",
    ):
        one.put_text(name, forged)
        assert not verifies(one.folder)


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_checksum_or_size_is_refused(releases, forger, kind):
    one = forger(releases[kind])
    document = one.document()
    for path, value in leaves({"files": document["files"], "checksum": document["checksum"]}):
        for other in variants(value)[:4]:
            forged = changed(document, path, other)
            (one.folder / "release.json").write_text(json.dumps(forged, sort_keys=True, indent=2) + "\n")
            with pytest.raises(ReleaseFormatError):
                verify_release(one.folder)


def moved(tensor, place, step):
    tensor = tensor.clone()
    tensor.view(-1)[place] += step
    return tensor


def tensor_variants(name, tensor, document):
    if name == "weights":
        spacing = lattice_of(document["receipt"]["plan"]["final_noise"])
        return [moved(tensor, 0, spacing / 2), tensor * 1e6, moved(tensor, -1, 1e5), tensor + math.pi * spacing]
    if name.startswith("statistic."):
        entry = document["settings"]["statistics"][int(name[-1])]
        smallest = entry["standard_deviation"] * (math.sqrt(0.5) if entry["symmetric"] else 1)
        spacing = lattice_of(smallest)
        off = [moved(tensor, 0, spacing / 2), tensor * (1 + 1e-9), tensor + spacing / 3]
        return [*off, moved(tensor, 1, spacing)] if entry["symmetric"] else off
    others = [tensor * 1.5, moved(tensor, 0, 0.1), torch.zeros_like(tensor), torch.full_like(tensor, math.nan)]
    return [*others, tensor.flip(0)]  # the last is still made of probabilities


@pytest.mark.parametrize("kind", KINDS)
def test_every_tensor(releases, forger, kind):
    one, found = forger(releases[kind]), set()
    tensors, document = one.tensors(), one.document()
    for name, tensor in tensors.items():
        for other in tensor_variants(name, tensor, document):
            one.put_tensors(tensors | {name: other})
            if verifies(one.folder):
                found.add(name)
            one.restore()
    assert found == OPEN_TENSORS[kind]


def test_tensors_of_another_shape_are_refused(releases, forger):
    one = forger(releases["moments"])
    tensors = one.tensors()
    for name, tensor in tensors.items():
        one.put_tensors(tensors | {name: tensor[..., :-1]})
        with pytest.raises(ReleaseFormatError):
            verify_release(one.folder)


def test_noise_that_is_not_there_is_noticed_where_a_statistic_was_released_twice(releases, forger):
    one = forger(releases["moments"])
    tensors = one.tensors()
    first, last = tensors["statistic.0"], tensors["statistic.2"]
    for forged in (
        {"statistic.2": first},  # the same noise twice
        {"statistic.0": torch.zeros_like(last), "statistic.2": torch.zeros_like(last)},
        {"statistic.0": 8 * first},
    ):
        one.put_tensors(tensors | forged)
        (words,) = failures(one.folder)
        assert words.startswith("The two releases of one statistic differ like noise")
        one.restore()


def test_a_released_number_may_be_any_lattice_point(releases, forger):
    """That is what noise means: no other number of the folder says which one it must be."""
    one = forger(releases["moments"])
    tensors = one.tensors()
    for name, place in (("statistic.1", 0), ("statistic.0", 0)):
        one.put_tensors(tensors | {name: moved(tensors[name], place, 0.5)})
        assert verifies(one.folder)
        one.restore()


class TestForgersWithSomeKnowledge:
    """Several fields at once, so that they agree with each other."""

    def test_less_noise_for_a_smaller_sensitivity(self, releases, forger):
        one = forger(releases["moments"])
        document = one.document()
        for entry in (document["settings"]["statistics"][0], document["receipt"]["plan"]["releases"][0]):
            entry["sensitivity"] /= 2
            entry["standard_deviation"] /= 2
        document["receipt"]["plan"]["releases"][0]["spacing"] /= 2
        one.put_consistently(document)
        assert any("one that the method's rows can have" in words for words in failures(one.folder))

    @pytest.mark.parametrize("place", [0, 1])
    def test_moments_that_are_said_to_be_sums(self, releases, forger, place):
        """Sums of neighbours have a smaller sensitivity than moments, and would need less noise."""
        one = forger(releases["moments"])
        document = one.document()
        settings, record = document["settings"]["statistics"][place], document["receipt"]["plan"]["releases"][place]
        settings |= {"name": "neighbour rows", "symmetric": False}
        record |= {"statistic": "neighbour rows", "bits": 52, "rounding": 0.0}
        one.put_consistently(document)
        assert any("fits the method" in words for words in failures(one.folder))

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_smaller_epsilon_everywhere(self, releases, forger, kind):
        one = forger(releases[kind])
        document = one.document()
        for record in (document["receipt"]["plan"], document["receipt"]["budget"], document["receipt"]["total"]):
            record["epsilon"] /= 2
        one.put_consistently(document)
        assert not verifies(one.folder)

    def test_a_seed_that_is_denied(self, moments_release, forger):
        from gcon.privacy.randomness import SeededRandomness

        one = forger(moments_release(randomness=SeededRandomness(1)))
        document = one.document()
        document["receipt"]["keeps_promise"] = True
        one.put_document(document)
        with pytest.raises(ReleaseFormatError, match="claims a promise where there is none"):
            verify_release(one.folder)
        document["receipt"]["randomness"] = "a good generator"
        one.put_consistently(document)
        with pytest.raises(ReleaseFormatError, match="claims a promise where there is none"):
            verify_release(one.folder)

    def test_a_hundredth_of_the_influence(self, circles, paper_release, forger):
        """The plan is honest for that influence, but no bound for centred rows can be so small."""
        from gcon.mechanisms.convex_training import objective_record
        from gcon.mechanisms.losses import loss_by_name
        from gcon.mechanisms.objective_plan import make_plan
        from gcon.privacy.budget import Budget

        one = forger(paper_release())
        document = one.document()
        said = document["receipt"]["plan"]
        plan = make_plan(
            Budget(said["epsilon"], said["delta"]),
            loss=loss_by_name(said["loss"], said["num_classes"]),
            num_features=said["num_features"],
            num_labelled=said["num_labelled"],
            edge_influence=said["edge_influence"] / 100,
            ridge=said["ridge"],
        )
        document["receipt"]["plan"] = json.loads(json.dumps(objective_record([plan])))
        one.put_consistently(document)
        assert any("two lone nodes" in words for words in failures(one.folder))

    def test_an_influence_of_zero(self, releases, forger):
        one = forger(releases["paper"])
        document = one.document()
        plan = document["receipt"]["plan"]
        free = ("edge_influence", "final_noise", "spacing", "reserved_epsilon", "reserved_delta", "extra_ridge")
        plan |= dict.fromkeys(free, 0.0) | {"noise_rate": None}
        document["receipt"]["budget"] = {"epsilon": 0.0, "delta": 0.0}
        one.put_consistently(document)
        assert any("has a reason" in words for words in failures(one.folder))


def failures(folder):
    return [step.words for step in verify_release(folder).steps if not step.holds]
