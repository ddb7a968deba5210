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

pytestmark = pytest.mark.slow

# Changed alone, with every other file as it was.
OPEN_ALONE = {
    "libraries.gcon",  # who wrote it, in versions
    "libraries.python",
    "libraries.torch",
    "class_names.*.value",  # what the classes are called
    "encoder.unit_input",  # how features of nodes never seen are scaled at prediction
    "settings.training_nodes",  # which table is refused as a public graph: needs the table
}
MOMENTS = {"settings.homophily", "settings.right", "settings.asked"}
COUNTS = MOMENTS | {"settings.gain", "settings.lean", "settings.voice"}  # what owners make of counts, at prediction
OPEN_ALONE_BY_KIND = {
    # An estimate from released numbers, of which the card shows two digits; a noisy count, and how many it is of.
    "moments": MOMENTS,
    "counts": COUNTS,
    "counts twice": COUNTS,
    "one-way counts": COUNTS,
    "paper": {"settings.inference_restart"},  # the weight of a node's own features at prediction
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
    "moments": MOMENTS | {"receipt.plan.releases.*.rounding"},  # inside the sensitivity already; bounded
    "counts": COUNTS | {"receipt.plan.releases.*.rounding"},
    "counts twice": COUNTS | {"receipt.plan.releases.*.rounding"},
    "one-way counts": COUNTS | {"receipt.plan.releases.*.rounding"},
    # The rounding is inside the influence already; bounded. The lattice behind the noise may be finer than it is.
    "paper": {"settings.inference_restart", "receipt.plan.influence.rounding", "receipt.plan.normal_spacing"},
}
# Functions of released and public numbers; and networks trained without edges.
OF_COUNTS = {
    "training_rows",  # which rows are refused as a public graph: needs the table
    "cached",
    "edge_messages",
    "edge_shares",
    "proportions",
    "crowding",
    "weights",
    "regressions",
    "encoder.head_weight",
    "encoder.head_bias",
}
OPEN_TENSORS = {
    "moments": {"answers", "labels", "training_rows", "encoder.head_weight", "encoder.head_bias"},
    "counts": OF_COUNTS | {"start"},
    "counts twice": OF_COUNTS | {"answers"},
    "one-way counts": OF_COUNTS | {"answers", "start"},
    "paper": {
        "training_rows",
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


# One kind of moments for `make test`: the others have fewer fields, or the same ones twice.
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[pytest.mark.slow] * (kind in ("moments", "counts twice", "counts"))) for kind in KINDS],
)
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
    if name == "weights" and document["method"] == "paper":
        spacing = lattice_of(document["receipt"]["plan"]["final_noise"])
        return [moved(tensor, 0, spacing / 2), tensor * 1e6, moved(tensor, -1, 1e5), tensor + math.pi * spacing]
    if name.startswith("statistic."):
        entry = document["settings"]["statistics"][int(name[-1])]
        smallest = entry["standard_deviation"] * (math.sqrt(0.5) if entry["symmetric"] else 1)
        spacing = lattice_of(smallest)
        off = [moved(tensor, 0, spacing / 2), tensor * (1 + 1e-9), tensor + spacing / 3]
        return [*off, moved(tensor, 1, spacing)] if entry["symmetric"] else off
    if name.startswith("counts."):  # not so near that noise might have done it
        return [tensor + 10**6, tensor * 1000, moved(tensor, 0, 10**5), moved(tensor, -1, -(10**5)), -tensor - 200]
    if not tensor.is_floating_point():
        return [tensor + 1, tensor.flip(0), torch.zeros_like(tensor), tensor - 1, moved(tensor, 0, 10**9)]
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


