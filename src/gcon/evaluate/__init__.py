"""Labels -> metrics."""
