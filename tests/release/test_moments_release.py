"""The default's release on disk: the same model comes back to the last bit, and nothing forged is read."""

import json
import math
import re
from dataclasses import fields, replace
from datetime import UTC, datetime

import pytest
import torch
from safetensors.torch import load, save
from tests.counted import counted
from tests.labelled import labelled_circles
from tests.release.forging import forge, put

import gcon
from gcon.edges.edge_list import private_edges, public_edges
from gcon.errors import InputError, ReleaseFormatError
from gcon.files.datasets.synthetic import social_circles_parts
from gcon.mechanisms.counts import NoisyCounts
from gcon.mechanisms.gaussian_release import NoisyStatistic
from gcon.methods.moments import Moments
from gcon.methods.no_edges import predict_without_edges
from gcon.methods.own_edges import predict_from_own_edges
from gcon.methods.public_graph import predict_on_public_graph
from gcon.privacy.randomness import SeededRandomness, SystemRandomness
from gcon.release import layout
from gcon.release.store import load_release, save_release

NAMES = ("friends", "Zürich", 'a "b"\n\u2028')
PARTS = {
    "counts": social_circles_parts(100, num_classes=3, mean_degree=18, num_features=6, per_class=8, seed=1),
    "one-way counts": labelled_circles(),
    "no counts": social_circles_parts(100, num_classes=3, mean_degree=3, num_features=6, per_class=8, seed=1),
}


def trained(kind, *, epsilon=None, names=(), randomness=None):
    nodes, edge_index = PARTS[kind]
    with counted():
        return Moments(epsilon=epsilon or (0.5 if kind == "no counts" else 8.0)).train(
            replace(nodes, class_names=names or nodes.class_names),
            private_edges(edge_index, nodes.num_nodes)[0],
            ledger=gcon.MemoryLedger("circles", clock=lambda: datetime(2030, 1, 2, tzinfo=UTC)),
            randomness=randomness or SeededRandomness(4),
        )


@pytest.fixture(scope="module", params=list(PARTS))
def model(request):
    found = trained(request.param, names=NAMES)
    assert [each.one_way for each in found.tables] == {"counts": [False], "one-way counts": [True], "no counts": []}[
        request.param
    ]
    assert (found.cached is not None) == bool(found.tables)
    return found


@pytest.fixture(scope="module")
def with_counts():
    return trained("counts")


@pytest.fixture(scope="module")
def promised():
    return trained("counts", randomness=SystemRandomness())


@pytest.fixture
def folder(with_counts, tmp_path):
    save_release(with_counts, tmp_path / "release")
    return tmp_path / "release"


def assert_same(first, second):
    assert layout.release_files(first)["model.safetensors"] == layout.release_files(second)["model.safetensors"]
    assert first.record() == second.record()
    assert first.class_names == second.class_names
    facts = []
    for model in (first, second):
        released = [(NoisyStatistic, each) for each in model.statistics] + [
            (NoisyCounts, each) for each in model.tables
        ]
        named = [
            [getattr(each, entry.name) for entry in fields(kind) if entry.name != "value"] for kind, each in released
        ]
        facts.append([*named, [] if model.counts is None else [model.counts.lean, model.counts.voice]])
    assert facts[0] == facts[1]
    assert [[type(fact) for fact in each] for each in facts[0]] == [[type(fact) for fact in each] for each in facts[1]]
    assert first.receipt == second.receipt
    assert first.statement() == second.statement()
    assert first.encoder.unit_input is second.encoder.unit_input


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_card_shows_how_to_get_the_best_publishable_answers(model, tmp_path):
    """By `cached` where counts were released; elsewhere it would give the same."""
    save_release(model, tmp_path / "release")
    (code,) = re.findall(r"```python\n(.*?)```", (tmp_path / "release" / "README.md").read_text(), flags=re.DOTALL)
    features = next(parts[0].features for parts in PARTS.values() if parts[0].fingerprint == model.training_nodes)
    space = {"features": features}
    exec(code.replace("path/to/this/folder", str(tmp_path / "release")), space)
    assert ("best" in space) == bool(model.tables)
    if model.tables:
        assert space["best"].tolist() == predict_without_edges(model, features, access="cached").labels


# ---- there and back


def test_what_is_read_is_what_was_written(model, tmp_path):
    save_release(model, tmp_path / "release")
    assert_same(model, load_release(tmp_path / "release"))