@pytest.mark.parametrize("kind", ["moments", "counts"])
def test_noise_that_is_not_there_is_noticed_in_the_moments_of_answers(releases, circles, forger, kind):
    """Exact moments, rounded to the public lattice: every other step holds. Noise of another size, too."""
    from gcon.edges.edge_list import public_edges
    from gcon.learn.edge_free import learn_without_edges
    from gcon.mechanisms.edge_moments import EdgeMoments
    from gcon.methods.graph_facts import counted_rows

    one, (nodes, edges) = forger(releases[kind]), circles
    tensors, entry = one.tensors(), one.document()["settings"]["statistics"][1]
    kept = edges[:, ::10] if kind == "moments" else edges
    rows = counted_rows(learn_without_edges(nodes, seed=0).answers)
    exact = EdgeMoments(rows).of(public_edges(kept, nodes.num_nodes))
    spacing = lattice_of(entry["standard_deviation"] * math.sqrt(0.5))
    for forged in (
        exact,
        exact + (tensors["statistic.1"] - exact) / 1e4,
        exact + (tensors["statistic.1"] - exact) * 1e3,
    ):
        one.put_tensors(tensors | {"statistic.1": (forged / spacing).round() * spacing})
        words = failures(one.folder)
        assert any("There is noise of this deviation in the moments of answers" in said for said in words)
        one.restore()


def test_a_released_number_may_be_any_lattice_point(releases, forger):
    """That is what noise means: no other number of the folder says which one it must be."""
    one = forger(releases["moments"])
    tensors = one.tensors()
    for name, place in (("statistic.1", 0), ("statistic.0", 0)):
        one.put_tensors(tensors | {name: moved(tensors[name], place, 0.5)})
        assert verifies(one.folder)
        one.restore()


