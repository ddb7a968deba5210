"""The experiment that runs every attack on every method."""
