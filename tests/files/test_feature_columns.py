"""Node tables as they are: what becomes of text, categories and gaps, from files and from data frames alike."""

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gcon.columns import FeatureColumns, same_features
from gcon.errors import InputError
from gcon.files.frames import column_names, frame_features, learn_frame, without
from gcon.files.tables import check_files, read_node_features, read_node_ids, read_nodes

TABLE = {
    "id": ["ann", "bob", "cem", "dan"],
    "label": ["red", "blue", "red", "-1"],
    "name": ["Ann A.", "Bob B.", "Cem C.", "Dan D."],
    "age": [20.0, None, 40.0, 60.0],
    "city": ["Rome", "Oslo", None, "Rome"],
    "zip": [7, 8, 7, 9],
    "visits": [1, 0, 5, 2],
}
CHOICE = {"drop": ["name"], "categorical": ["city", "zip"]}
COLUMNS = FeatureColumns(
    names=("age", "city", "zip", "visits"),
    categories={"city": ("", "Oslo", "Rome"), "zip": ("7", "8", "9")},
    fill={"age": 40.0},
    drop=("name",),
)
FEATURES = [
    [20, 0, 0, 0, 1, 1, 0, 0, 1],
    [40, 1, 0, 1, 0, 0, 1, 0, 0],
    [40, 0, 1, 0, 0, 1, 0, 0, 5],
    [60, 0, 0, 0, 1, 0, 0, 1, 2],
]
WRITERS = {"csv": pl.DataFrame.write_csv, "parquet": pl.DataFrame.write_parquet}


def written(place, ending="csv", **columns):
    path = place / f"nodes.{ending}"
    WRITERS[ending](pl.DataFrame({**TABLE, **columns}), path)
    return path


@pytest.mark.parametrize("ending", WRITERS)
def test_gaps_categories_and_dropped_columns_of_a_file(tmp_path, ending):
    nodes = read_nodes(written(tmp_path, ending), **CHOICE).nodes
    assert nodes.features.tolist() == FEATURES
    assert nodes.feature_columns == COLUMNS
    assert nodes.train_mask.tolist() == [True, True, True, False]  # -1 is no class
    assert len(COLUMNS.feature_names) == COLUMNS.width == 9


def test_the_same_from_data_frames():
    pandas = pytest.importorskip("pandas")
    raw = {name: TABLE[name] for name in ("name", *COLUMNS.names)}
    declared = pandas.DataFrame(raw).assign(city=lambda frame: frame.city.astype("category"), age=[20, None, 40, 60])
    nullable = pandas.DataFrame(raw).convert_dtypes()
    for frame in (pandas.DataFrame(raw), declared, nullable, pl.DataFrame(raw)):
        features, columns = learn_frame(without(frame, ["name"]), **CHOICE)
        assert features.tolist() == FEATURES
        assert columns == COLUMNS
    by_place = np.array([TABLE[name] for name in COLUMNS.names], dtype=object).T
    assert frame_features(by_place, COLUMNS).tolist() == FEATURES


def test_prediction_does_it_again_by_name(tmp_path):
    path = written(tmp_path, age=[None, 1.0, 2.0, 3.0], city=["Oslo", "Paris", None, "Rome"], zip=[9, 9, 9, 10])
    shuffled = pl.read_csv(path).select("visits", "zip", "city", "id", "name", "age").with_columns(more=pl.lit("?"))
    shuffled.write_csv(path)
    ids, features = read_node_features(path, feature_columns=COLUMNS)
    assert ids.tolist() == TABLE["id"] == read_node_ids(path).tolist()
    assert features.tolist() == [
        [40, 1, 0, 1, 0, 0, 0, 1, 1],
        [1, 0, 0, 0, 0, 0, 0, 1, 0],  # a category of its own: all zeros
        [2, 0, 1, 0, 0, 0, 0, 1, 5],
        [3, 0, 0, 0, 1, 0, 0, 0, 2],
    ]
    pl.read_csv(path).drop("zip").write_csv(path)
    with pytest.raises(InputError, match=r"columns that the model was trained on; got no 'zip'"):
        read_node_features(path, feature_columns=COLUMNS)


def test_plain_tables_are_read_as_before_and_keep_their_names(tmp_path):
    plain = {name: TABLE[name] for name in ("id", "label", "zip", "visits")}
    pl.DataFrame(plain).write_csv(tmp_path / "nodes.csv")
    nodes = read_nodes(tmp_path / "nodes.csv").nodes
    assert nodes.feature_columns == FeatureColumns(names=("zip", "visits"))
    assert nodes.features.tolist() == [[7, 1], [8, 0], [7, 5], [9, 2]]


