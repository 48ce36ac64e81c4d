"""Temporal features: recurrence, order, pair interval; training phase two (eq. 14, 16-21)."""
