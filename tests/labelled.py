"""Made-up parts of which so many nodes have a label, and features say so little, that labelled neighbours are counted alone."""

from gcon.files.datasets.synthetic import social_circles_parts


def labelled_circles():
    """A hundred nodes and their edges: six in ten have a label."""
    return social_circles_parts(
        100,
        num_classes=3,
        mean_degree=18,
        num_features=6,
        feature_signal=0.3,
        per_class=20,
        num_validation=15,
        num_test=25,
        seed=1,
    )
