"""The encoder as a record: rows of length at most one, whatever comes in."""

import contextlib
from dataclasses import replace
from fractions import Fraction

import pytest
import torch

from gcon.errors import InputError
from gcon.learn import encoder as encoder_module
from gcon.learn.encoder import Encoder, scaled_rows
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.learn.unit_rows import no_longer, unit_rows


@pytest.fixture(scope="module")
def encoder(nodes):
    return train_encoder(nodes, EncoderSettings(hidden=5, epochs=20))


def test_encoded_rows_are_never_longer_than_one(nodes, encoder):
    for features in (nodes.features, 1000 * nodes.features, nodes.features.double(), -nodes.features):
        lengths = torch.linalg.vector_norm(encoder.encode(features), dim=1)
        assert float(lengths.max()) <= 1


def test_zero_rows_stay_zero(nodes, encoder):
    plain = replace(encoder, centre=None, hidden_bias=torch.zeros(5))
    features = nodes.features.clone()
    features[3] = 0.0
    encoded = plain.encode(features)
    assert torch.equal(encoded[3], torch.zeros(5, dtype=torch.float64))
    assert encoded.isfinite().all()


def test_a_zero_row_of_features_gives_finite_numbers_with_a_centre(nodes, encoder):
    features = torch.zeros(2, 8)
    encoded = encoder.encode(features)
    assert encoded.isfinite().all()
    assert torch.equal(encoded[0], encoded[1])


def test_the_centre_comes_off_before_scaling(nodes, encoder):
    [(_, hidden)] = encoder._hidden(nodes.features)
    hidden = hidden.double()
    shifted = hidden - encoder.centre
    expected = shifted / shifted.norm(dim=1, keepdim=True)
    torch.testing.assert_close(encoder.encode(nodes.features), expected, rtol=0, atol=1e-10)
    afterwards = hidden / hidden.norm(dim=1, keepdim=True).clamp_min(1e-30) - encoder.centre
    assert not torch.allclose(encoder.encode(nodes.features), afterwards)


def test_centring_spreads_the_directions(nodes, encoder):
    """Hidden values are not negative: without a centre no two rows point apart."""
    plain = replace(encoder, centre=None).encode(nodes.features)
    assert float((plain @ plain.T).min()) >= 0
    centred = encoder.encode(nodes.features)
    assert float((centred @ centred.T).min()) < -0.3


def test_the_hidden_layer_by_hand(nodes, encoder):
    rows = nodes.features / nodes.features.norm(dim=1, keepdim=True)
    expected = torch.relu(rows @ encoder.hidden_weight + encoder.hidden_bias)
    [(_, hidden)] = encoder._hidden(nodes.features)
    torch.testing.assert_close(hidden, expected)
    expected = torch.softmax(expected @ encoder.head_weight + encoder.head_bias, dim=1)
    torch.testing.assert_close(encoder.probabilities(nodes.features), expected)


def test_probabilities_sum_to_one(nodes, encoder):
    found = encoder.probabilities(nodes.features)
    torch.testing.assert_close(found.sum(dim=1), torch.ones(120))
    assert float(found.min()) >= 0


