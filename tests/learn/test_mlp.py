"""Training of the encoder: repeatable, and every setting does what it says."""

import math
from dataclasses import fields, replace

import pytest
import scipy.sparse
import torch
from torch.nn.functional import nll_loss

from gcon.errors import InputError
from gcon.files.inputs import as_features
from gcon.learn import perceptron as mlp
from gcon.learn.encoder import Encoder, scaled_rows
from gcon.learn.perceptron import EncoderSettings, train_encoder
from gcon.learn.sparse_rows import SparseRows
from gcon.nodes import PublicNodes

QUICK = EncoderSettings(hidden=5, epochs=30)


def tensors(encoder: Encoder) -> dict[str, torch.Tensor]:
    values = {entry.name: getattr(encoder, entry.name) for entry in fields(Encoder)}
    return {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}


def same(first: Encoder, second: Encoder) -> bool:
    first, second = tensors(first), tensors(second)
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def changed(nodes: PublicNodes, **parts) -> PublicNodes:
    return replace(nodes, **parts)


def without_validation(nodes: PublicNodes) -> PublicNodes:
    return changed(nodes, validation_mask=torch.zeros_like(nodes.validation_mask))


def training_loss(encoder: Encoder, nodes: PublicNodes) -> float:
    answers = encoder.probabilities(nodes.features[nodes.train_mask])
    return float(nll_loss(answers.log(), nodes.labels[nodes.train_mask]))


@pytest.mark.parametrize("hidden", [1, 2, 8, 64])
def test_widths(nodes, hidden):
    encoder = train_encoder(nodes, EncoderSettings(hidden=hidden, epochs=2))
    assert encoder.hidden_weight.shape == (8, hidden)
    assert encoder.head_weight.shape == (hidden, 3)
    assert encoder.num_features == 8
    assert encoder.encode(nodes.features).shape == (120, hidden)
    assert encoder.encode(nodes.features).dtype == torch.float64
    assert encoder.probabilities(nodes.features).shape == (120, 3)
    assert not any(value.requires_grad for value in tensors(encoder).values())


def test_it_learns(nodes):
    encoder = train_encoder(nodes, EncoderSettings(hidden=8, epochs=100))
    predicted = encoder.probabilities(nodes.features).argmax(dim=1)
    assert float((predicted == nodes.labels)[nodes.test_mask].double().mean()) > 0.75


def test_the_same_seed_gives_the_same_encoder(nodes):
    torch.manual_seed(1)
    first = train_encoder(nodes, QUICK)
    torch.manual_seed(2)  # the global state has no say
    assert same(first, train_encoder(nodes, QUICK))
    assert not same(first, train_encoder(nodes, replace(QUICK, seed=1)))


def test_a_seed_that_is_given_replaces_the_one_in_the_settings(nodes):
    assert same(train_encoder(nodes, QUICK, seed=1), train_encoder(nodes, replace(QUICK, seed=1)))
    assert same(train_encoder(nodes, replace(QUICK, seed=1), seed=0), train_encoder(nodes, QUICK))


def test_the_global_state_is_left_alone(nodes):
    before = torch.get_rng_state()
    train_encoder(nodes, QUICK)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_inputs_are_left_alone(nodes):
    features, labels = nodes.features.clone(), nodes.labels.clone()
    train_encoder(nodes, QUICK)
    assert torch.equal(nodes.features, features)
    assert torch.equal(nodes.labels, labels)


def test_dropout_has_an_effect_in_training_only(nodes):
    plain = without_validation(nodes)
    encoders = [train_encoder(plain, replace(QUICK, dropout=share, weight_decay=0.0)) for share in (0.0, 0.5, 0.9)]
    losses = [training_loss(encoder, plain) for encoder in encoders]
    assert losses[0] < losses[1] < losses[2]
    assert torch.equal(encoders[1].encode(plain.features), encoders[1].encode(plain.features))


def test_weight_decay_shrinks_the_first_layer(nodes):
    plain = without_validation(nodes)
    sizes = []
    for decay in (0.0, 0.05, 1.0):
        encoder = train_encoder(plain, replace(QUICK, epochs=100, dropout=0.0, weight_decay=decay))
        sizes.append(float(encoder.hidden_weight.norm()))
    assert sizes[0] > 1.2 * sizes[1] > 1.2 * sizes[2]


