"""What goes wrong in filming."""


class VideoError(RuntimeError):
    """Filming failed: GL, encoder or disk. The message says what, and what would help."""
