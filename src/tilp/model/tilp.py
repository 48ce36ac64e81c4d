"""`TILP`: the estimator. Fit it to a graph, read its rules, predict, explain, evaluate, save."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from tilp import types
from tilp._utils.files import locked
from tilp._utils.memory import memory_budget
from tilp._utils.params import Params
from tilp._utils.progress import Progress, Stages
from tilp.errors import TilpError
from tilp.evaluation import Evaluation, evaluate
from tilp.explanation import Explainer, Explanation
from tilp.graph import TemporalGraph, known_facts, merge_facts
from tilp.graph.queries import KnownFacts
from tilp.io.tables import as_polars, is_frame, same_kind
from tilp.learning.training_loop import LossCurve
from tilp.model.batch_predict import (
    BatchPredictor,
    BatchResult,
    BatchSettings,
    predict_to,
    write_parts,
)
from tilp.model.config import (
    CANDIDATES,
    DEFAULT_CONFIG,
    MAX_KEPT,
    PRESETS,
    TEMPORAL_DETAIL,
    FitContext,
    ModelSettings,
    TILPConfig,
    check_length,
    find_effort,
    resolve_effort,
    tilp_arguments,
)
from tilp.model.fit import fit_model, given_rules
from tilp.model.fitted_model import FittedModel
from tilp.model.persistence import SavedState, load_model, model_digest, save_model, saved_state
from tilp.model.query_sources import QueryFile, QueryFrame, QuerySlice, queries_of
from tilp.model.update import UpdateReport, update_model
from tilp.parallel import Workers, thread_count
from tilp.rules import Phrasings, Rule, RuleSet
from tilp.scoring import Predictions, Query, RuleWeights, Scorer, TopKPredictor
from tilp.scoring.queries import QueryColumns, query_table, read_queries
from tilp.time_prediction import TimePrediction, TimePredictor
from tilp.time_prediction.evaluate import TimeEvaluation, evaluate_times
from tilp.types import choose
from tilp.walks import MiningSettings
from tilp.walks.mining import gap_edges


class TILP(Params):
    """Temporal logical rules that predict the missing links of a graph, and say why.

    `fit` mines rules in the training facts, learns their weights (phase one), and learns what
    temporal features add to them (phase two). The parameters are attributes of the same name. The
    attribute `phrasings` holds how explanations word relations; see `Phrasings.read`.

    Args:
        max_length: Mine rules with at most this many atoms in the body (int from 1 to 5,
            default 3). Longer rules reach more answers and take much more time and memory.
        temporal_detail: What rules say about time (names, default `("static", "pairs", "gap",
            "allen")`). `static`: nothing; `query`: how each fact of the body lies to the query's
            time; `adjacent`: also how neighbours in the body lie to each other; `pairs`: how any
            two lie to each other; `allen`: Allen's relations of each fact to the query; `gap`:
            how many years, months or days lie between the last fact and the query. Fewer give
            fewer, plainer rules.
        rule_weights: How rules get their weights (default `"free"`). `free`: a weight of its own
            for each rule, regularised towards the rule's confidence; `attention`: the paper's
            attention net (eq. 13), which shares parameters between rules.
        features: Which temporal features join the rules (default `"full"`). `none`: rules alone,
            the fastest and the easiest to read; `paper`: recurrence, order and time between
            relations, as in the paper; `full`: the candidate's history, the evidence of rules
            and random walk scores, the most accurate.
        missing: How missing starts and ends of facts and queries are imputed (default
            `"point"`). `point`: by the other date; `duration`: by a draw from how long facts of
            the relation last, as in the paper; `open`: since ever, or until today.
        only_earlier: Learn and answer with nothing but the facts that started before the query's
            start (bool, default False). An end from then on is not known: the start stands for
            it, as for a missing one. A query without any date is asked with all facts. Needs
            `missing="point"`, and features other than the paper's.
        min_support: Drop rules that reach fewer than this many training facts (int, default 2).
            Raise it for noisy data.
        max_rules: Keep at most this many rules for each relation and direction (int, default
            300). Most relations keep far fewer: a rule must explain answers that the others do
            not. Lower it for smaller and faster models.
        effort: How much work goes into a large graph (default `"normal"`). `normal` learns from
            at most 50,000 facts, `quick` from 5,000, `thorough` from all. Every fact is walked
            on. Relations are cut evenly, from the largest on.
        time_model: Learn when facts start and end, too (default True), for `predict_time`. It
            takes at most a fifth of the time of a fit.
        random_state: The seed (int, default 0). Same seed and data, same model, bit for bit.
        n_jobs: How many threads work in parallel (int, default None: one for each core; -1
            means the same). It does not change the result.
        memory: Work in this much memory (bytes, or such as `"2GB"`, default None: what half of
            the available memory allows, container limits included). It does not change the result.
        backend: `threads` (default), `serial` or `ray`. It does not change the result.
        address: Of a Ray cluster, `host:port` or `auto` (default None: Ray is started here).
        config: Finer choices, which most users leave as they are; see `TILPConfig`.

    Raises:
        TilpError: A parameter has no such value; the message lists what is possible.

    Example:
        >>> import tilp
        >>> graph = tilp.datasets.world(seed=0, size=1000).graph
        >>> model = tilp.TILP(max_length=1, features="none").fit(graph)
        >>> print(model.rules("diedIn")[0].rule)
        diedIn(E1,E2,I2) ← livesIn(E1,E2,I1) ∧ touching(I1,I2)
        >>> query = tilp.Query("diedIn", subject="Omar Shelker", start=1984)
        >>> model.predict(query, k=1)["candidate"].item()
        'Dedbridge'
    """

    forecasts = False
    _saved: SavedState | None = None  # what it was loaded from, or saved to
    _UNSHOWN = ("n_jobs", "memory", "backend", "address")

    def __init__(
        self,
        max_length: int = 3,
        *,
        temporal_detail: types.Grain | str | Sequence[types.Grain | str] = TEMPORAL_DETAIL,
        rule_weights: types.Weights | str = types.Weights.FREE,
        features: types.Features | str = types.Features.FULL,
        missing: types.Missing | str = types.Missing.POINT,
        only_earlier: bool = False,
        min_support: int = 2,
        max_rules: int = MAX_KEPT,
        effort: types.Effort | str = types.Effort.NORMAL,
        time_model: bool = True,
        random_state: int = 0,
        n_jobs: int | None = None,
        memory: int | str | None = None,
        backend: types.Backend | str = types.Backend.THREADS,
        address: str | None = None,
        config: TILPConfig = DEFAULT_CONFIG,
    ) -> None:
        self.max_length = max_length
        self.temporal_detail = temporal_detail
        self.rule_weights = rule_weights
        self.features = features
        self.missing = missing
        self.only_earlier = only_earlier
        self.min_support = min_support
        self.max_rules = max_rules
        self.effort = effort
        self.time_model = time_model
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.memory = memory
        self.backend = backend
        self.address = address
        self.config = config
        self._check_params()
        self._graph: TemporalGraph | None = None
        self._fitted: FittedModel | None = None
        self._settings: ModelSettings | None = None
        self._scorer: Scorer | None = None
        self._time_predictor: TimePredictor | None = None
        self.last_update: UpdateReport | None = None
        self.phrasings = Phrasings()

    def _check_params(self) -> None:
        """Raise an error for values that are not possible, and turn names into enum members."""
        given = self.temporal_detail
        detail = [given] if isinstance(given, str) else given
        grains = tuple(choose(types.Grain, name, "temporal_detail") for name in detail)
        if not grains:
            raise TilpError(f"temporal_detail is empty; choose some of {', '.join(types.Grain)}")
        check_length("max_length", self.max_length)
        if self.n_jobs is not None and (self.n_jobs < -1 or self.n_jobs == 0):
            raise TilpError(f"n_jobs is {self.n_jobs}; give a count of threads, or -1 for all")
        if self.random_state < 0:
            raise TilpError(f"random_state is {self.random_state}; it is at least 0")
        memory_budget(self.memory)
        self.temporal_detail = grains
        self.rule_weights = choose(types.Weights, self.rule_weights, "rule_weights")
        self.features = choose(types.Features, self.features, "features")
        self.missing = choose(types.Missing, self.missing, "missing")
        self.backend = choose(types.Backend, self.backend, "backend")
        self.effort = choose(types.Effort, self.effort, "effort")
        usable = self.missing is types.Missing.POINT and self.features is not types.Features.PAPER
        if self.only_earlier and not usable:
            raise TilpError(
                "only_earlier needs missing='point', and features 'full' or 'none'; the paper's "
                "features and other imputations use dates after the query's"
            )
        if self.max_rules < 1:
            raise TilpError(f"max_rules is {self.max_rules}; it is at least 1")
        self.settings_for()

    def settings_for(self, graph: TemporalGraph | None = None) -> ModelSettings:
        """Return the settings of a fit with the current parameters.

        Args:
            graph: The facts, which `effort` depends on (default None: a small graph).
        """
        config = self.config
        relation = np.empty(0, np.int64) if graph is None else graph.relation[graph.targets]
        sample, limit = resolve_effort(types.Effort(self.effort), config, np.bincount(relation))
        return ModelSettings(
            mining=MiningSettings(
                grains=cast(tuple[types.Grain, ...], self.temporal_detail),
                max_length=self.max_length,
                min_support=self.min_support,
                top=self.max_rules * (CANDIDATES if config.select else 1),
                share=config.share,
                sample=sample,
                limit=limit,
                distinct=config.distinct,
                only_earlier=self.only_earlier,
                gap_edges=None if graph is None else gap_edges(graph),
            ),
            training=replace(config.training, weights=types.Weights(self.rule_weights)),
            features=types.Features(self.features),
            without=cast(tuple[types.Part, ...], config.without),
            walk_length=config.walk_length,
            missing=types.Missing(self.missing),
            select=config.select,
            max_rules=self.max_rules,
            held_out=config.held_out,
            seed=self.random_state,
            time_model=self.time_model,
        )

    @classmethod
    def paper(cls, **parameters: Any) -> TILP:
        """Return the system of the paper: longer rules, attention weights, the paper's features.

        That is `max_length=5`, `temporal_detail="pairs"`, `rule_weights="attention"`,
        `features="paper"`, `missing="duration"`, and eq. 15 without additions.

        Args:
            **parameters: Of `TILP`; they take precedence. A `config` replaces that of the paper.

        Example:
            >>> TILP.paper(max_length=3).rule_weights.value
            'attention'
        """
        return cls(**{**PRESETS[types.Preset.PAPER], **parameters})

    @classmethod
    def from_options(
        cls, preset: types.Preset | str = types.Preset.DEFAULT, **options: Any
    ) -> TILP:
        """Return a model by flat options, as command lines and files of plans have them.

        Args:
            preset: `default`, or `paper` for the paper's system.
            **options: Parameters of `TILP` and of `TILPConfig`; None for the preset's value.

        Example:
            >>> TILP.from_options("paper", max_length=2, sample=100, features=None).config.sample
            100
        """
        return cls(**tilp_arguments(preset, options))

    @classmethod
    def from_parts(cls, settings: ModelSettings, graph: TemporalGraph, fitted: FittedModel) -> TILP:
        """Return a fitted model from what `save` writes."""
        mining = settings.mining
        sizes = np.bincount(graph.relation[graph.targets])
        effort, sample, walk_limit = find_effort(mining, sizes)
        model = cls(
            max_length=mining.max_length,
            temporal_detail=mining.grains,
            rule_weights=settings.training.weights,
            features=settings.features,
            missing=settings.missing,
            only_earlier=mining.only_earlier,
            min_support=mining.min_support,
            max_rules=settings.max_rules,
            effort=effort,
            time_model=settings.time_model,
            random_state=settings.seed,
            config=TILPConfig(
                sample=sample,
                share=mining.share,
                walk_limit=walk_limit,
                select=settings.select,
                distinct=mining.distinct,
                walk_length=settings.walk_length,
                without=settings.without,
                held_out=settings.held_out,
                training=replace(settings.training, weights=types.Weights.FREE, seed=0),
            ),
        )
        model._settings, model._graph, model._fitted = settings, graph, fitted
        return model

    @property
    def settings(self) -> ModelSettings:
        """All that decides the model, by stage; of the last fit, if there was one."""
        return self.settings_for() if self._settings is None else self._settings

    def _status(self) -> str:
        return "not fitted" if self._fitted is None else f"{len(self._fitted.rules):,} rules"

    def fit(
        self,
        graph: TemporalGraph,
        *,
        rules: RuleSet | Iterable[Rule] | Path | str | None = None,
        also_mine: bool = False,
        folder: Path | str | None = None,
        progress: Progress | None = None,
    ) -> TILP:
        """Mine rules in the train split, and learn their weights and those of features.

        The valid split decides when to stop; without one, a tenth of train decides. The order of
        facts is no matter: the model's graph has them sorted (`TemporalGraph.canonical`), and ids
        of facts in explanations are rows of it.

        Args:
            graph: The facts.
            rules: Learn the weights of these rules, or those of a file that `RuleSet.read`
                reads, alone (default None: of mined ones). None of them is dropped.
            also_mine: Mine rules too, beside those given (default False).
            folder: Keep checkpoints here, so that a fit that was stopped resumes when it is
                called again (default None: a temporary folder). It is not removed.
            progress: Called with the name of a stage and the share of it that is done.

        Returns:
            The model itself.

        Raises:
            TilpError: There is no training fact, no rule, or the folder is of another fit.

        Example:
            >>> import tilp
            >>> model = TILP(max_length=1, features="none")
            >>> model.fit(tilp.datasets.world(seed=0, size=1000).graph) is model
            True
        """
        if not len(graph.rows("train")):
            raise TilpError("there are no training facts to learn from")
        graph = graph.canonical()
        settings = self.settings_for(graph)
        given = None
        if rules is not None:
            given, settings = given_rules(rules, also_mine, graph, settings)
        with tempfile.TemporaryDirectory() as temporary, self._workers() as workers:
            checkpoints = Path(temporary) / "fit" if folder is None else Path(folder)
            context = FitContext(settings, workers, checkpoints, Stages(progress))
            with locked(checkpoints):
                self._fitted = fit_model(graph, context, given)
        self._settings, self._graph, self._scorer = settings, graph, None
        self._time_predictor = None
        return self

    def update(
        self,
        new_facts: TemporalGraph,
        *,
        labels: types.ByLabel | str = types.ByLabel.REFUSE,
        progress: Progress | None = None,
    ) -> TILP:
        """Return a model with new facts; this one stays as it is.

        New facts join the graph that rules are applied on. The rules of relations that they
        touch are mined and counted again; all others stay exactly as they are. Weights stay; a
        new rule gets its weight from its confidence. A fact that has more dates than a known one
        replaces it. `last_update` of the new model reports what
        changed.

        Args:
            new_facts: Facts in their splits; names are looked up by id, then by key, or are new.
            labels: What to do with a name that is no id or key, but the label of something known
                (default `"refuse"`): `refuse` raises an error, `match` takes it for that thing,
                `new` for something new.
            progress: Called with the name of a stage and the share of it that is done.

        Raises:
            TilpError: The facts have another unit of time, or ambiguous names.
        """
        labels = choose(types.ByLabel, labels, "labels")
        merged = merge_facts(self.graph, new_facts, labels=labels)
        with self._workers() as workers:
            context = FitContext(self.settings, workers, stages=Stages(progress))
            fitted, report = update_model(self.graph, self._need_fit(), merged, context)
        model = TILP.from_parts(self.settings, merged.graph, fitted)
        model.n_jobs, model.backend, model.address = self.n_jobs, self.backend, self.address
        model.last_update, model.phrasings, model._saved = report, self.phrasings, self._saved
        return model

    @property
    def graph(self) -> TemporalGraph:
        """The graph that the model was fitted to, with all its splits."""
        self._need_fit()
        assert self._graph is not None
        return self._graph

    @property
    def weights(self) -> RuleWeights:
        """The learned weights of rules and of the prior, and the factors of known candidates."""
        return self._need_fit().weights

    @property
    def curve(self) -> LossCurve:
        """The loss of training, step by step."""
        return self._need_fit().curve

    @property
    def seconds(self) -> dict[str, float]:
        """The time that each stage of fitting took."""
        return self._need_fit().seconds

    def rules(self, relation: str | None = None) -> RuleSet:
        """Return the rules of each relation and direction, the best first (`MinedRule.order`).

        Args:
            relation: Only rules for `name`, or its inverse `name⁻¹` or `name^-1` (default None).

        Raises:
            TilpError: There is no such relation; the message names similar ones.
        """
        rules = self._need_fit().rules
        if relation is not None:
            directed = self.graph.relations.find_directed(relation)
            label = self.graph.relations.label(directed)
            inverse = directed >= len(self.graph.relations)
            rules = rules.filter(lambda mined: mined.rule.head.inverse == inverse, relation=label)
        return rules.sort()

    def scorer(self, graph: TemporalGraph | None = None) -> Scorer:
        """Return what scores the candidates of queries.

        Args:
            graph: Use its train split as evidence (default None: that of the model's graph).
                Another graph has the same unit of time, and relations of the same names.
        """
        fitted = self._need_fit()
        if graph is not None and graph is not self.graph:
            return fitted.scorer(graph, self.graph, self.settings)
        if self._scorer is None:
            self._scorer = fitted.scorer(self.graph, self.graph, self.settings)
        return self._scorer

    def evidence(self, graph: TemporalGraph | None = None) -> TemporalGraph:
        """Return the graph whose train split answers are found in, its facts in the same rows.

        Args:
            graph: Another graph to apply the model on (default None: the model's).
        """
        return self.graph if graph is None else graph

    @property
    def evidence_note(self) -> str:
        """Which facts answers rest on, in words."""
        if self.settings.mining.only_earlier:
            return "the facts of train that start before the query; all of them if it has no date"
        return "the facts of train, those after the query's time too"

    def _explainer(self, graph: TemporalGraph | None) -> Explainer:
        evidence = self.evidence(graph)
        return Explainer(self.scorer(graph), self._need_fit().rules, evidence, self.phrasings)

    def predict(
        self,
        queries: Query | Iterable[Query | dict[str, Any]] | Any,
        k: int = 10,
        *,
        new_only: bool = False,
        graph: TemporalGraph | None = None,
    ) -> Any:
        """Return the k best candidates of each query as a table.

        Args:
            queries: One query or many; mappings have the fields of `Query`, and frames (polars,
                pandas or Arrow) these or the columns of the table that the model's graph is from.
            k: How many candidates a query gets (int, default 10).
            new_only: Leave out answers that train already has at that time (default False).
            graph: Evidence, whose entities may all be new (default None: the model's graph).

        Returns:
            A row for each candidate: the query, its rank, name, id, score, share of the scores
            of all entities, whether train already has it, and the file and line of that fact. A
            frame of the kind that the queries are; of polars, if they are no frame.

        Raises:
            TilpError: A query has an unknown name or date; the message says which.

        Example:
            >>> import tilp
            >>> graph = tilp.datasets.world(seed=0, size=1000).graph
            >>> model = TILP(max_length=1, features="none").fit(graph)
            >>> query = tilp.Query("diedIn", subject="Omar Shelker", start=1984)
            >>> model.predict(query, k=2).select("rank", "candidate").rows()
            [(1, 'Dedbridge'), (2, 'Prolberg')]
        """
        if is_frame(queries):
            columns = QueryColumns.of(as_polars(queries), self.graph.reading)
        else:
            columns = QueryColumns.of_queries(read_queries(queries))
        predictor = self._predictor(k, graph, new_only=new_only)
        with self._workers() as workers:
            best = predictor.top_candidates(columns.table(predictor.graph), workers)
        answers = best.frame(predictor.graph, np.arange(len(columns)), columns.text)
        return same_kind(answers, queries)

    def predict_to(
        self,
        folder: Path | str,
        queries: Path | str | Any,
        k: int = 10,
        *,
        new_only: bool = False,
        explain: int = 0,
        on_error: types.OnInvalidQuery | str = types.OnInvalidQuery.RAISE,
        part_size: int | None = None,
        graph: TemporalGraph | None = None,
        progress: Callable[[str, float, int], None] | None = None,
    ) -> BatchResult:
        """Write the k best candidates of any number of queries to Parquet files in a folder.

        Memory does not grow with the number of queries. After a stop, the same call adds the
        missing parts, and gives the same files.

        Args:
            folder: For the parts, which have the columns of `predict`, and a note about them.
            queries: A file (TSV, CSV, gzipped or not, Parquet), which is read part by part, or a
                frame of any kind, with columns as for `predict`.
            k: How many candidates a query gets (int, default 10).
            new_only: Leave out answers that train already has at that time (default False).
            explain: Explain this many candidates of each query, in a column `explanation` as
                JSON (int, default 0). This is much slower.
            on_error: What to do with invalid queries (default `"raise"`): `raise` refuses all
                before any is answered; `skip` leaves them out, and writes them with the reasons.
            part_size: Queries in a part (int, default 20,000; 500 where some are explained).
            graph: Evidence, whose entities may all be new (default None: the model's graph).
            progress: Called with the name of a stage, `check` or `predict`, how many queries are
                done, and of how many; 0 if that is not known.

        Raises:
            TilpError: Queries are invalid, or the folder holds something else.
        """
        skip = choose(types.OnInvalidQuery, on_error, "on_error") is types.OnInvalidQuery.SKIP
        settings = BatchSettings(k, new_only, explain, skip, part_size)
        reading, is_file = self.graph.reading, not is_frame(queries)
        source = QueryFile(queries, reading) if is_file else QueryFrame(as_polars(queries), reading)
        top_k = self._predictor(k, graph, new_only=new_only)
        explainer = self._explainer(graph) if explain else None
        predictor = BatchPredictor(top_k, explainer, explain)
        decided_by = {
            "model": self._digest(),
            "evidence": top_k.graph.fingerprint(),
            "sources": top_k.graph.source_files.digest(top_k.graph.source_line),
        }
        path = Path(folder).expanduser()
        with self._workers() as workers:
            return predict_to(path, source, predictor, settings, decided_by, workers, progress)

    def queries_of(
        self,
        relation: str,
        start: str | None = None,
        end: str | None = None,
        *,
        all_subjects: bool = False,
        graph: TemporalGraph | None = None,
    ) -> pl.DataFrame:
        """Return a query for each subject that lacks a fact of a relation at that time.

        Subjects are entities of the kinds that the relation usually has: they share a relation with
        at least a tenth of its subjects in train.

        Args:
            relation: Its name; for its inverse, `name⁻¹` or `name^-1`, each object has a query.
            start: The start of all queries (default None: not known).
            end: The end of all queries (default None: not known). Without any date, subjects have
                no fact of the relation at any time.
            all_subjects: Query each subject that train has a fact of the relation of, at any time,
                instead (default False).
            graph: Take the entities from another graph (default None: the model's).

        Raises:
            TilpError: There is no such relation, train has no fact of it, or no subject lacks one.
        """
        evidence = self.evidence(graph)
        return queries_of(evidence, relation, start, end, all_subjects=all_subjects)

    def ask(self, query: Query, k: int = 10, *, graph: TemporalGraph | None = None) -> Predictions:
        """Return the k best candidates of one query, to print or to loop over.

        Facts that answer it already are in `known`, each with file and line.

        Args:
            query: For the subject or the object of a fact.
            k: How many candidates (int, default 10).
            graph: Evidence, whose entities may all be new (default None: the model's graph).
        """
        (predictions,) = self._predictor(k, graph).predict(read_queries([query]))
        return predictions

    def known_facts(
        self, query: Query, *, without: Iterable[int] = (), graph: TemporalGraph | None = None
    ) -> KnownFacts:
        """Return the training facts that answer a query at that time, the earliest first.

        Args:
            query: For the subject or the object of a fact.
            without: Ids of facts to leave out (default none).
            graph: Look in another graph (default None: in the model's).
        """
        evidence = self.evidence(graph)
        table = query_table(evidence, read_queries([query]))
        table = self.scorer(graph).rule_scorer.resolve_dates(table)
        rows, _ = known_facts(evidence, table, 0)
        return KnownFacts(evidence, rows[~np.isin(rows, list(without))])

    def _predictor(
        self, k: int, graph: TemporalGraph | None, *, new_only: bool = False
    ) -> TopKPredictor:
        return TopKPredictor(self.evidence(graph), self.scorer(graph), k, new_only)

    def explain(
        self,
        query: Query,
        candidate: str | None = None,
        *,
        against: str | None = None,
        without: Iterable[int] = (),
        groundings: int = 3,
        max_reasons: int | None = 20,
        ablation: bool = True,
        graph: TemporalGraph | None = None,
    ) -> Explanation:
        """Explain the score and rank of a candidate: its reasons, and the facts they rest on.

        Args:
            query: For the subject or the object of a fact.
            candidate: Its name (default None: the best one).
            against: The candidate to compare it with (default None: the best other one).
            without: Ids of facts to leave out, as explanations show them (default none).
            groundings: Show at most this many groundings of each reason (int, default 3).
            max_reasons: Look up the facts of this many reasons (int, default 20; None for all).
            ablation: Also score the candidate without the facts of the first reason (default
                True), to show how much depends on them.
            graph: Evidence, whose entities may all be new (default None: the model's graph).

        Example:
            >>> import tilp
            >>> graph = tilp.datasets.world(seed=0, size=1000).graph
            >>> model = TILP(max_length=1, features="none").fit(graph)
            >>> query = tilp.Query("diedIn", subject="Omar Shelker", start=1984)
            >>> explanation = model.explain(query, max_reasons=2)
            >>> explanation.candidate, explanation.rank
            ('Dedbridge', 1)
        """
        (explanation,) = self._explainer(graph).explain(
            query, [candidate], against=against, without=without, groundings=groundings,
            max_reasons=max_reasons, ablation=ablation,
        )  # fmt: skip
        return explanation

    def time_predictor(self, graph: TemporalGraph | None = None) -> TimePredictor:
        """Return what answers questions about the times of facts.

        Args:
            graph: Use its train split as evidence (default None: that of the model's graph).
        """
        time = getattr(self._need_fit(), "time", None)  # forecasters have none
        if time is None:
            raise TilpError(
                "the model has no time model: it is a forecaster, or was fitted with only_earlier, "
                "with time_model=False (--no-time-model) or by an earlier tilp; fit one without "
                "these to ask when"
            )
        if graph is not None and graph is not self.graph:
            return TimePredictor(time, graph, self.phrasings)
        if self._time_predictor is None:
            self._time_predictor = TimePredictor(time, self.graph, self.phrasings)
        return self._time_predictor

    def predict_time(
        self, subject: str, relation: str, object: str, start: str | int | None = None,
        end: str | int | None = None, *, k: int = 10, graph: TemporalGraph | None = None,
    ) -> TimePrediction:  # fmt: skip
        """Return when a fact holds: intervals, distributions of start and end, and reasons.

        Args:
            subject: Its name, or id; likewise `relation` and `object`.
            start: If it is known, the end is predicted (default None).
            end: If it is known, the start is predicted (default None).
            k: How many intervals, chosen so that the best of them overlaps most (default 10).
            graph: Evidence (default None: the model's graph).
        """
        query = Query(relation, subject, object, start, end)
        return self.time_predictor(graph).ask(query, k)

    def holds(
        self, subject: str, relation: str, object: str, at: str | int, *,
        start: str | int | None = None, end: str | int | None = None,
        graph: TemporalGraph | None = None,
    ) -> float:  # fmt: skip
        """Return the probability that a fact holds at a date, or at some time of a year or month.

        The other arguments are those of `predict_time`.
        """
        return self.time_predictor(graph).holds(Query(relation, subject, object, start, end), at)

    def predict_times(
        self, queries: Path | str | pl.DataFrame, k: int = 1, *,
        on_error: types.OnInvalidQuery | str = types.OnInvalidQuery.RAISE,
        folder: Path | str | None = None, part_size: int = 2_000,
        graph: TemporalGraph | None = None,
    ) -> pl.DataFrame | None:  # fmt: skip
        """Return when each fact of a table holds: a row for each interval, the best first.

        Args:
            queries: A table, or a file that is read part by part, with the columns subject,
                relation, object, and perhaps start or end.
            k: How many intervals each gets (default 1).
            on_error: `raise` (default) an error for an invalid question, or `skip` it: its row
                has no interval, and the reason as its note.
            folder: Write the rows here as Parquet parts, and return None (default None). If it
                is stopped, the same call adds the missing parts.
            part_size: Queries in a part (default 2,000).
            graph: Evidence (default None: the model's graph).
        """
        skip = choose(types.OnInvalidQuery, on_error, "on_error") is types.OnInvalidQuery.SKIP
        source = QueryFrame(queries) if isinstance(queries, pl.DataFrame) else QueryFile(queries)
        predictor = self.time_predictor(graph)
        answer = partial(_answer_part, predictor, k, skip)
        with self._workers() as workers:
            if folder is None:
                return pl.concat(workers.map(answer, source.slices(part_size)))
            decided_by = {"model": self._digest(), "evidence": predictor.graph.fingerprint()}
            asked = {**decided_by, "time": True, "k": k, "skip": skip}
            write_parts(Path(folder).expanduser(), source, answer, part_size, asked, workers)
        return None

    def evaluate(
        self,
        split: str = "test",
        *,
        known: TemporalGraph | None = None,
        protocols: Iterable[types.Protocol | str] | None = None,
        sample: int | None = None,
        seed: int = 0,
        progress: Callable[[float], None] | None = None,
    ) -> Evaluation:
        """Rank the answers of a split's facts in both directions, with train alone as evidence.

        Args:
            split: Whose facts are queries (default `"test"`).
            known: The facts that protocols take other answers from, and whose split is ranked
                (default None: the model's own). For a model of reduced data, give the data with
                all facts and the same names: an answer of a removed fact is no error.
            protocols: Those to rank under (default None: all).
            sample: Rank a random sample of this many facts, for a large split (default None: all).
            seed: Of the sample (default 0).
            progress: Called with the share that is done.

        Raises:
            TilpError: The known facts have other names or another unit of time.
        """
        own, known = self.graph, self.graph if known is None else known
        same_names = known.entities == own.entities and known.relations == own.relations
        if not same_names or known.unit is not own.unit:
            raise TilpError(
                "the known facts have other entities, relations or another unit than the model's; "
                "give the data that the model's were taken from"
            )
        with self._workers() as workers:
            return evaluate(
                self.scorer(), known, split, protocols=protocols, sample=sample, seed=seed,
                workers=workers, progress=progress, note=repr(self),
            )  # fmt: skip

    def evaluate_times(
        self, split: str = "test", *, known: TemporalGraph | None = None,
        sample: int | None = None, seed: int = 0, progress: Callable[[float], None] | None = None,
    ) -> TimeEvaluation:  # fmt: skip
        """Measure the predicted times of a split's facts with two known dates.

        The arguments are those of `evaluate`; train alone is evidence.
        """
        with self._workers() as workers:
            return evaluate_times(
                self.time_predictor(), self.graph if known is None else known, split, workers,
                sample=sample, seed=seed, progress=progress,
            )  # fmt: skip

    def save(self, folder: Path | str, *, replace: bool = False) -> Path:
        """Write the model and its graph to a folder; `TILP.load` and `tilp.load` read it.

        Args:
            folder: A new or empty one.
            replace: Replace a model that is there, once the new one is written (default False).

        Returns:
            The folder.

        Raises:
            TilpError: The folder is in use, cannot be written, or is the one that this model was
                loaded from and has changed since: an update by another process would be lost.
        """
        parts = self.settings, self.graph, self._need_fit()
        path = save_model(*parts, folder, replace=replace, loaded=self._saved)
        self._saved = saved_state(path)
        return path

    @classmethod
    def load(cls, folder: Path | str) -> TILP:
        """Read a model that `save` wrote. Nothing in the folder is executed.

        Args:
            folder: Of the model.

        Raises:
            TilpError: The folder holds no model, a damaged one, or one of another version.

        Example:
            >>> import tempfile, tilp
            >>> model = TILP(max_length=1, features="none")
            >>> model = model.fit(tilp.datasets.world(seed=0, size=1000).graph)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     again = TILP.load(model.save(folder))
            >>> again.rules() == model.rules()
            True
        """
        state = saved_state(folder)
        parts = load_model(folder)
        try:
            model = cls.from_parts(*parts)
        except TypeError as failure:
            message = f"{folder}: a damaged model (its settings: {failure}); fit it again"
            raise TilpError(message) from failure
        model._saved = state
        return model

    def _digest(self) -> str:
        return model_digest(self.settings, self.graph, self._need_fit())

    def _workers(self) -> Workers:
        jobs = None if self.n_jobs == -1 else self.n_jobs
        return Workers(thread_count(jobs), self.backend, self.address, self.memory)

    def _need_fit(self) -> FittedModel:
        if self._fitted is None:
            raise TilpError("the model is not fitted yet: call fit(graph) first")
        return self._fitted


def _answer_part(predictor: TimePredictor, k: int, skip: bool, part: QuerySlice) -> pl.DataFrame:
    return predictor.table(part.columns, k, skip=skip, first=part.first)