def test_batches_change_nothing(nodes, encoder, monkeypatch):
    whole = encoder.encode(nodes.features), encoder.probabilities(nodes.features)
    monkeypatch.setattr(encoder_module, "_BATCH_ROWS", 7)
    parts = encoder.encode(nodes.features), encoder.probabilities(nodes.features)
    for one, other in zip(whole, parts, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


def test_rows_are_encoded_one_by_one(nodes, encoder):
    alone = torch.cat([encoder.encode(row[None]) for row in nodes.features[:10]])
    torch.testing.assert_close(alone, encoder.encode(nodes.features)[:10], rtol=0, atol=1e-6)


@pytest.mark.parametrize("method", ["encode", "probabilities", "mean_hidden"])
@pytest.mark.parametrize("features", [torch.ones(4, 7), torch.ones(4, 9), torch.ones(8), torch.ones(2, 4, 8)], ids=str)
def test_another_width_is_refused(encoder, method, features):
    with pytest.raises(InputError, match=r"^features: must have the 8 columns that the encoder was trained on"):
        getattr(encoder, method)(features)


def test_scaled_rows():
    given = torch.tensor([[3.0, -4.0], [0.0, 0.0]], dtype=torch.float64)
    rows = scaled_rows(given, by="length")
    assert rows.dtype == torch.float32
    torch.testing.assert_close(rows, torch.tensor([[0.6, -0.8], [0.0, 0.0]]))
    torch.testing.assert_close(scaled_rows(given, by="sum"), torch.tensor([[3 / 7, -4 / 7], [0.0, 0.0]]))
    assert torch.equal(scaled_rows(torch.tensor([[3, 4]]), by="nothing"), torch.tensor([[3.0, 4.0]]))


def test_large_features_are_encoded_or_refused_but_never_turned_into_nan(encoder):
    features = torch.full((2, 8), 1e300, dtype=torch.float64)  # finite, but not as float32
    with contextlib.suppress(InputError):
        assert encoder.encode(features).isfinite().all()


def test_an_encoder_of_embeddings():
    plain = Encoder(
        hidden_weight=None,
        hidden_bias=None,
        head_weight=torch.eye(2),
        head_bias=torch.zeros(2),
        unit_input=False,
        centre=None,
    )
    assert plain.num_features == 2
    torch.testing.assert_close(
        plain.encode(torch.tensor([[3.0, 4.0]])), torch.tensor([[0.6, 0.8]], dtype=torch.float64), rtol=0, atol=1e-10
    )
    assert plain.probabilities(torch.tensor([[2.0, 1.0]])).argmax() == 0


def exact_length_squared(row):
    return sum(Fraction(float(value)) ** 2 for value in row)


@pytest.mark.parametrize("width", [2, 5, 64])
def test_rows_in_single_precision_are_no_longer_either(width):
    generator = torch.Generator().manual_seed(width)
    scales = 10.0 ** torch.randint(-30, 30, (300, 1), generator=generator)
    rows = unit_rows(torch.randn(300, width, generator=generator) * scales)
    found = no_longer(rows, torch.float32)
    assert found.dtype == torch.float32
    assert all(exact_length_squared(row) <= 1 for row in found)
    assert bool((found.double().abs() <= rows.abs()).all())
    torch.testing.assert_close(found.double(), rows, rtol=2**-22, atol=1e-38)
    assert any(exact_length_squared(row) > 1 for row in rows.float())  # rounding to the nearest would not do


def test_encoded_rows_in_single_precision(nodes, encoder):
    found = encoder.encode(nodes.features, dtype=torch.float32)
    assert torch.equal(found, no_longer(encoder.encode(nodes.features), torch.float32))
    with pytest.raises(InputError, match=r"^dtype: "):
        encoder.encode(nodes.features, dtype=torch.float16)


def test_no_batch_is_larger_than_it_may_be(nodes, encoder, monkeypatch):
    monkeypatch.setattr(encoder_module, "_BATCH_ROWS", 7)
    sizes = []
    scaled = encoder_module.scaled_rows
    monkeypatch.setattr(encoder_module, "scaled_rows", lambda rows, by: sizes.append(len(rows)) or scaled(rows, by=by))
    for method in (encoder.encode, encoder.probabilities, encoder.classes, encoder.mean_hidden):
        method(nodes.features)
    assert max(sizes) == 7
    assert sum(sizes) == 4 * 120


def test_classes_and_the_mean(nodes, encoder):
    assert torch.equal(encoder.classes(nodes.features), encoder.probabilities(nodes.features).argmax(dim=1))
    [(_, hidden)] = encoder._hidden(nodes.features)
    assert torch.equal(encoder.mean_hidden(nodes.features), hidden.double().mean(dim=0))


def test_no_rows_at_all(encoder):
    nothing = torch.empty(0, 8)
    assert encoder.encode(nothing).shape == (0, 5)
    assert encoder.probabilities(nothing).shape == (0, 3)


def test_the_same_device_is_the_same_encoder(nodes, encoder):
    assert torch.equal(encoder.on("cpu").encode(nodes.features), encoder.encode(nodes.features))
