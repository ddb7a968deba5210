"""`python -m gcon` is the `gcon` command, for environments whose programs are not on the path."""

from gcon.cli import main

if __name__ == "__main__":
    main()
