"""Files of scored candidates, and the commands that evaluate and compare them."""

import json

import numpy as np
import polars as pl
import pytest

import tilp
from tilp.evaluation import (
    compare,
    evaluate,
    load_evaluation,
    popularity,
    read_scores,
    write_scores,
)
from tilp.scoring import Scores
from tilp.types import Protocol, Ties


@pytest.mark.parametrize("ending", ["tsv", "csv", "parquet"])
def test_a_file_of_scores_gives_the_same_ranks(tmp_path, ending):
    graph = tilp.datasets.world(0, 2_000).graph
    path = write_scores(popularity(graph), graph, tmp_path / f"scores.{ending}")
    again = read_scores(path, graph, default=0.0)
    expected = evaluate(popularity(graph), graph)
    assert evaluate(again, graph) == expected
    with pytest.raises(tilp.TilpError, match=r"written as \.tsv, \.csv, \.parquet"):
        write_scores(popularity(graph), graph, tmp_path / "scores.doc")


HEADER = "subject,relation,object,start,end,direction,candidate,score\n"
ROW = "Ada,playsFor,United,1994,present,object,Rovers,0.5\n"


def test_a_file_may_lack_queries_and_repeat_rows(football, tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text(HEADER + ROW + ROW + "Cleo,playsFor,United,,2001,Subject,Ben,-2\n")
    with pytest.warns(tilp.TilpWarning, match="2 of the 4 queries of test have no row"):
        scores = read_scores(path, football)
    assert np.diff(scores.offsets).tolist() == [1, 0, 0, 1]
    assert [football.entities.label(one) for one in scores.candidate] == ["Rovers", "Ben"]
    # What is not listed comes after what is, also after a score below zero.
    assert evaluate(scores, football).rank("raw", "best").to_list() == [2.0, 1.0, 1.0, 2.0]


def test_repeated_facts_share_their_rows(facts, tmp_path):
    graph = tilp.read({"train": facts, "test": pl.concat([facts[:1], facts[:1]])})
    path = tmp_path / "scores.csv"
    path.write_text(HEADER + "Ada,playsFor,Rovers,1990,1993,object,United,1\n")
    with pytest.warns(tilp.TilpWarning, match="2 of the 4"):
        assert np.diff(read_scores(path, graph).offsets).tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ROW, "no column is called subject"),
        (HEADER.replace("score", "value") + ROW, "no column is called score"),
        (HEADER + ROW + ROW.replace("Rovers", "Rover"), "row 3, candidate: .*mean 'Rovers'"),
        (HEADER + ROW.replace("playsFor", "playFor"), "row 2, relation: .*mean 'playsFor'"),
        (HEADER + ROW.replace("0.5", "high"), "row 2: the score is 'high', not a number"),
        (HEADER + ROW.replace("0.5", "nan"), "row 2: the score is 'nan', not a number"),
        (HEADER + ROW.replace("0.5", ""), "row 2: the score is None, not a number"),
        (HEADER + ROW.replace("object", "both"), "row 2: the direction is 'both'"),
        (HEADER + ROW + ROW.replace("0.5", "0.6"), "rows 2 and 3: two scores of one candidate"),
        (HEADER + ROW.replace("1994", "1995"), "row 2: .* no fact of the test .*1994, present"),
        (HEADER + ROW.replace("United", "Rovers"), "row 2: .* Is the split the right one"),
        (HEADER + "a,b\n", "line 2: 2 columns where 8"),
    ],
)
def test_a_file_that_cannot_be_read_names_row_and_remedy(football, tmp_path, text, message):
    path = tmp_path / "scores.csv"
    path.write_text(text)
    with pytest.raises(tilp.DataError, match=message) as failure:
        read_scores(path, football)
    assert str(path) in str(failure.value)


def test_dates_and_names_of_other_tools(tmp_path):
    frame = pl.DataFrame(
        {"s": ["1", "2"], "r": ["7", "7"], "o": ["2", "1"], "start": ["1990-##-##", "####-##-##"],
         "end": ["1985-##-##", "1991-##-##"]}
    )  # fmt: skip
    with pytest.warns(tilp.TilpWarning, match="start after end"):
        graph = tilp.read({"train": frame, "test": frame})
    other = pl.DataFrame(
        {"subject": [1, 2], "relation": [7, 7], "object": [2, 1], "start": [1990.0, None],
         "end": [1985, 1991], "direction": ["tail", "head"], "candidate": [1, 2],
         "score": [-1, -2]}
    )  # fmt: skip
    other.write_parquet(tmp_path / "scores.parquet")
    with pytest.warns(tilp.TilpWarning, match="2 of the 4"):
        scores = read_scores(tmp_path / "scores.parquet", graph)
    assert np.diff(scores.offsets).tolist() == [1, 0, 0, 1]
    assert scores.score.tolist() == [-1.0, -2.0]


def test_the_commands(run, tmp_path):
    graph = tilp.datasets.world(0, 2_000).graph
    data = tilp.write(graph, tmp_path / "data")
    entities = len(graph.entities)
    chance = np.random.default_rng(0)
    a = write_scores(
        lambda q: Scores.dense(chance.random((len(q), entities))), graph, tmp_path / "a.parquet"
    )
    b = write_scores(
        lambda q: Scores.dense(chance.random((len(q), entities))), graph, tmp_path / "b.tsv"
    )
    code, out, _ = run("evaluate-scores", a, "--data", data, "--out", tmp_path / "ea")
    assert code == 0
    assert all(word in out for word in [*Protocol, *Ties, "95 % interval", "train never saw"])
    code, out, _ = run(
        "evaluate-scores", b, "--data", data, "--json",
        "--protocol", "enumerate", "--protocol", "raw",
    )  # fmt: skip
    assert code == 0
    figures = json.loads(out)
    assert set(figures["protocols"]) == {"enumerate", "raw"}
    assert run("evaluate-scores", b, "--data", data, "--out", tmp_path / "eb")[0] == 0
    code, out, _ = run("compare", tmp_path / "ea", tmp_path / "eb", "--json")
    found = json.loads(out)
    expected = compare(
        load_evaluation(tmp_path / "ea"), evaluate(read_scores(b, graph), graph)
    ).to_json()
    assert code == 0 and found["figures"] == expected["figures"]
    assert found["figures"]["mrr"]["second"] == pytest.approx(
        figures["protocols"]["enumerate"]["average"]["mrr"]
    )
    code, out, _ = run("compare", tmp_path / "ea", tmp_path / "ea")
    assert code == 0 and "enumerate average" in out and "1.000" in out
    for other in (a, tmp_path / "nothing"):
        code, _, err = run("compare", other, tmp_path / "eb")
        assert code == 2 and "no saved evaluation" in err