def test_the_default_weight_decay_is_a_prior_of_fixed_strength(nodes):
    labelled = int(nodes.train_mask.sum())
    assert labelled == 30
    assert same(train_encoder(nodes, QUICK), train_encoder(nodes, replace(QUICK, weight_decay=0.6 / labelled)))


def test_early_stopping_keeps_the_best_state(nodes):
    def validation_loss(encoder):
        answers = encoder.probabilities(nodes.features[nodes.validation_mask])
        return float(nll_loss(answers.log(), nodes.labels[nodes.validation_mask]))

    settings = replace(QUICK, learning_rate=0.1, dropout=0.0, weight_decay=0.0, epochs=200)
    stopped = train_encoder(nodes, settings)
    to_the_end = train_encoder(without_validation(nodes), settings)
    assert training_loss(to_the_end, nodes) < training_loss(stopped, nodes)
    assert validation_loss(stopped) < validation_loss(to_the_end)
    # It stopped: more epochs change nothing.
    assert same(stopped, train_encoder(nodes, replace(settings, epochs=400)))


def test_patience_is_a_number_of_epochs(nodes):
    settings = replace(QUICK, learning_rate=0.1, epochs=60)
    assert same(
        train_encoder(nodes, replace(settings, patience=60)), train_encoder(nodes, replace(settings, patience=99))
    )
    assert not same(
        train_encoder(nodes, replace(settings, patience=1)), train_encoder(nodes, replace(settings, patience=60))
    )


def test_without_validation_nodes_it_trains_for_all_epochs(nodes):
    plain = without_validation(nodes)
    losses = [
        training_loss(train_encoder(plain, replace(QUICK, epochs=epochs, dropout=0.0, patience=1)), plain)
        for epochs in (1, 20, 60)
    ]
    assert losses[0] > losses[1] > losses[2]


def test_test_labels_are_never_read(nodes):
    labels = nodes.labels.clone()
    labels[nodes.test_mask] = (labels[nodes.test_mask] + 1) % 3
    assert same(train_encoder(nodes, QUICK), train_encoder(changed(nodes, labels=labels), QUICK))


def test_unlabelled_rows_are_never_read(nodes):
    labels = nodes.labels.clone()
    labels[~(nodes.train_mask | nodes.validation_mask | nodes.test_mask)] = -1
    assert same(train_encoder(nodes, QUICK), train_encoder(changed(nodes, labels=labels), QUICK))


def test_validation_labels_stop_the_training_and_nothing_else(nodes):
    labels = nodes.labels.clone()
    labels[nodes.validation_mask] = (labels[nodes.validation_mask] + 1) % 3
    other = changed(nodes, labels=labels)
    eager = replace(QUICK, patience=5, learning_rate=0.05)
    assert not same(train_encoder(nodes, eager), train_encoder(other, eager))
    one_epoch = replace(QUICK, epochs=1)
    assert same(train_encoder(nodes, one_epoch), train_encoder(other, one_epoch))


def test_validation_features_do_not_train(nodes):
    one_epoch = replace(QUICK, epochs=1, centre=False)
    features = nodes.features.clone()
    features[nodes.validation_mask | nodes.test_mask] *= -7
    assert same(train_encoder(nodes, one_epoch), train_encoder(changed(nodes, features=features), one_epoch))


@pytest.fixture(scope="session")
def words(nodes):
    """A bag of words: one in ten entries is there."""
    generator = torch.Generator().manual_seed(4)
    features = (torch.rand(120, 60, generator=generator) < 0.08).float()
    features[torch.arange(120), nodes.labels] = 1.0
    return PublicNodes(
        features=features,
        labels=nodes.labels,
        num_classes=3,
        train_mask=nodes.train_mask,
        validation_mask=nodes.validation_mask,
        test_mask=nodes.test_mask,
    )


@pytest.mark.parametrize("hidden", [6, None])
def test_sparse_and_dense_inputs_train_alike(words, monkeypatch, hidden):
    settings = EncoderSettings(hidden=hidden, epochs=40, dropout=0.0)
    assert isinstance(scaled_rows(words.features, by="length", sparse=True), SparseRows)
    sparse = train_encoder(words, settings)
    monkeypatch.setattr("gcon.learn.encoder.compact", lambda _: None)
    assert isinstance(scaled_rows(words.features, by="length", sparse=True), torch.Tensor)
    dense = train_encoder(words, settings)
    for name, value in tensors(sparse).items():
        torch.testing.assert_close(value, tensors(dense)[name], rtol=1e-3, atol=1e-4)


