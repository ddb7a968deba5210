"""The paper's graphs and a synthetic generator."""
