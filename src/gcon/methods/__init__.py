"""One file per method: settings, training, model and scorer together; and the scikit-learn face."""
