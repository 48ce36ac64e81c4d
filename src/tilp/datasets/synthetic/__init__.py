"""A believable small world, made from a seed, with rules planted in it.

People are born, study, play for teams that move, marry, join clubs and parties, are nominated for
prizes, win and die; teams win titles season after season. The lives follow the planted rules with
given chances. Then noise is added to the facts: errors, missing dates, splits.
"""

from tilp.datasets.synthetic.world import PlantedRule, World, WorldTables, make_tables, world

__all__ = ["PlantedRule", "World", "WorldTables", "make_tables", "world"]
