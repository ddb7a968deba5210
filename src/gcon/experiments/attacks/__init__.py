"""Link attacks on every method, under every access; and canaries, which test the promises themselves (docs/attacks.md)."""
