"""The paper's graphs and a synthetic generator."""

from gcon.datasets.facts import FACTS, DatasetFacts, facts_of, names
from gcon.datasets.registry import load
from gcon.datasets.synthetic import social_circles, social_circles_parts

__all__ = ["FACTS", "DatasetFacts", "facts_of", "load", "names", "social_circles", "social_circles_parts"]
