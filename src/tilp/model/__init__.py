"""The estimator: fit, predict, save, load."""
