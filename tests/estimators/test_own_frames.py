"""Data frames as people have them: categories, gaps and dropped columns, fitted, saved and loaded; answers with an index."""

import numpy as np
import polars
import pytest

import gcon
from gcon.errors import InputError
from gcon.estimators.fitted import known_columns

pandas = pytest.importorskip("pandas")

CHOICE = {"drop": ["name"], "categorical": ["city"]}


@pytest.fixture(scope="module")
def people(parts):
    """With a name, a city and an age that is not always known, beside two of the features."""
    count = len(parts.labels)
    draws = np.random.default_rng(3)
    frame = pandas.DataFrame(parts.features[:, :2], columns=["x", "y"], index=[f"person {row}" for row in range(count)])
    frame.insert(0, "name", [f"N. {row}" for row in range(count)])
    frame["city"] = draws.choice(["Rome", "Oslo", None], count)
    frame["age"] = np.where(draws.random(count) < 0.2, np.nan, draws.normal(40, 9, count))
    return frame


@pytest.fixture(scope="module")
def fitted(people, parts):
    return gcon.GCON(epochs=3).fit(people, parts.labels, edges=parts.pairs(), **CHOICE)


def test_names_and_number_of_columns(fitted):
    assert fitted.feature_names_in_.tolist() == ["x", "y", "city", "age"]
    assert fitted.n_features_in_ == 4
    columns = fitted.model_.feature_columns
    assert columns.feature_names == ["x", "y", "city=missing", "city=Oslo", "city=Rome", "age", "age is missing"]
    assert fitted.model_.encoder.num_features == columns.width == 7


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [gcon.GCON(epochs=3), gcon.NodeClassifier()], ids=["paper", "default"])
def test_a_release_does_it_again(people, parts, tmp_path, estimator):
    model = estimator.fit(people, parts.labels, edges=parts.pairs(), **CHOICE)
    gcon.save_release(model.model_, tmp_path / "model")
    expected = model.predict_proba(people)
    for loaded in (gcon.load(tmp_path / "model"), type(model).from_release(tmp_path / "model")):
        assert type(loaded) is type(model)
        assert loaded.feature_names_in_.tolist() == model.feature_names_in_.tolist()
        without_name = people.drop(columns="name")
        for table in (people, without_name, polars.from_pandas(without_name)):
            assert np.array_equal(loaded.predict_proba(table), expected)
        assert np.array_equal(
            loaded.predict_proba(people, access="own-edges", edges=parts.pairs()),
            model.predict_proba(people, access="own-edges", edges=parts.pairs()),
        )
        assert np.array_equal(loaded.predict_proba(without_name.to_numpy()), expected)  # by place


def test_from_release_insists_on_its_method(fitted, tmp_path):
    gcon.save_release(fitted.model_, tmp_path / "model")
    with pytest.raises(InputError, match=r"gcon\.load"):
        gcon.NodeClassifier.from_release(tmp_path / "model")


def test_what_prediction_does_not_know(fitted, people):
    other = people.assign(city="Paris", age=np.nan)
    row = known_columns(fitted, other).features[0].tolist()
    assert row[2:5] == [0, 0, 0]
    assert row[5:] == [fitted.model_.feature_columns.fill["age"], 1]
    with pytest.raises(InputError, match=r"column 'x'.*may have gaps only where"):
        fitted.predict(people.assign(x=np.nan))
    for table in (people[["x", "y", "age", "city"]], people.drop(columns="age"), people.assign(more=1.0)):
        with pytest.raises(
            InputError, match=r"same columns at every call.*feature names[\s\S]*X\[list\(model.feature_names_in_\)\]"
        ):
            fitted.predict(table)


REFUSED = {
    "text": ({}, r"column 'name'.*categorical=\['name'\].*drop=\['name'\]"),
    "nothing to drop": ({"drop": ["nobody"]}, r"^drop: must name columns"),
    "no such categories": ({"drop": ["name", "city"], "categorical": ["town"]}, "no such column 'town'"),
    "nothing is left": ({"drop": ["name", "x", "y", "city", "age"]}, "at least one column"),
}


@pytest.mark.parametrize(("choice", "words"), REFUSED.values(), ids=REFUSED)
def test_refusals_come_before_anything_is_paid(people, parts, choice, words):
    ledger = gcon.MemoryLedger("friends")
    with pytest.raises(InputError, match=words):
        gcon.GCON(epochs=3, ledger=ledger).fit(people, parts.labels, edges=parts.pairs(), **choice)
    assert not ledger.entries()


def test_only_data_frames_have_columns(parts):
    for table in (parts.features, parts.private()):
        with pytest.raises(InputError, match=r"^drop, categorical: name columns of a data frame"):
            gcon.GCON().fit(table, drop=["name"])


def test_a_graph_read_with_other_columns_is_refused(fitted, parts):
    with pytest.raises(InputError, match="other columns or categories"):
        fitted.predict(parts.private())


def test_answers_with_an_index(fitted, people):
    plain = fitted.predict(people), fitted.predict_proba(people)
    labels, shares = (
        getattr(gcon.GCON.from_model(fitted.model_).set_output(transform="pandas"), name)(people)
        for name in ("predict", "predict_proba")
    )
    assert labels.index.tolist() == shares.index.tolist() == people.index.tolist()
    assert np.array_equal(labels, plain[0])
    assert np.array_equal(shares, plain[1])
    assert shares.columns.tolist() == fitted.classes_.tolist()
    back = gcon.GCON.from_model(fitted.model_).set_output(transform="pandas").set_output(transform="default")
    assert isinstance(back.predict(people), np.ndarray)
    with pytest.raises(InputError, match="'default' or 'pandas'"):
        back.set_output(transform="polars")


@pytest.mark.slow
def test_a_report_reads_the_frame_as_training_did(fitted, people, parts):
    place = np.arange(len(parts.labels))
    page = fitted.report(people, parts.labels, train_mask=place < 100, test_mask=place >= 100)
    assert "The control, which spends nothing" in page.headline[1]
