"""Phase two: candidate history, random walks, and the paper's temporal features (eq. 14, 16-21)."""