@pytest.mark.parametrize("change", [{"epsilon": math.inf}, {"randomness": SystemRandomness()}], ids=["inf", "secure"])
def test_with_and_without_a_promise(change, tmp_path):
    model = trained("counts", **change)
    save_release(model, tmp_path / "release")
    assert_same(model, load_release(tmp_path / "release"))
    assert model.receipt.keeps_promise == ("randomness" in change)
    card = (tmp_path / "release" / "README.md").read_text()
    assert ("carries no promise about edges" in card) == ("epsilon" in change)


@pytest.mark.slow
def test_without_validation_nodes(tmp_path):
    nodes, edge_index = PARTS["counts"]
    blind = replace(nodes, validation_mask=torch.zeros_like(nodes.validation_mask))
    edges, ledger = private_edges(edge_index, nodes.num_nodes)[0], gcon.MemoryLedger("circles")
    model = Moments(epsilon=8.0).train(blind, edges, ledger=ledger, randomness=SystemRandomness())
    save_release(model, tmp_path / "release")
    assert_same(model, load_release(tmp_path / "release"))
    assert json.loads((tmp_path / "release" / "release.json").read_bytes())["settings"]["right"] is None


def test_two_tables(tmp_path):
    """Features that say little, and many neighbours."""
    nodes, edge_index = social_circles_parts(
        100, num_classes=3, mean_degree=18, num_features=6, feature_signal=0.3, per_class=8, seed=1
    )
    edges, ledger = private_edges(edge_index, 100)[0], gcon.MemoryLedger("circles")
    model = Moments(epsilon=50.0).train(
        nodes, edges, ledger=ledger, randomness=SeededRandomness(1)
    )  # the branch is chance
    assert len(model.tables) == 2
    save_release(model, tmp_path / "release")
    assert_same(model, load_release(tmp_path / "release"))


def test_a_copy_answers_the_same(model, tmp_path):
    save_release(model, tmp_path / "release")
    again = load_release(tmp_path / "release")
    [(nodes, edge_index)] = [parts for parts in PARTS.values() if parts[0].fingerprint == model.training_nodes]
    private = private_edges(edge_index, 100)[0]
    for features in (nodes.features, nodes.features[3:40]):
        one, two = (predict_without_edges(each, features) for each in (model, again))
        assert torch.equal(one.probabilities, two.probabilities)
        assert one.labels == two.labels
    for predict in (
        lambda each: predict_without_edges(each, nodes.features, access="cached"),
        lambda each: predict_from_own_edges(each, nodes.features, private, ledger=gcon.MemoryLedger()),
        lambda each: predict_on_public_graph(each, nodes.features + 1, public_edges(edge_index, 100)),
    ):
        assert torch.equal(predict(model).probabilities, predict(again).probabilities)


def test_the_same_model_gives_the_same_bytes(model, tmp_path):
    for place in ("one", "two"):
        save_release(model, tmp_path / place)
    save_release(load_release(tmp_path / "one"), tmp_path / "again")
    assert contents(tmp_path / "one") == contents(tmp_path / "two") == contents(tmp_path / "again")


def test_the_seed_is_in_no_byte(tmp_path):
    seed = 8675309
    save_release(trained("counts", randomness=SeededRandomness(seed)), tmp_path / "release")
    forms = [str(seed).encode(), f"{seed:x}".encode(), seed.to_bytes(4, "little"), seed.to_bytes(4, "big")]
    assert not any(form in content for content in contents(tmp_path / "release").values() for form in forms)


def test_card_and_data_list_the_accesses_of_the_model(with_counts, folder):
    document = json.loads((folder / "release.json").read_bytes())
    assert (document["method"], document["version"]) == ("moments", 4)
    assert json.loads((folder / "privacy.json").read_bytes())["fields"]["access"] == with_counts.access_words
    for page in ("README.md", "privacy.md"):
        text = (folder / page).read_text()
        assert re.findall(r"^\| `([a-z-]+)` \|", text, flags=re.MULTILINE) == list(with_counts.accesses)
        assert all(sentence in text for sentence in with_counts.statement().sentences)
    card = (folder / "README.md").read_text()
    assert "edge moments, neighbour counts" in card
    assert f"{with_counts.homophily:.2f}" in card


