"""Packed graphs: columns, names and index as files that are mapped into memory."""
