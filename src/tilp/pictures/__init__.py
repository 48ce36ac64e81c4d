"""Pictures as SVG: chains of facts, and their intervals on a time axis."""