def test_a_model_that_cannot_be_read_back_is_not_written(with_counts, tmp_path):
    for change in (
        {"answers": with_counts.answers.double()},
        {"answers": with_counts.answers[:, :2]},
        {"cached": with_counts.cached[:50]},
        {"cached": torch.full_like(with_counts.cached, math.nan)},
        {"cached": None},
        {"counts": None},
        {"counts": replace(with_counts.counts, edge_messages=with_counts.counts.edge_messages + 2)},
        {"counts": replace(with_counts.counts, voice=1.5)},
        {"counts": replace(with_counts.counts, codes=with_counts.counts.codes.int())},
        {"counts": replace(with_counts.counts, codes=with_counts.counts.codes - 1)},
        {"counts": replace(with_counts.counts, lean=math.nan)},
        {"counts": replace(with_counts.counts, lean=-1.0)},
        {"counts": replace(with_counts.counts, edge_shares=2 * with_counts.counts.edge_shares)},
        {"counts": replace(with_counts.counts, proportions=2 * with_counts.counts.proportions)},
        {"counts": replace(with_counts.counts, crowding=-with_counts.counts.crowding)},
        {"labels": with_counts.labels - 1},
        {"labels": with_counts.labels.double()},
        {"tables": ()},
        {"tables": with_counts.tables * 3},
        {"tables": (replace(with_counts.tables[0], value=with_counts.tables[0].value.double()),)},
        {"asked": -1},
        {"right": 2.5},
        {"homophily": math.nan},
        {"homophily": 2.0},
        {"statistics": (replace(with_counts.statistics[0], value=with_counts.statistics[0].value.float()),)},
        {"statistics": (replace(with_counts.statistics[0], share=math.inf),)},
    ):
        with pytest.raises(InputError, match=r"^model: must be one that load_release can read back"):
            save_release(replace(with_counts, **change), tmp_path / "bad")
        assert list(tmp_path.iterdir()) == []


# ---- forged releases: checksums are right, content is not


def test_an_honest_forgery_is_read(with_counts, folder):
    forge(folder)
    assert_same(with_counts, load_release(folder))


