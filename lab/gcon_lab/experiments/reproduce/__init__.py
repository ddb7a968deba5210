"""The paper's tables, figures and claims, made again."""