class TestTables:
    def test_a_count_may_be_any_whole_number_that_noise_can_make(self, releases, forger):
        one = forger(releases["counts"])
        tensors = one.tensors()
        one.put_tensors(tensors | {"counts.0": moved(tensors["counts.0"], 0, 1)})
        assert verifies(one.folder)

    def test_two_tables_that_tell_other_degrees(self, releases, forger):
        one = forger(releases["counts twice"])
        tensors = one.tensors()
        first = tensors["counts.0"]
        one.put_tensors(tensors | {"counts.0": first + torch.arange(len(first))[:, None] % 30})
        (words,) = failures(one.folder)
        assert words.startswith("The two tables: the degrees that they tell differ like noise")

    def test_codes_that_say_something_else(self, releases, forger):
        one = forger(releases["counts"])
        tensors = one.tensors()
        one.put_tensors(tensors | {"codes": (tensors["codes"] + 1) % 3})
        assert any("codes that were counted last" in words for words in failures(one.folder))

    def test_one_way_codes_are_labels(self, releases, forger):
        one = forger(releases["one-way counts"])
        tensors = one.tensors()
        labels = tensors["labels"]
        for codes in (torch.where(labels < 0, 0, labels), torch.where(labels >= 0, (labels + 1) % 3, -1)):
            one.put_tensors(tensors | {"codes": codes})
            assert any("are the public labels, and those of no other node" in words for words in failures(one.folder))
            one.restore()

    def test_a_one_way_table_is_not_another_one(self, releases, forger):
        """The rate of a one-way table in a plan for others, and the other way round."""
        one = forger(releases["one-way counts"])
        document = one.document()
        del document["receipt"]["plan"]["one_way"]
        one.put_consistently(document)
        with pytest.raises(ReleaseFormatError, match="costs"):
            verify_release(one.folder)
        one.restore()
        document = one.document()
        del document["settings"]["tables"][0]["one_way"]
        one.put_consistently(document)
        with pytest.raises(ReleaseFormatError, match="too small"):
            verify_release(one.folder)

    def test_one_way_counts_where_labels_are_few(self, releases, forger):
        """The plan pays for them, but the method does not make such plans."""
        one = forger(releases["one-way counts"])
        tensors = one.tensors()
        few = torch.where(torch.arange(100) < 30, tensors["labels"], -1)
        one.put_tensors(tensors | {"labels": few, "codes": few})
        assert any(words.startswith("The plan is for one-way counts") for words in failures(one.folder))

    def test_a_one_way_table_where_counts_of_all_tell_more(self, releases, forger):
        """Answers that are sure everywhere."""
        one = forger(releases["one-way counts"])
        tensors = one.tensors()
        sure = torch.nn.functional.one_hot(tensors["answers"].argmax(dim=1), 3).float()
        one.put_tensors(tensors | {"answers": sure})
        assert any(words.startswith("The branch, one-way, one table") for words in failures(one.folder))

    def test_the_other_branch(self, releases, forger):
        """What was released first says that there are hardly any edges, and yet they were counted."""
        one = forger(releases["counts"])
        tensors = one.tensors()
        one.put_tensors(tensors | {"statistic.1": moved(tensors["statistic.1"], -1, -1024.0)})
        assert any(
            words.startswith("The branch, one table, follows from what was released before")
            for words in failures(one.folder)
        )


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

    def test_a_table_of_the_quieter_branch(self, releases, forger):
        """Two tables, each with the noise of one alone."""
        one = forger(releases["counts twice"])
        document = one.document()
        rate = document["receipt"]["plan"]["rates"][0]
        for entry in (*document["settings"]["tables"], *document["receipt"]["plan"]["releases"][2:4]):
            entry |= {"rate": rate, "rounds": 1}
        one.put_consistently(document)
        with pytest.raises(ReleaseFormatError, match="too small"):
            verify_release(one.folder)

    def test_counts_after_all_moments(self, releases, forger):
        """The whole of mu^2 was spent before the table."""
        one = forger(releases["counts"])
        document = one.document()
        plan, settings = document["receipt"]["plan"], document["settings"]
        for entry in (plan["releases"][0], settings["statistics"][0]):
            entry["standard_deviation"] *= math.sqrt(entry["share"] / 0.9)
            entry["share"] = 0.9
        one.put_consistently(document)
        with pytest.raises(ReleaseFormatError, match="more moments"):
            verify_release(one.folder)

    def test_a_second_count_of_answers(self, releases, forger):
        one = forger(releases["counts"])
        document = one.document()
        document["receipt"]["plan"]["releases"].append(document["receipt"]["plan"]["releases"][-1])
        one.put_consistently(document)
        assert any("order is one that the proof covers" in words for words in failures(one.folder))

    def test_a_count_before_the_table(self, releases, forger):
        one = forger(releases["counts"])
        document = one.document()
        document["receipt"]["plan"]["releases"][2:] = reversed(document["receipt"]["plan"]["releases"][2:])
        one.put_consistently(document)
        assert any("order is one that the proof covers" in words for words in failures(one.folder))

    def test_a_count_that_is_not_named(self, releases, forger):
        """Owners' edges were looked at, and nothing was paid: the plan would have had more for the tables."""
        one = forger(releases["counts"])
        document = one.document()
        document["receipt"]["plan"]["releases"].pop()
        document["receipt"]["plan"]["answer_epsilon"] = 0.0
        with pytest.raises(ReleaseFormatError, match="does not pay"):
            one.put_consistently(document)
            failures(one.folder)

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
        source = said["influence"]
        document["receipt"]["plan"] = json.loads(json.dumps(objective_record([plan]))) | {"influence": source}
        one.put_consistently(document)
        assert any("is that of the bounds" in words for words in failures(one.folder))
        source["diameter"] /= 100
        source["rounding"] /= 100
        one.put_consistently(document)
        assert failures(one.folder) == ["Rows that were centred at their mean have a diameter above sqrt 2"]

    @pytest.mark.parametrize(("name", "value"), [("restart", 0.9), ("steps", [0, 1, 1]), ("clip", 0.4)])
    def test_another_walk_in_plan_and_settings(self, releases, forger, name, value):
        """Changed in both places, and told in every text: it leads to another influence, or to no proven one."""
        one = forger(releases["paper"])
        document = one.document()
        document["settings"][name] = document["receipt"]["plan"]["influence"][name] = value
        one.put_consistently(document)
        assert not verifies(one.folder)

    def test_an_influence_of_zero(self, releases, forger):
        one = forger(releases["paper"])
        document = one.document()
        plan = document["receipt"]["plan"]
        free = (
            "edge_influence",
            "final_noise",
            "spacing",
            "normal_spacing",
            "reserved_epsilon",
            "reserved_delta",
            "extra_ridge",
        )
        plan |= dict.fromkeys(free, 0.0) | {"noise_rate": None}
        plan["influence"] |= {"diameter": 0.0, "rounding": 0.0}
        del plan["noise"]
        document["receipt"]["budget"] = {"epsilon": 0.0, "delta": 0.0}
        one.put_consistently(document)
        assert any("has a reason" in words for words in failures(one.folder))


def failures(folder):
    return [step.words for step in verify_release(folder).steps if not step.holds]
