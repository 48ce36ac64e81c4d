"""Temporal features (eq. 14, 17-21)."""
