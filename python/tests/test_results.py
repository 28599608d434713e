"""Results files become frames, and broken ones errors as plain as the program's."""

import json
from pathlib import Path

import polars as pl
import pytest

import ipcmark
from conftest import ROOT

SEEDS = ROOT / "fuzz/seeds/results"
HEADER = (SEEDS / "latency.jsonl").read_text().splitlines()[0]
RECORD = (SEEDS / "latency.jsonl").read_text().splitlines()[1]
END = (SEEDS / "latency.jsonl").read_text().splitlines()[2]


def test_a_file_becomes_cases_trials_slices_and_hosts() -> None:
    results = ipcmark.read(SEEDS / "latency.jsonl")
    case = results.cases.row(0, named=True)
    assert case["case"] == "pipe latency 64 same-core"
    assert (case["run"], case["host"], case["outcome"]) == ("k3x9", "h", "settled")
    assert (case["iteration_ns"], case["iteration_low_ns"], case["p50_ns"]) == (1201.0, None, 1250)
    assert results.slices["iteration_ns"].to_list() == [1200.0, 1201.0, 1202.0]
    trial = results.trials.row(0, named=True)
    assert (trial["slices"], trial["iterations"], trial["iteration_ns"]) == (3, 3000, 1201.0)
    host = results.hosts.row(0, named=True)
    assert (host["kernel"], host["cpus"], host["ended"], host["stolen"]) == ("6.1", 1, True, 0.01)
    facts = {fact["fact"]: fact for fact in host["facts"]}
    assert facts["governor"] == {"fact": "governor", "value": None, "unknown": "a guest has none"}
    assert facts["caches_bytes.L1d"]["value"] == "32768"
    assert facts["smt"]["value"] == "false"
    assert facts["limits.fs/pipe-max-size"]["value"] == "1048576"


def test_frames_survive_parquet(tmp_path: Path) -> None:
    results = ipcmark.read(sorted(path for path in SEEDS.iterdir() if path.name != "newer.jsonl"))
    results.to_parquet(tmp_path)
    for name, frame in results.frames().items():
        assert pl.read_parquet(tmp_path / f"{name}.parquet").equals(frame), name


def test_a_failed_case_says_why() -> None:
    case = ipcmark.read(SEEDS / "failed.jsonl").cases.row(0, named=True)
    assert case["outcome"] == "failed"
    assert case["error"]
    assert case["iteration_ns"] is None


def file(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "results.jsonl"
    path.write_text("\n".join(lines))
    return path


def test_a_last_line_that_was_cut_off_is_dropped_with_a_note(tmp_path: Path) -> None:
    results = ipcmark.read(file(tmp_path, HEADER, RECORD, END[:20]))
    assert results.cases.height == 1
    assert not results.hosts["ended"][0]
    assert "line 3, the last, was cut off and is left out" in results.notes[0]


def test_samples_without_a_record_are_an_interrupted_case(tmp_path: Path) -> None:
    record, header = json.loads(RECORD), json.loads(HEADER)
    header["plan"]["cases"] = [record["case"]]
    samples = [json.dumps({"type": "sample", "case": 0, "sample": sample}) for sample in record["samples"]]
    results = ipcmark.read(file(tmp_path, json.dumps(header), *samples))
    assert results.cases["outcome"].to_list() == ["interrupted"]
    assert results.slices.height == 3
    record["samples"] = []
    whole = ipcmark.read(file(tmp_path, json.dumps(header), *samples, json.dumps(record), END))
    assert whole.slices.height == 3
    assert whole.cases["outcome"].to_list() == ["settled"]
    late = file(tmp_path, json.dumps(header), samples[0], json.dumps(record), samples[1], END)
    with pytest.raises(ipcmark.Invalid, match="line 4: it is a sample of a case that had its record before"):
        ipcmark.read(late)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([""], "is empty\n  the run may have failed: measure again"),
        (["# a page"], "it does not begin with a JSON object"),
        (['{"a": 1}'], "its first line names no format\n  give a file that 'ipcmark run' wrote"),
        (['{"format": "other"}'], "its format is 'other'"),
        ([HEADER[:200]], "was cut off within its header"),
        ([RECORD], "has no header"),
        ([HEADER.replace('"version":1', '"version":7', 1)], "has version 7 of the results format"),
        ([HEADER, HEADER, END], "is broken at line 2: there is a second header"),
        ([HEADER, '{"type":"x"}', END], "is broken at line 2: its type 'x' is unknown"),
        ([HEADER, "{}", END], "is broken at line 2: it has no type"),
        ([HEADER, "{nonsense", "", END], "is broken at line 2: it is not JSON"),
        (
            [HEADER, RECORD, RECORD, END],
            "is broken at line 3: it repeats the case 'pipe latency 64 same-core' of line 2",
        ),
        ([HEADER, END, RECORD], "is broken at line 3: it stands after the end of the results"),
        ([HEADER, RECORD.replace('"iterations":1000', '"iterations":0', 1), END], "is broken at line 2"),
        ([HEADER, '{"type":"record","outcome":{}}', END], "is broken at line 2"),
        ([HEADER, '{"type":"sample","case":3,"sample":{}}', END], "is broken at line 2"),
    ],
)
def test_a_broken_file_is_refused_in_plain_words(tmp_path: Path, lines: list[str], words: str) -> None:
    with pytest.raises(ipcmark.Invalid) as refused:
        ipcmark.read(file(tmp_path, *lines))
    assert words in str(refused.value)
    assert "\n  " in str(refused.value)


def test_a_file_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ipcmark.Invalid, match="/nonexistent cannot be read: No such file or directory"):
        ipcmark.read("/nonexistent")
    with pytest.raises(ipcmark.Invalid, match="does not begin with a JSON object"):
        ipcmark.read("/dev/zero")
