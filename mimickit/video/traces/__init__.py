"""Recordings that are kept, filmed again and compared."""