FIRST, TABLE = "settings.statistics.0", "settings.tables.0"
HUGE = 10**400


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("method", "paper", "unknown field `asked` - at `$.settings`"),
        ("settings.more", 1, "unknown field `more` - at `$.settings`"),
        *(("settings.homophily", value, "at `$.settings.homophily`") for value in (-0.01, 1.01, HUGE)),
        *(("settings.homophily", value, "at `$.settings.homophily`") for value in ("0.5", None, True, "inf")),
        *(("settings.nodes", value, "Expected `int` >= 1 - at `$.settings.nodes`") for value in (0, -5)),
        *(("settings.nodes", value, "at `$.settings.nodes`") for value in (100.0, "100", None, HUGE)),
        *(("settings.nodes", value, "'answers' must be of type F32") for value in (99, 101)),
        ("settings.own_edges", 1, "Expected `bool`, got `int` - at `$.settings.own_edges`"),
        ("settings.own_edges", False, "does not say what follows from the model"),
        *(("settings.right", value, "at `$.settings.right`") for value in (1.5, "20", True, HUGE, -HUGE)),
        *(("settings.asked", value, "at `$.settings.asked`") for value in (-1, 1.5, "20", None, HUGE)),
        *(("settings.lean", value, "at `$.settings.lean`") for value in (-0.01, "1", None, HUGE)),
        *(("settings.voice", value, "at `$.settings.voice`") for value in (-0.01, 1.01, "1", None, HUGE)),
        *(("settings.regressions", value, "at `$.settings.regressions`") for value in (-1, 1.5, None, 1001)),
        ("settings.regressions", 0, "'tables' must be at most two, with regressions on them"),
        ("settings.regressions", 999, "'weights' must be of type F64"),
        ("settings.tables", [], "'tables' must be at most two, with regressions on them"),
        ("settings.tables", [{"rate": 1.0, "rounds": 2}] * 2, "must hold exactly the tensors"),
        ("settings.tables", [{"rate": 1.0, "rounds": 2}] * 3, "'tables' must be at most two"),
        (TABLE, [], "Expected `object`, got `array` - at `$.settings.tables[0]`"),
        (f"{TABLE}.more", 1, "unknown field `more` - at `$.settings.tables[0]`"),
        *((f"{TABLE}.rate", value, "at `$.settings.tables[0].rate`") for value in (-1.0, "inf", True, HUGE)),
        *((f"{TABLE}.rounds", value, "at `$.settings.tables[0].rounds`") for value in (0, -1, 1.0, None, HUGE)),
        *(
            ("settings.training_nodes", value, "at `$.settings.training_nodes`")
            for value in ("", "no checksum", "F" * 64)
        ),
        ("settings.statistics", {}, "Expected `array`, got `object` - at `$.settings.statistics`"),
        ("settings.statistics", [], "must hold exactly the tensors"),
        (FIRST, [], "Expected `object`, got `array` - at `$.settings.statistics[0]`"),
        (f"{FIRST}.more", 1, "unknown field `more` - at `$.settings.statistics[0]`"),
        (f"{FIRST}.name", 7, "Expected `str`, got `int` - at `$.settings.statistics[0].name`"),
        (f"{FIRST}.symmetric", 1, "Expected `bool`, got `int` - at `$.settings.statistics[0].symmetric`"),
        *((f"{FIRST}.shape", value, "Expected `array` of length 2") for value in ([], [6], [6, 6, 6])),
        *((f"{FIRST}.shape", value, "shape[0]`") for value in ([0, 6], [-6, 6], ["6", 6], [HUGE, HUGE])),
        *((f"{FIRST}.shape", value, "shape[1]`") for value in ([6, True], [6, 6.0], [6, None])),
        (f"{FIRST}.shape", [5, 5], "'statistic.0' must be of type F64"),
        *(
            (f"{FIRST}.{name}", value, f"{rule} - at `$.settings.statistics[0].{name}`")
            for name in ("standard_deviation", "sensitivity", "share")
            for value, rule in ((-1e-9, "`float` >= 0.0"), ("inf", "got `str`"), (HUGE, "`int` <= 4611686018427387904"))
        ),
        (f"{FIRST}.share", 1.5, "add to at most 1"),
        ("settings.statistics.1.share", 0.99, "add to at most 1"),
        ("settings.statistics.1.shape", [4, 5], "symmetric"),
        ("class_names", [{"type": "int", "value": 0}, {"type": "int", "value": 1}], "must be of type F32"),
        ("receipt.randomness", "secure", "does not say what follows from the model"),
        ("settings.homophily", 0.125, "does not say what follows from the model"),
        (f"{FIRST}.name", "other", "does not say what follows from the model"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_settings_that_no_release_has_are_refused(with_counts, folder, path, value, message):
    forge(folder, put(path, value))
    with pytest.raises(ReleaseFormatError, match=re.escape(message)):
        load_release(folder)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("settings.training_nodes", "0" * 64),
        (f"{FIRST}.symmetric", False),
        *((f"{FIRST}.{name}", 0.25) for name in ("standard_deviation", "sensitivity", "share")),
        *((f"{TABLE}.rate", rate) for rate in (0.25, None)),
        (f"{TABLE}.rounds", 2),
        ("settings.lean", 0.5),
        ("settings.voice", 0.25),
        ("settings.right", -3),
        ("settings.right", None),
        ("settings.asked", 7),
    ],
)
def test_settings_that_could_be_change_nothing_that_is_promised(with_counts, folder, path, value):
    """Checksums are no signature: such a forgery is read as what it says, and its promise is the receipt's."""
    forge(folder, put(path, value))
    found = load_release(folder)
    assert found.receipt == with_counts.receipt
    assert found.statement() == with_counts.statement()
    nodes, _ = PARTS["counts"]
    released = torch.equal(
        predict_without_edges(found, nodes.features).probabilities,
        predict_without_edges(with_counts, nodes.features).probabilities,
    )
    assert released == ("training_nodes" not in path)  # of another table: the student answers


FLOATS = [
    "answers",
    "cached",
    "start",
    "statistic.0",
    "edge_shares",
    "edge_messages",
    "weights",
    "proportions",
    "crowding",
    "regressions",
    "encoder.head_weight",
]
WHOLE = ["labels", "codes", "counts.0"]


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize(
    "change",
    [
        lambda tensor: torch.cat([tensor, tensor]),
        lambda tensor: tensor[:-1],
        lambda tensor: tensor.flip(0).reshape(1, -1),
        lambda tensor: tensor.float() if tensor.dtype == torch.float64 else tensor.double(),
        lambda tensor: torch.full_like(tensor, math.nan),
        lambda tensor: torch.full_like(tensor, math.inf),
    ],
    ids=["longer", "shorter", "flat", "other float", "NaN", "infinity"],
)
def test_tensors_of_another_shape_or_type_are_refused(folder, name, change):
    put_tensors(folder, lambda tensors: {name: change(tensors[name])})
    with pytest.raises(ReleaseFormatError, match=rf"^model\.safetensors: '{re.escape(name)}' (must be of type|holds)"):
        load_release(folder)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize(
    "change",
    [
        lambda tensor: torch.cat([tensor, tensor]),
        lambda tensor: tensor[:-1],
        lambda tensor: tensor.reshape(1, -1),
        lambda tensor: tensor.int(),
        lambda tensor: tensor.double(),
    ],
    ids=["longer", "shorter", "flat", "32 bits", "float"],
)
def test_whole_numbers_of_another_shape_or_type_are_refused(folder, name, change):
    put_tensors(folder, lambda tensors: {name: change(tensors[name])})
    with pytest.raises(ReleaseFormatError, match=rf"^model\.safetensors: '{re.escape(name)}' must be of type I64"):
        load_release(folder)


