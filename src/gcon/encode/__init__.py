"""Public features and labels -> encoded features with unit rows. Cannot import edges."""
