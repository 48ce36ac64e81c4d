"""`TILP`: the estimator. Fit it to a graph, read its rules, ask it, measure it, save it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from tilp._utils.progress import Progress
from tilp.errors import TilpError
from tilp.evaluation import Evaluation, evaluate
from tilp.explanation import Explainer, Explanation
from tilp.graph import TemporalGraph, merge_facts
from tilp.learning.rule_weights import TrainingSettings
from tilp.learning.training_loop import LossCurve
from tilp.model.batch_predict import BatchResult, BatchSettings, Predictor, predict_to, queries_of
from tilp.model.config import PRESETS, ModelSettings
from tilp.model.feature_tables import Distributions, learned_weights, select_features
from tilp.model.fit import FittedModel, fit_model
from tilp.model.query_sources import QueryFile, QueryFrame
from tilp.model.scorers import scorer_on
from tilp.model.update import update_model
from tilp.model.update_report import UpdateReport
from tilp.parallel import Workers, thread_count
from tilp.rules import RuleSet
from tilp.scoring import Predictions, Query, RuleWeights, Scorer, TopKPredictor
from tilp.scoring.queries import QueryColumns, read_queries
from tilp.types import (
    DEFAULT_TOP,
    Backend,
    ByLabel,
    EvidenceKind,
    Features,
    Grain,
    Missing,
    MoreDates,
    OnInvalidQuery,
    Part,
    Preset,
    Protocol,
    Weights,
    choose,
)
from tilp.walks import MAX_LENGTH, MiningSettings
from tilp.walks.walker import DEFAULT_LIMIT


def _chosen_grains(grains: Sequence[Grain | str]) -> tuple[Grain, ...]:
    if not grains:
        raise TilpError(f"choose at least one of the grains {', '.join(Grain)}")
    return tuple(choose(Grain, grain, "grains") for grain in grains)


class TILP:
    """Temporal logical rules, found in a graph and weighted, that predict its missing links.

    What is None is chosen by the preset.

    Args:
        max_length: of rules; 3 by default.
        preset: choices that go together: `default`, or `paper` for the system of the paper.
        grains: how finely rules speak of time; `pairs`, `gap` and `allen` by default.
        weights: what a rule's weight is made of: `free`, by default, or `attention`.
        features: which temporal features join the rules: `full`, by default, `paper` or `none`.
        without: parts of the features that are left out, by name.
        soft_length: steps of soft walks at the most, which `full` has.
        missing: what a start or end that is not known is taken for, of facts and of queries:
            `point`, by default, `duration`, `open` or `unknown`.
        min_support: facts whose answer a rule must reach.
        top: rules kept for each relation and direction.
        share: of the training facts that are learned from; all of them are walked on.
        sample: facts of each relation that rules are looked for at the most; None for all.
        limit: steps that walks of one length may take from one entity before they are sampled.
        seed: for everything that is drawn.
        threads: None for all; they do not change anything but time.
        backend: what works on chunks: `threads`, by default, `serial` or `ray`, to the same result.
        address: of a Ray cluster, `host:port` or `auto`; without one, Ray is started here.
        training: finer choices for the weights; `weights` and `seed` above are put into it.

    >>> import tilp
    >>> model = tilp.TILP(max_length=1, sample=50).fit(tilp.datasets.world(0, 1000).graph)
    >>> print(model.rules("diedIn")[0].rule)
    diedIn(E1,E2,I2) ← livesIn(E1,E2,I1) ∧ touching(I1,I2)
    """

    def __init__(
        self,
        max_length: int | None = None,
        *,
        preset: Preset | str = Preset.DEFAULT,
        grains: Sequence[Grain | str] | None = None,
        weights: Weights | str | None = None,
        features: Features | str | None = None,
        without: Part | str | Iterable[Part | str] = (),
        soft_length: int = 5,
        missing: Missing | str | None = None,
        min_support: int = 2,
        top: int = DEFAULT_TOP,
        share: float = 1.0,
        sample: int | None = None,
        limit: int = DEFAULT_LIMIT,
        seed: int = 0,
        threads: int | None = None,
        backend: Backend | str = Backend.THREADS,
        address: str | None = None,
        training: TrainingSettings | None = None,
    ) -> None:
        parts = [without] if isinstance(without, str) else without
        usual = PRESETS[choose(Preset, preset, "preset")]
        for name, length in (("rules", max_length), ("soft walks", soft_length)):
            if length is not None and not 1 <= length <= MAX_LENGTH:
                raise TilpError(f"the length of {name} is {length}; it can be 1 to {MAX_LENGTH}")
        self.settings = ModelSettings(
            mining=MiningSettings(
                grains=usual.grains if grains is None else _chosen_grains(grains),
                max_length=usual.max_length if max_length is None else max_length,
                min_support=min_support,
                top=top,
                share=share,
                sample=sample,
                limit=limit,
                seed=seed,
            ),
            training=replace(
                training or usual.training,
                weights=choose(Weights, weights or usual.weights, "weights"),
                seed=seed,
            ),
            features=choose(Features, features or usual.features, "features"),
            without=tuple(sorted({choose(Part, part, "without") for part in parts})),
            soft_length=soft_length,
            missing=choose(Missing, missing or usual.missing, "missing"),
            seed=seed,
        )
        self.threads = thread_count(threads)
        self.backend = choose(Backend, backend, "backend")
        self.address = address
        self._graph: TemporalGraph | None = None
        self._fitted: FittedModel | None = None
        self._scorer: Scorer | None = None
        self.last_update: UpdateReport | None = None

    @classmethod
    def of(cls, settings: ModelSettings, graph: TemporalGraph, fitted: FittedModel) -> TILP:
        """A model from its parts."""
        model = cls()
        model.settings, model._graph, model._fitted = settings, graph, fitted
        return model

    def __repr__(self) -> str:
        mining = self.settings.mining
        words = (
            f"max_length={mining.max_length}, weights={self.settings.training.weights.value}, "
            f"features={self.settings.features.value}"
        )
        if self._fitted is None:
            return f"TILP({words}; not fitted)"
        return f"TILP({words}; {len(self._fitted.rules):,} rules)"

    def fit(
        self,
        graph: TemporalGraph,
        *,
        folder: Path | str | None = None,
        progress: Progress | None = None,
    ) -> TILP:
        """Find rules in the train split and learn their weights; valid decides when to stop.

        Args:
            graph: the facts.
            folder: to work in; a fit that was killed goes on from what it left there. A temporary
                one by default.
            progress: called with the name of a stage and the share of it that is done.
        """
        if not len(graph.rows("train")):
            raise TilpError("there are no training facts to learn from")
        with tempfile.TemporaryDirectory() as temporary:
            place = Path(folder) if folder is not None else Path(temporary) / "fit"
            with self._workers() as workers:
                self._fitted = fit_model(
                    graph, self.settings, folder=place, workers=workers, progress=progress
                )
        self._graph, self._scorer = graph, None
        return self

    def update(
        self,
        new_facts: TemporalGraph,
        *,
        dates: MoreDates | str = MoreDates.SUPERSEDE,
        labels: ByLabel | str = ByLabel.REFUSE,
        progress: Progress | None = None,
    ) -> TILP:
        """The model with new facts; this one stays as it is.

        New facts enter the graph that rules are applied on. Rules of the relations that they
        touch are mined and counted again; all others stay exactly as they are. Weights are kept;
        a new rule weighs as its confidence says. What was done is in `last_update` of the model
        that is returned.

        Args:
            new_facts: each in its split; names are those of the model's graph by id, then by key,
                or new.
            dates: whether a fact that tells more of the dates of one there takes its place,
                `supersede`, or `both` stay.
            labels: what a name is that is no id and no key, but reads as the label of something
                known: an error, `refuse`, that thing, `match`, or something `new`.
            progress: called with the name of a stage and the share of it that is done.

        Raises:
            TilpError: another unit of time, or names that could stand for two things.
        """
        joined = merge_facts(
            self.graph,
            new_facts,
            dates=choose(MoreDates, dates, "dates"),
            labels=choose(ByLabel, labels, "labels"),
        )
        with self._workers() as workers:
            fitted, report = update_model(
                self.graph, self.settings, self._need_fit(), joined, workers, progress=progress
            )
        model = TILP.of(self.settings, joined.graph, fitted)
        model.threads, model.backend, model.address = self.threads, self.backend, self.address
        model.last_update = report
        return model

    @property
    def graph(self) -> TemporalGraph:
        """The graph that the model was fitted to, with all its splits."""
        self._need_fit()
        assert self._graph is not None
        return self._graph

    @property
    def weights(self) -> RuleWeights:
        """The weights of rules, of the prior, and the factors of known candidates."""
        return self._need_fit().weights

    @property
    def curve(self) -> LossCurve:
        """The loss of training, step by step."""
        return self._need_fit().curve

    @property
    def seconds(self) -> dict[str, float]:
        """What each stage of fitting took."""
        return self._need_fit().seconds

    def rules(self, relation: str | None = None) -> RuleSet:
        """The rules, the heaviest first; of one relation `name`, or `name⁻¹`, if one is given."""
        rules = self._need_fit().rules
        if relation is not None:
            relations = self.graph.relations
            rules = rules.filter(relation=relations.label(relations.find_directed(relation)))
        return rules.sort(lambda one: one.weight or 0.0)

    def distributions(self, *, progress: Callable[[float], None] | None = None) -> Distributions:
        """The temporal distributions of the training facts, whatever features the model uses.

        Args:
            progress: called with the share that is done.
        """
        with self._workers() as workers:
            return Distributions.of(self.graph, self.settings, self._need_fit(), workers, progress)

    def features(
        self,
        relation: str | None = None,
        *,
        other: str | None = None,
        evidence: EvidenceKind | str | None = None,
        min_seen: int = 1,
    ) -> pl.DataFrame:
        """Recurrence, order, time between relations, durations, as in `Distributions.frame`.

        Args:
            relation: one relation, `name`, `name⁻¹` or `name^-1`.
            other: the other relation of pairs, likewise.
            evidence: `between`, `others` or `walks`.
            min_seen: how often a distribution was seen at least.
        """
        return select_features(
            self.distributions().frame(),
            self.graph,
            relation=relation,
            other=other,
            evidence=evidence,
            min_seen=min_seen,
        )

    def learned(self, relation: str | None = None) -> pl.DataFrame:
        """What phase two learned, as `learned_weights` has it; of one relation, as it is asked."""
        found = learned_weights(self.graph, self._need_fit())
        if relation is not None:
            relations = self.graph.relations
            label = relations.label(relations.find_directed(relation))
            found = found.filter((pl.col("query") == label) | pl.col("query").is_null())
        return found

    def scorer(self, graph: TemporalGraph | None = None) -> Scorer:
        """What scores the candidates of queries.

        Args:
            graph: whose train split is the evidence; that of the model by default. Another graph
                has the same relations, by their names, and the same unit of time.
        """
        if graph is not None and graph is not self.graph:
            return scorer_on(graph, self.graph, self.settings, self._need_fit())
        if self._scorer is None:
            self._scorer = scorer_on(self.graph, self.graph, self.settings, self._need_fit())
        return self._scorer

    def _explainer(self, graph: TemporalGraph | None, scorer: Scorer | None = None) -> Explainer:
        evidence = self.graph if graph is None else graph
        return Explainer(scorer or self.scorer(graph), self._need_fit().rules, evidence)

    def predict(
        self,
        queries: Query | Iterable[Query | dict[str, Any]] | pl.DataFrame,
        k: int = 10,
        *,
        new_only: bool = False,
        graph: TemporalGraph | None = None,
    ) -> pl.DataFrame:
        """The k best candidates of each query, as a labelled table.

        Args:
            queries: one or many; mappings and frames have the fields of `Query`.
            k: how many candidates.
            new_only: whether candidates that are known already are left out.
            graph: another graph to apply the rules on; its entities may be all new.
        """
        if isinstance(queries, pl.DataFrame):
            columns = QueryColumns.of(queries)
        else:
            columns = QueryColumns.of_queries(read_queries(queries))
        predictor = self._predictor(k, graph, new_only=new_only)
        with self._workers() as workers:
            return predictor.predict_frame(columns, workers)

    def predict_to(
        self,
        folder: Path | str,
        queries: Path | str | pl.DataFrame,
        k: int = 10,
        *,
        new_only: bool = False,
        explain: int = 0,
        on_error: OnInvalidQuery | str = OnInvalidQuery.RAISE,
        part_size: int | None = None,
        graph: TemporalGraph | None = None,
        progress: Callable[[str, float, int], None] | None = None,
    ) -> BatchResult:
        """The k best candidates of any number of queries, as Parquet files in a folder.

        Memory does not grow with the number of queries. Stopped or killed, the same call goes on
        with the parts that are not there, to the same files.

        Args:
            folder: for the parts, whose columns are those of `predict`, and a note of what they
                are of.
            queries: a file (TSV, CSV, gzipped or not, Parquet), which is read part by part, or a
                frame, with the columns of `Query`.
            k: how many candidates.
            new_only: whether candidates that are known already are left out.
            explain: how many candidates of each query are explained, in a column `explanation` as
                JSON; this is much slower.
            on_error: what becomes of queries that cannot be asked: `raise` refuses all before
                anything is asked; `skip` leaves them out, and writes them with the reasons.
            part_size: queries of a part; 20,000 by default, 500 where some are explained.
            graph: another graph to apply the rules on; its entities may be all new.
            progress: called with the name of a stage, `check` or `predict`, how many queries of it
                are done, and of how many; 0 where that is not known.

        Raises:
            TilpError: queries cannot be asked, or the folder holds something else.
        """
        from tilp.model.persistence import model_digest

        skip = choose(OnInvalidQuery, on_error, "on_error") is OnInvalidQuery.SKIP
        settings = BatchSettings(k, new_only, explain, skip, part_size)
        source = QueryFrame(queries) if isinstance(queries, pl.DataFrame) else QueryFile(queries)
        ask = self._predictor(k, graph, new_only=new_only)
        explainer = self._explainer(graph, ask.scorer) if explain else None
        predictor = Predictor(ask, explainer, explain)
        decided_by = {
            "model": model_digest(self.settings, self.graph, self._need_fit()),
            "evidence": ask.graph.fingerprint(),
        }
        with self._workers() as workers:
            return predict_to(
                Path(folder).expanduser(),
                source,
                predictor,
                settings,
                decided_by,
                workers,
                progress,
            )

    def queries_of(
        self,
        relation: str,
        start: str | None = None,
        end: str | None = None,
        *,
        graph: TemporalGraph | None = None,
    ) -> pl.DataFrame:
        """A query for each subject that train has a fact of a relation of, for `predict`.

        Args:
            relation: its name; of its inverse, `name⁻¹` or `name^-1`, each object is asked.
            start: of all queries; likewise `end`.
            graph: another graph to apply the rules on.
        """
        return queries_of(graph if graph is not None else self.graph, relation, start, end)

    def ask(self, query: Query, k: int = 10, *, graph: TemporalGraph | None = None) -> Predictions:
        """The k best candidates of one query.

        Args:
            query: for the subject or the object of a fact.
            k: how many candidates.
            graph: another graph to apply the rules on; its entities may be all new.
        """
        (predictions,) = self._predictor(k, graph).predict(read_queries([query]))
        return predictions

    def _predictor(
        self, k: int, graph: TemporalGraph | None, *, new_only: bool = False
    ) -> TopKPredictor:
        evidence = graph if graph is not None else self.graph
        return TopKPredictor(evidence, self.scorer(graph), k, new_only)

    def explain(
        self,
        query: Query,
        candidate: str | None = None,
        *,
        groundings: int = 3,
        top: int | None = 20,
        fall: bool = True,
        graph: TemporalGraph | None = None,
    ) -> Explanation:
        """Why a candidate is where it is among the answers of a query.

        Args:
            query: for the subject or the object of a fact.
            candidate: the name of the other end; the best one by default.
            groundings: how many of each reason at the most.
            top: how many reasons are shown, and have groundings; None for all.
            fall: whether the score is computed again without the facts of the top grounding.
            graph: another graph to apply the rules on; its entities may be all new.
        """
        return self._explainer(graph).explain(
            query, candidate, groundings=groundings, max_reasons=top, ablation=fall
        )

    def evaluate(
        self,
        split: str = "test",
        *,
        known: TemporalGraph | None = None,
        protocols: Iterable[Protocol | str] | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Evaluation:
        """Rank the answers of a split's facts, both ways, with train alone as evidence.

        Args:
            split: whose facts are asked.
            known: what protocols remove other answers by, and whose split is asked; the model's
                own facts by default. Where these were reduced, the facts that they were taken
                from, with the same names: an answer that only a removed fact states is no error.
            protocols: those to rank under; all by default.
            progress: called with the share that is done.

        Raises:
            TilpError: the known facts have other names or another unit.
        """
        mine, known = self.graph, self.graph if known is None else known
        same = known.entities == mine.entities and known.relations == mine.relations
        if not same or known.unit is not mine.unit:
            raise TilpError(
                "the known facts have other entities, relations or another unit than the model's; "
                "give the data that the model's were taken from"
            )
        with self._workers() as workers:
            return evaluate(
                self.scorer(),
                known,
                split,
                protocols=protocols,
                workers=workers,
                progress=progress,
                note=repr(self),
            )

    def save(self, folder: Path | str, *, replace: bool = False) -> Path:
        """Write the whole model to a folder that `tilp.load` reads.

        Args:
            folder: new or empty.
            replace: whether it takes the place of a model that is there, once it is written.
        """
        from tilp.model.persistence import save_model

        return save_model(self.settings, self.graph, self._need_fit(), folder, replace=replace)

    def _workers(self) -> Workers:
        return Workers(self.threads, self.backend, self.address)

    def _need_fit(self) -> FittedModel:
        if self._fitted is None:
            raise TilpError("the model is not fitted yet: call fit(graph) first")
        return self._fitted