def put_tensors(folder, change):
    """Other tensors under a right checksum."""
    path = folder / "model.safetensors"
    tensors = {key: tensor.clone() for key, tensor in load(path.read_bytes()).items()}
    path.write_bytes(save({**tensors, **change(tensors)}))
    forge(folder)


def put_entry(tensor, value):
    tensor.reshape(-1)[0] = value
    return tensor


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        *((name, lambda tensor: 2 * tensor, "class probabilities") for name in ("answers", "cached", "start")),
        *((name, lambda tensor: tensor - 1, "class probabilities") for name in ("answers", "cached", "start")),
        *((name, lambda tensor: 1.01 * tensor, "shares that add to 1") for name in ("edge_shares", "weights")),
        ("edge_shares", lambda tensor: tensor + torch.tensor([-2.0, 1.0, 1.0]), "shares that add to 1"),
        *(("edge_messages", lambda tensor, far=far: tensor + far, "messages, from -1 to 1") for far in (2.5, -1e300)),
        *((name, lambda tensor: put_entry(tensor, 3), "class numbers") for name in ("labels", "codes")),
        ("labels", lambda tensor: put_entry(tensor, -2), "class numbers"),
        ("codes", lambda tensor: put_entry(tensor, -1), "class numbers"),
        *(
            ("crowding", lambda tensor, far=far: put_entry(tensor, far), "numbers above 0")
            for far in (0.0, -1.0, 1e-300)
        ),
        ("proportions", lambda tensor: 1.01 * tensor, "shares above 0, row by row"),
        ("proportions", lambda tensor: torch.eye(len(tensor), dtype=tensor.dtype), "shares above 0, row by row"),
        ("codes", lambda tensor: put_entry(tensor, 2**62), "class numbers"),
        ("training_rows", lambda tensor: tensor.flip(0), "rising digests after their sum"),
    ],
)
def test_numbers_that_no_release_has_are_refused(folder, name, change, message):
    put_tensors(folder, lambda tensors: {name: change(tensors[name])})
    with pytest.raises(ReleaseFormatError, match=rf"^model\.safetensors: '{name}' must hold {message}"):
        load_release(folder)


def test_tensors_too_many_or_too_few_are_refused(folder):
    path = folder / "model.safetensors"
    tensors = {key: tensor.clone() for key, tensor in load(path.read_bytes()).items()}
    fewer = [{key: tensor for key, tensor in tensors.items() if key != name} for name in ("cached", *WHOLE)]
    more = [
        {**tensors, "statistic.2": torch.zeros(2, 2, dtype=torch.float64)},
        {**tensors, "counts.1": tensors["counts.0"].clone()},
    ]
    for changed in fewer + more:
        path.write_bytes(save(changed))
        forge(folder)
        with pytest.raises(ReleaseFormatError, match=r"^model\.safetensors: must hold exactly the tensors answers"):
            load_release(folder)


COSTS_MORE = "claims a smaller budget than the noise in its plan costs"