REFUSED = {
    "text": (
        {},
        ["column 'name'", "got text such as 'Ann A.' in rows 1, 2, 3, 4", "--categorical 'name'", "--drop 'name'"],
    ),
    "no such column to drop": ({"drop": ["nobody"]}, ["needs the columns 'nobody'", "Drop columns that are there"]),
    "no such categories": ({"drop": ["name"], "categorical": ["city", "town"]}, ["no such column 'town'"]),
    "dropped and categorical": ({"drop": ["name", "city"], "categorical": ["city"]}, ["no such column 'city'"]),
    "the ids": ({"drop": ["name", "id"], "categorical": ["city"]}, ["cannot do without", "'id'"]),
}


@pytest.mark.parametrize(("choice", "words"), REFUSED.values(), ids=REFUSED)
def test_refusals_name_the_way_out(tmp_path, choice, words):
    path = written(tmp_path)
    with pytest.raises(InputError) as caught:
        read_nodes(path, **choice)
    assert all(word in str(caught.value) for word in words), caught.value
    assert check_files(path, **choice)


def test_refusals_of_data_frames_name_the_argument():
    frame = pl.DataFrame({"age": [1.0, None], "city": ["Rome", "Oslo"]})
    with pytest.raises(
        InputError, match=r"column 'city'.*text such as 'Rome' in row 0.*categorical=\['city'\].*drop=\['city'\]"
    ):
        learn_frame(frame, drop=(), categorical=())
    _, columns = learn_frame(frame, drop=(), categorical=["city"])
    for wrong, words in (({"age": ["old", "1"]}, "text such as 'old' in row 0"), ({"age": [np.inf, 1.0]}, "infinity")):
        with pytest.raises(InputError, match=words):
            frame_features(frame.with_columns(**{name: pl.Series(values) for name, values in wrong.items()}), columns)
    dates = pl.DataFrame({"day": ["2020-01-01"]}).with_columns(pl.col("day").str.to_date())
    for categorical in ((), ("day",)):
        with pytest.raises(InputError, match=r"column 'day'.*datetime64"):
            learn_frame(dates, drop=(), categorical=categorical)
    assert column_names(np.ones((2, 2))) == []


def test_features_beside_the_table_have_no_categories(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((4, 2), dtype=np.float32))
    path = tmp_path / "nodes.csv"
    pl.DataFrame({name: TABLE[name] for name in ("id", "label", "name")}).write_csv(path)
    assert read_nodes(path, features_path=tmp_path / "x.npy", drop=["name"]).nodes.feature_columns is None
    with pytest.raises(InputError, match="must hold the features as columns"):
        read_node_features(path, features_path=tmp_path / "x.npy", feature_columns=COLUMNS)


WRONG = {
    "no column": {"names": ()},
    "a name twice": {"names": ("a", "a")},
    "categories of nobody": {"names": ("a",), "categories": {"b": ("x",)}},
    "no categories": {"names": ("a",), "categories": {"a": ()}},
    "a category twice": {"names": ("a",), "categories": {"a": ("x", "x")}},
    "both kinds": {"names": ("a",), "categories": {"a": ("x",)}, "fill": {"a": 1.0}},
    "no number": {"names": ("a",), "fill": {"a": float("nan")}},
    "used and dropped": {"names": ("a",), "drop": ("a",)},
    "too many": {"names": ("a",), "categories": {"a": tuple(map(str, range(150_000)))}},
    "too many commas": {"names": (",[{" * 50_000,)},
    "too long": {"names": ("a" * 2**23,)},
    "no text": {"names": ("\ud800",)},
}


@pytest.mark.parametrize("parts", WRONG.values(), ids=WRONG)
def test_what_no_release_could_hold_is_refused_at_once(parts):
    with pytest.raises(InputError, match=r"^columns"):
        FeatureColumns(**parts)


def test_features_may_be_exchanged_only_if_they_were_made_alike():
    plain = FeatureColumns(names=("a", "b"))
    assert same_features(None, plain)
    assert same_features(plain, FeatureColumns(names=("a", "b"), drop=("c",)))
    assert not same_features(plain, FeatureColumns(names=("b", "a")))
    assert not same_features(None, COLUMNS)


NUMBERS = st.none() | st.floats(-1e30, 1e30) | st.just(float("nan"))
WORDS = st.none() | st.text(max_size=3)


@given(st.lists(st.tuples(NUMBERS, WORDS, st.booleans()), min_size=1, max_size=12), st.randoms())
def test_the_same_cells_give_the_same_features_in_any_table(cells, random):
    assume(any(number is not None and number == number for number, _, _ in cells))
    number, word, truth = (list(column) for column in zip(*cells, strict=True))
    frame = pl.DataFrame(
        {"a": number, "b": word, "c": truth}, schema={"a": pl.Float64, "b": pl.String, "c": pl.Boolean}
    )
    features, columns = learn_frame(frame, drop=(), categorical=["b"])
    assert np.isfinite(features).all()
    assert features.shape == (len(cells), columns.width)
    places = [place for place, name in enumerate(columns.feature_names) if name.startswith("b=")]
    assert (features[:, places].sum(axis=1) == 1).all()  # of the training table, every cell has its category
    rows = random.sample(range(len(cells)), len(cells))
    assert np.array_equal(frame_features(frame[rows], columns), features[rows])
