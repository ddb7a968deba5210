"""Public nodes, edge lists, splits and their checks."""