@pytest.mark.parametrize(
    ("path", "change", "message"),
    [
        (f"{FIRST}.standard_deviation", lambda value: 0.99 * value, "noise in 'statistics' is too small"),
        (f"{FIRST}.standard_deviation", lambda value: 0.0, "noise in 'statistics' is too small"),
        (f"{FIRST}.sensitivity", lambda value: 1.01 * value, "noise in 'statistics' is too small"),
        (f"{FIRST}.share", lambda value: 0.9 * value, "noise in 'statistics' is too small"),
        (f"{TABLE}.rate", lambda value: 1.01 * value, "noise in 'tables' is too small"),
        (f"{TABLE}.rate", lambda value: None, "noise in 'tables' is too small"),
        (f"{TABLE}.rounds", lambda value: 2, "noise in 'tables' is too small"),
        (f"{TABLE}.rounds", lambda value: 3, "noise in 'tables' is too small"),
        ("settings.statistics.1.share", lambda value: 0.5, "more moments than may come before 'tables'"),
        ("receipt.plan.distance", lambda value: 1.01 * value, COSTS_MORE),
        ("receipt.plan.distance", lambda value: None, COSTS_MORE),
        ("receipt.plan.distance", lambda value: 10**400, COSTS_MORE),
        ("receipt.plan.distance", lambda value: True, COSTS_MORE),
        ("receipt.plan.distance", lambda value: "1", COSTS_MORE),
        ("receipt.plan.distance", lambda value: 1e-320, COSTS_MORE),
        ("receipt.plan.distance", lambda value: 1e-3, "noise in 'statistics' is too small"),
        *((f"receipt.plan.rates.{place}", lambda value: 1.01 * value, COSTS_MORE) for place in (0, 1)),
        *(
            ("receipt.plan.rates", lambda value, other=other: other, COSTS_MORE)
            for other in ([], [1e-3], None, "12", 7)
        ),
        ("receipt.plan.rates.0", lambda value: -1.0, COSTS_MORE),
        *(
            ("receipt.plan.first_share", lambda value, other=other: other, COSTS_MORE)
            for other in (0.06, 0.0, 1.0, -1.0, None, "0.05")
        ),
        *(
            ("receipt.plan.answer_epsilon", lambda value, other=other: other, COSTS_MORE)
            for other in (0.5, 9.0, -0.1, None, "0.4", 10**400)
        ),
        ("receipt.plan.answer_epsilon", lambda value: 0.0, "a count of right answers that its plan does not pay"),
        ("receipt.plan", lambda value: {}, COSTS_MORE),
        ("receipt.budget.epsilon", lambda value: 0.99 * value, COSTS_MORE),
        ("receipt.budget.delta", lambda value: 0.9 * value, COSTS_MORE),
        ("receipt.budget", lambda value: {"epsilon": 0.0, "delta": 0.0}, COSTS_MORE),
        ("receipt.randomness", lambda value: "Seeded: no promise", "claims a promise where there is none"),
    ],
)
def test_a_promise_that_the_numbers_contradict_is_refused(promised, tmp_path, path, change, message):
    save_release(promised, tmp_path / "release")
    load_release(tmp_path / "release")

    def forged(document):
        *parents, last = path.split(".")
        place = document
        for name in parents:
            place = place[int(name)] if name.isdigit() else place[name]
        last = int(last) if last.isdigit() else last
        place[last] = change(place[last])

    forge(tmp_path / "release", forged)
    with pytest.raises(ReleaseFormatError, match=re.escape(message)):
        load_release(tmp_path / "release")


def test_one_way_codes_are_classes_or_nothing(tmp_path):
    folder = tmp_path / "release"
    save_release(trained("one-way counts"), folder)
    for code in (-2, 3):
        put_tensors(folder, lambda tensors, code=code: {"codes": put_entry(tensors["codes"], code)})
        with pytest.raises(ReleaseFormatError, match="'codes' must hold class numbers"):
            load_release(folder)


def test_a_promise_for_another_kind_of_counts_is_refused(tmp_path):
    folder = tmp_path / "release"
    save_release(trained("one-way counts", randomness=SystemRandomness()), folder)
    honest = contents(folder)
    rate = json.loads(honest["release.json"])["receipt"]["plan"]["rates"][0]
    for path, value, message in (
        (f"{TABLE}.one_way", False, "noise in 'tables' is too small"),
        (f"{TABLE}.one_way", 1, "Expected `bool"),
        (f"{TABLE}.rounds", 2, "noise in 'tables' is too small"),
        (f"{TABLE}.rate", rate, "noise in 'tables' is too small"),
        ("receipt.plan.one_way", False, COSTS_MORE),
        ("receipt.plan.one_way", 1, COSTS_MORE),
        ("receipt.plan.one_way", "yes", COSTS_MORE),
    ):
        forge(folder, put(path, value))
        with pytest.raises(ReleaseFormatError, match=re.escape(message)):
            load_release(folder)
        for name, content in honest.items():
            (folder / name).write_bytes(content)
    load_release(folder)
