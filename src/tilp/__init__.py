"""Learn temporal logical rules, read them, predict missing links with them, and see why."""
