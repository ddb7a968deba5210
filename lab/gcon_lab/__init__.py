"""The laboratory: competitors, experiments, attacks, audits and benchmarks. It imports the product, never the other way round."""
