"""Beyond the paper: our own method beside everything else, on graphs that span density, homophily and feature strength."""
