"""Helpers that every package shares: arrays, random numbers, files, progress, versions."""
