"""The Stage: a MuJoCo scene made only for filming."""
