"""Edges that show when they are read too early."""


class Sealed:
    """Edges that must not be read before the ledger was charged."""

    def __init__(self, edges, ledger):
        self.__dict__.update(edges=edges, ledger=ledger, read=False)

    def __getattr__(self, name):
        assert self.ledger.entries(), "edges were read before they were paid for"
        self.__dict__["read"] = True
        return getattr(self.edges, name)
