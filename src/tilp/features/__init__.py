"""Temporal features: how often, in what order, how far apart, how long (eq. 14, 17-21)."""
