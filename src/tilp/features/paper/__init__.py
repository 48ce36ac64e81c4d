"""The temporal features of the paper: recurrence, order and pair interval (eq. 14, 16-21)."""
