"""The scikit-learn face: any kind of graph in, a method trained on it, a release loaded, answers under a named access."""
