"""Locks for all that launches Warp kernels on threads of its own."""

import threading

WARP_LOCK = threading.Lock()
"""Held while launches are captured: whatever another thread launches meanwhile would get into the graph."""

GRAPH_LOCK = threading.Lock()
"""Held while a captured graph is launched: of two at once on a CPU the process dies."""
