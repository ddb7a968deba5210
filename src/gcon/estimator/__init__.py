"""The Python face, in scikit-learn's manner."""
