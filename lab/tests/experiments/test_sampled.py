"""A sample beside everybody: both ways run on one graph, and the product's sizes are what they were afterwards."""

import pytest

from gcon.learn import sample
from gcon_lab.experiments import sampled


def test_the_sizes_are_the_products_again_even_after_an_error():
    def sizes():
        return sample.EXACT_NODES, sample.SAMPLE_NODES

    def failing():
        with sampled.learning_from("sample", 600):
            assert sizes() == (599, 300)
            raise RuntimeError

    before = sizes()
    with pytest.raises(RuntimeError):
        failing()
    assert sizes() == before
    with sampled.learning_from("everybody", 600):
        assert sample.EXACT_NODES == 600
    assert sizes() == before


@pytest.mark.slow
def test_a_graph_is_answered_both_ways():
    found = sampled.measured("made-up", 0)
    assert found["nodes"] == 600
    shares = [found[f"{way}, {access}"] for way in sampled.WAYS for access in sampled.ACCESSES]
    assert min(shares) > 0.4
    assert found["sample, none"] != found["everybody, none"]
