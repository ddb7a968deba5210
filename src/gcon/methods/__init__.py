"""One file per method: settings, training, model and scorer together."""
