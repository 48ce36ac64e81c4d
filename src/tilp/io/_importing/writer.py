"""Where an import writes to: a folder of tables that appears only when it is complete."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tilp.io.folders import new_folder

_BREAKS = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]+")


class FactWriter:
    """Writes facts as they come, then the labels of what they name, as a folder of tables.

    The folder appears under its name only when complete. Labels may come before or after the
    facts that need them, so all wait in a temporary file; in memory are only the distinct
    entities and relations of the facts.
    """

    def __init__(self, out: Path) -> None:
        self.out = Path(out).resolve()
        self.facts = 0
        self._entities: dict[str, None] = {}
        self._relations: dict[str, None] = {}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._partial = stack.enter_context(new_folder(self.out))
            self._table = stack.enter_context(
                self._create("facts.tsv", "subject\trelation\tobject\tstart\tend\n")
            )
            self._labels = stack.enter_context(self._create("labels", ""))
            self._open = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._open as stack:
            if error is None:
                self._write_names()
            else:
                # The folder is given up only if it sees what went wrong.
                stack.pop_all().__exit__(kind, error, trace)

    def _create(self, name: str, header: str) -> IO[str]:
        file = (self._partial / name).open("w", encoding="utf-8", newline="\n")
        file.write(header)
        return file

    def fact(self, subject: str, relation: str, object_: str, start: str, end: str) -> None:
        """Write one fact."""
        self._table.write(f"{subject}\t{relation}\t{object_}\t{start}\t{end}\n")
        self._entities[subject] = self._entities[object_] = self._relations[relation] = None
        self.facts += 1

    def label(self, key: str, text: str, *, fallback: bool = False) -> None:
        """Keep a label in case a fact names its entity or relation; a fallback yields to others."""
        text = _BREAKS.sub(" ", text.encode("utf-8", "replace").decode("utf-8")).strip()
        if text:
            self._labels.write(f"{key}\t{'' if fallback else '!'}\t{text}\n")

    def _write_names(self) -> None:
        labels: dict[str, tuple[str, str]] = {}
        self._labels.close()
        with (self._partial / "labels").open(encoding="utf-8", newline="\n") as spilled:
            for line in spilled:
                key, rank, text = line.rstrip("\n").split("\t")
                named = key in self._entities or key in self._relations
                if named and (key not in labels or rank > labels[key][0]):
                    labels[key] = rank, text
        (self._partial / "labels").unlink()
        for name, keys in (("entities", self._entities), ("relations", self._relations)):
            with self._create(f"{name}.tsv", "id\tkey\tlabel\n") as table:
                for key in keys:
                    table.write(f"{key}\t{key}\t{labels.get(key, ('', key))[1]}\n")
