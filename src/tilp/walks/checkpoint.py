"""`MiningCheckpoint`: mining into a file, relation by relation, that can be stopped and resumed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from tilp._utils.files import new_file
from tilp.errors import TilpError
from tilp.graph import TemporalGraph
from tilp.parallel import Workers, use_workers
from tilp.rules import MinedRule, RuleSet
from tilp.walks.mining import MiningSettings, mine_relations, mining_walker


class MiningCheckpoint:
    """Rules for relations, written to a file whenever a relation is finished.

    Beside an unfinished file lies a note of its data, settings and finished relations; a run with
    the same data and settings goes on after these.
    """

    def __init__(
        self, graph: TemporalGraph, relations: Sequence[str], settings: MiningSettings, out: Path
    ) -> None:
        names = graph.relations
        # By the labels that rules are written with, however they were given.
        self.relations = list(dict.fromkeys(names.label(names.find(name)) for name in relations))
        self.notes = out.with_name(f"{out.name}.unfinished")
        self.done: list[str] = []
        self._out = out
        self._walker = mining_walker(graph, settings)
        self._settings = settings
        self._origin = {
            "graph": graph.fingerprint(),
            "settings": json.loads(json.dumps(asdict(settings))),
            "relations": self.relations,
        }
        self._mined: dict[str, list[MinedRule]] = {}
        self._resume()

    def finish(
        self,
        *,
        threads: int = 1,
        workers: Workers | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> RuleSet:
        """Mine the relations that are not finished.

        Args:
            threads: number of threads; does not change the result.
            workers: used instead of threads; they do not change the result either.
            progress: called with the share of the remaining work that is done.
        """
        if not self.notes.exists():
            self._write_note()  # before any rule is there: a file without a note is finished
        left = [relation for relation in self.relations if relation not in self.done]
        with use_workers(workers, threads) as workers:
            mined = mine_relations(self._walker, left, self._settings, workers, progress=progress)
            for relation, rules in mined:
                self._mined[relation] = rules
                self.done.append(relation)
                self._write()
        self._write()
        self.notes.unlink(missing_ok=True)
        return self._rules()

    def _rules(self) -> RuleSet:
        """Return the rules mined so far, in the order of the relations."""
        return RuleSet(
            rule for relation in self.relations for rule in self._mined.get(relation, ())
        )

    def _write(self) -> None:
        # First the rules, then the note: a note never lists relations whose rules are not there.
        _replace(self._out, self._rules().to_jsonl())
        self._write_note()

    def _write_note(self) -> None:
        _replace(self.notes, json.dumps({**self._origin, "done": self.done}))

    def _resume(self) -> None:
        if not self.notes.is_file():
            if self._out.exists():
                raise TilpError(f"{self._out} exists: choose another file or remove it")
            return
        try:
            note = json.loads(self.notes.read_text(encoding="utf-8"))
            done = list(note.pop("done"))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise TilpError(f"{self.notes} cannot be read; remove it to begin anew") from None
        if note != self._origin:
            raise TilpError(
                f"{self._out} was begun with other data or settings; remove it and {self.notes} "
                "to begin anew, or choose another file"
            )
        self.done = done
        for mined in RuleSet.read_jsonl(self._out) if done else ():
            relation = mined.rule.head.relation
            if relation in done:
                self._mined.setdefault(relation, []).append(mined)


def _replace(path: Path, text: str) -> None:
    with new_file(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")
