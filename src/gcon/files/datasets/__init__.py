"""The paper's graphs and a synthetic generator."""

from gcon.files.datasets.facts import FACTS, DatasetFacts, facts_of, names
from gcon.files.datasets.registry import load
from gcon.files.datasets.synthetic import social_circles, social_circles_parts

__all__ = ["FACTS", "DatasetFacts", "facts_of", "load", "names", "social_circles", "social_circles_parts"]
