"""Pictures: chains of facts with their intervals on a time axis, and matplotlib figures."""

from tilp.viz.chain import Chain, draw_chain
from tilp.viz.svg import standalone
from tilp.viz.timeline import Link

__all__ = ["Chain", "Link", "draw_chain", "standalone"]
