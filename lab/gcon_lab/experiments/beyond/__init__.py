"""The experiment beyond the paper: the default method against everything else."""
