"""`rules`: the heaviest rules of a model, with dated facts behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilp._utils.files import file_name_part
from tilp.bench.evaluations import EvaluationJob
from tilp.bench.experiments.base import Experiment, SplitName, write_failures
from tilp.bench.jobs import Job, Results
from tilp.bench.report import Report
from tilp.bench.rule_examples import Examples
from tilp.bench.schema import Count
from tilp.bench.settings import Setting, Whole
from tilp.bench.sources import Source
from tilp.types import ExperimentKind


@dataclass(frozen=True, kw_only=True)
class Rules(Experiment):
    """Rules of each method's first seed, as `Examples` has it; other experiments share the run."""

    kind = ExperimentKind.RULES
    tilp_only = True

    split: SplitName = "test"
    relations: tuple[str, ...] = ()
    best: Count = Examples.best
    rules: Count = Examples.rules
    setting: Setting = Whole()  # noqa: RUF009 - frozen

    @property
    def _examples(self) -> Examples:
        return Examples(self.relations, self.best, self.rules)

    def jobs(self, source: Source) -> list[Job]:
        """Return one run of each method."""
        return [
            EvaluationJob(source, self.setting, runs.method, 0, self.split, (self._examples,))
            for runs in self.methods
        ]

    def write(self, report: Report, sources: Sequence[Source], results: Results) -> None:
        """Write each rule as text with its counts, and draw facts that it was right by."""
        for source in sources:
            jobs = self.jobs(source)
            write_failures(report, jobs, results)
            for job, runs in zip(jobs, self.methods, strict=True):
                result = results.of(job)
                if result is None:
                    continue
                method = runs.method.name
                report.heading(f"{source.name}, {method}", 3)
                for index, example in enumerate(result["examples"][self._examples.key]):
                    report.text(example["rule"])
                    report.text(
                        f"{example['sentence']} (weight {example['weight']:.3g}, confidence "
                        f"{example['confidence']:.2f}, support {example['support']:,} of "
                        f"{example['facts']:,} facts)"
                    )
                    name = file_name_part(f"{self.name}-{method}-{index}")
                    caption = f"{example['asked']}: {example['answer']}, by {example['grounding']}"
                    picture = f"{file_name_part(source.name)}-{name}"
                    report.picture(picture, example["picture"], caption)
