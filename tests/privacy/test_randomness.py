"""Where noise comes from: not repeatable by default, repeatable without a promise for a seed."""

import copy
import os
import pickle

import numpy as np
import pytest

from gcon.errors import BoundaryError, InputError
from gcon.privacy.randomness import SeededRandomness, SystemRandomness, randomness_from

SEED = 8675309


def test_the_system_source_is_not_repeatable():
    source = randomness_from(None)
    assert isinstance(source, SystemRandomness)
    assert source.keeps_promise
    assert source.source == "operating system"
    drawn = {source.take(16) for _ in range(50)} | {SystemRandomness().take(16) for _ in range(50)}
    assert len(drawn) == 100


def test_the_system_source_is_the_operating_systems_own_and_ignores_every_global_seed():
    assert SystemRandomness().take is os.urandom


def test_a_seed_repeats_and_carries_no_promise():
    first, second = randomness_from(SEED), randomness_from(SEED)
    assert not first.keeps_promise
    assert first.source == "seeded: no promise"
    assert first.take(64) == second.take(64)
    assert first.take(64) == second.take(64)
    assert first.take(64) != randomness_from(SEED + 1).take(64)


def test_no_byte_is_given_twice():
    source = randomness_from(3)
    assert len({source.take(16) for _ in range(1000)}) == 1000


@pytest.mark.parametrize("count", [0, 1, 7, 8, 1000])
@pytest.mark.parametrize("source", [SystemRandomness(), SeededRandomness(1)], ids=["system", "seeded"])
def test_as_many_bytes_as_asked(source, count):
    taken = source.take(count)
    assert isinstance(taken, bytes)
    assert len(taken) == count


def test_the_seed_is_never_shown():
    source = randomness_from(SEED)
    source.take(8)
    for shown in (repr(source), str(source), f"{source}", source.source, repr(vars(source)), repr([source])):
        assert str(SEED) not in shown
    assert repr(source) == "<randomness, seeded: no promise>"


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps, lambda source: pickle.dumps(source, 0)])
def test_a_random_state_cannot_be_copied_or_stored(duplicate):
    source = randomness_from(SEED)
    with pytest.raises(BoundaryError, match="cannot be copied or stored"):
        duplicate(source)


def test_a_random_state_cannot_travel_inside_something_else():
    for duplicate in (copy.deepcopy, pickle.dumps):
        with pytest.raises(BoundaryError):
            duplicate([randomness_from(SEED)])


@pytest.mark.parametrize("seed", [-SEED, True, False, 1.5, str(SEED), (SEED,), float(SEED), np.float64(SEED)])
def test_bad_seeds_are_refused_without_showing_them(seed):
    with pytest.raises(InputError, match=r"^random_state: must be None or a non-negative integer") as raised:
        randomness_from(seed)
    assert str(SEED) not in str(raised.value)


@pytest.mark.parametrize("seed", [0, np.int64(4), np.uint8(4), 2**100])
def test_whole_numbers_are_seeds(seed):
    assert randomness_from(seed).take(8) == randomness_from(int(seed)).take(8)


def test_the_global_state_of_numpy_is_left_alone():
    before = np.random.get_state()[1].copy()
    randomness_from(SEED).take(100)
    assert (np.random.get_state()[1] == before).all()
