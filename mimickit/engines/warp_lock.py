"""One lock for all that launches Warp kernels on threads of its own."""

import threading

WARP_LOCK = threading.Lock()
"""Held while launches are captured: whatever another thread launches meanwhile would get into the graph."""
