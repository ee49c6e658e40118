"""Pages for a browser: the 3-D replay, and the clips of a run."""
