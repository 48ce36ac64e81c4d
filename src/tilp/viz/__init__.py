"""Pictures: chains of facts with their intervals on a time axis, and matplotlib figures."""

from tilp.viz.chain import Chain, Link, draw_chain
from tilp.viz.svg import standalone

__all__ = ["Chain", "Link", "draw_chain", "standalone"]
