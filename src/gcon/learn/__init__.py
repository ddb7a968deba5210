"""Everything that needs no edge: encoder, edge-free ensemble, student, calibration."""
