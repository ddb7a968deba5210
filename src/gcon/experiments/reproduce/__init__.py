"""The paper's table and figures: points from stored results, drawings, a page, and what its claims are worth."""
