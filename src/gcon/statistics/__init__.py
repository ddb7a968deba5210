"""Named private quantities, each with the proven bound on what one edge can change in it."""