def test_dropout_on_sparse_inputs_keeps_the_mean(words):
    generator = torch.Generator().manual_seed(0)
    inputs, layer = SparseRows.of(words.features), [torch.eye(60), torch.zeros(60)]
    mean = sum(mlp._scores(inputs, layer, (0.5, 0.0), generator)[-1] for _ in range(600)) / 600
    assert float((mean - words.features).abs().max()) < 0.25  # six standard errors of 1/sqrt(600)
    assert set(mlp._scores(inputs, layer, (0.5, 0.0), generator)[-1].unique().tolist()) == {0.0, 2.0}


def test_a_scipy_matrix_trains_like_the_array(words):
    rebuilt = changed(words, features=as_features(scipy.sparse.csr_array(words.features.numpy())))
    assert same(train_encoder(words, QUICK), train_encoder(rebuilt, QUICK))


def test_own_embeddings(nodes):
    encoder = train_encoder(nodes, EncoderSettings(hidden=None, epochs=40, unit_input=False, centre=False))
    assert encoder.hidden_weight is None
    assert encoder.hidden_bias is None
    assert encoder.head_weight.shape == (8, 3)
    assert encoder.num_features == 8
    [(_, hidden)] = encoder._hidden(nodes.features)
    assert torch.equal(hidden, nodes.features)
    expected = nodes.features.double() / nodes.features.double().norm(dim=1, keepdim=True)
    torch.testing.assert_close(encoder.encode(nodes.features), expected, rtol=0, atol=1e-10)
    predicted = encoder.probabilities(nodes.features).argmax(dim=1)
    assert float((predicted == nodes.labels)[nodes.test_mask].double().mean()) > 0.75


def test_unit_input_makes_the_length_of_a_row_irrelevant(nodes):
    scales = torch.linspace(0.5, 20, 120)[:, None]
    scaled = changed(nodes, features=nodes.features * scales)
    for unit in (True, False):
        first, second = (
            train_encoder(table, replace(QUICK, unit_input=unit)).encode(table.features) for table in (nodes, scaled)
        )
        assert torch.allclose(first, second, atol=1e-3) == unit


def test_the_centre_is_the_mean_of_the_hidden_rows_of_all_nodes(nodes):
    encoder = train_encoder(nodes, QUICK)
    [(_, hidden)] = encoder._hidden(nodes.features)
    torch.testing.assert_close(encoder.centre, hidden.double().mean(dim=0))
    assert encoder.centre.dtype == torch.float64
    assert train_encoder(nodes, replace(QUICK, centre=False)).centre is None
    assert torch.equal(train_encoder(nodes, replace(QUICK, centre=False)).hidden_weight, encoder.hidden_weight)


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        ({"hidden": 0}, "hidden"),
        ({"hidden": -3}, "hidden"),
        ({"hidden": 4097}, "hidden"),
        ({"dropout": 1.0}, "dropout"),
        ({"dropout": -0.1}, "dropout"),
        ({"dropout": math.nan}, "dropout"),
        ({"weight_decay": -1e-9}, "weight_decay"),
        ({"weight_decay": math.nan}, "weight_decay"),
        ({"weight_decay": math.inf}, "weight_decay"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"learning_rate": math.nan}, "learning_rate"),
        ({"learning_rate": math.inf}, "learning_rate"),
        ({"epochs": 0}, "epochs"),
        ({"patience": 0}, "patience"),
    ],
    ids=str,
)
def test_bad_settings(change, parameter):
    with pytest.raises(InputError) as raised:
        EncoderSettings(**change)
    assert parameter in raised.value.parameter


@pytest.mark.parametrize("change", [{"hidden": 1}, {"hidden": None}, {"dropout": 0.0}, {"weight_decay": 0.0}], ids=str)
def test_settings_at_the_edge(nodes, change):
    assert train_encoder(nodes, replace(QUICK, epochs=2, **change)).head_weight.isfinite().all()
