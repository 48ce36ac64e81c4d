"""Pictures as SVG: chains of facts, and their intervals on a time axis."""

from tilp.pictures.chain import draw_chain
from tilp.pictures.parts import Chain, Link
from tilp.pictures.svg import standalone

__all__ = ["Chain", "Link", "draw_chain", "standalone"]
