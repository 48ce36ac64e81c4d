"""`rules`: what a model learned, to be read: its heaviest rules with dated facts behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilp._utils.files import file_name_part
from tilp.bench.cells import Cell
from tilp.bench.examples import Examples
from tilp.bench.jobs import Job, Results
from tilp.bench.keys import TEXT, WHOLE, Keys, list_of
from tilp.bench.kinds.base import Kind, asked_cells, not_done
from tilp.bench.plans import Experiment
from tilp.bench.report.blocks import Block, Figure, Heading, Text
from tilp.bench.settings import Setting, read_setting
from tilp.bench.sources import Source

__all__ = ["Rules"]


@dataclass(frozen=True)
class RulesOptions:
    """Which rules are shown, and of what setting."""

    setting: Setting
    examples: Examples


class Rules(Kind):
    """The first seed of each method; its run serves other experiments too."""

    tilp_only = True
    uses = frozenset({"split"})

    def read(self, keys: Keys) -> RulesOptions:
        """Relations by name or number, and the setting."""
        examples = Examples(
            keys.get("relations", list_of(TEXT), ()),
            keys.get("best", WHOLE, Examples.best),
            keys.get("rules", WHOLE, Examples.rules),
        )
        return RulesOptions(read_setting(keys), examples)

    def jobs(self, experiment: Experiment, source: Source) -> list[Job]:
        """One run a method."""
        return list(_cells(experiment, source))

    def blocks(
        self, experiment: Experiment, sources: Sequence[Source], results: Results
    ) -> list[Block]:
        """Each rule as a sentence, its counts, and a picture of facts that it was right by."""
        blocks: list[Block] = []
        for source in sources:
            cells = _cells(experiment, source)
            blocks += not_done(cells, results)
            for cell in cells:
                found = results.of(cell)
                if found is not None:
                    blocks.append(Heading(f"{source.name}, {cell.method.name}", 3))
                    told = found["examples"][experiment.options.examples.key]
                    for number, example in enumerate(told):
                        name = f"{experiment.name}-{cell.method.name}-{number}"
                        blocks += _told(
                            example, f"{file_name_part(source.name)}-{file_name_part(name)}"
                        )
        return blocks


def _cells(experiment: Experiment, source: Source) -> list[Cell]:
    options = experiment.options
    return [
        replace(
            asked_cells(experiment, source, options.setting, replace(asked, seeds=1))[0],
            examples=(options.examples,),
        )
        for asked in experiment.methods
    ]


def _told(example: dict[str, Any], name: str) -> list[Block]:
    counts = (
        f"weight {example['weight']:.3g}, confidence {example['confidence']:.2f}, support "
        f"{example['support']:,} of {example['facts']:,} facts"
    )
    caption = f"{example['asked']}: {example['answer']}, by {example['grounding']}"
    return [
        Text(f"{example['rule']}"),
        Text(f"{example['sentence']} ({counts})", quiet=True),
        Figure(name, example["picture"], caption),
    ]
