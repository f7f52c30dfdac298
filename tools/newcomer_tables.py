"""The data of five first jobs, as messy as people have them; ``python tools/newcomer_tables.py FOLDER`` writes all."""

import csv
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

JUDGES = {"gpt-4o": 0.6, "claude-3.5": 0.7, "llama-3-8b": 1.5, "gemini": 1.0, "mistral-7b": 4.0}
MOODS = ("positive", "negative", "mixed")
MODELS = ("gpt-4o", "claude-3.5", "gemini", "llama-70b", "qwen", "mistral", "phi", "gemma")
ENGINES = {"bm25": 0.9, "splade": 0.5, "dense": 0.6, "colbert": 0.4}


def scores(path: Path, answers: int = 300) -> None:
    """Write scores of 1 to 10 by five judges, a row per answer: with scales, refusals, gaps, and ten rows twice."""
    rng = np.random.default_rng(0)
    rows = []
    for number, quality in enumerate(rng.normal(6.0, 2.0, answers)):
        row = {"answer_id": f"ans_{number:03d}", "question": f"What is the best way to do thing {number % 40}?"}
        row["response"] = f"One could begin with step {number}, and go on from there."
        for judge, noise in JUDGES.items():
            row[judge] = str(int(np.clip(round(quality + rng.normal() * noise), 1, 10)))
        rows.append(row)
    for judge, cell in zip(
        list(JUDGES) * 16,
        ["", "N/A", "8/10", "I'm sorry, I cannot rate this.", "11", "Score: 7", "", "null"] * 10,
        strict=True,
    ):
        rows[int(rng.integers(answers))][judge] = cell
    _write(path, [*rows, *(rows[number] for number in range(5, 15))])


def functions(path: Path, texts: int = 400) -> None:
    """Write the matrix of eleven labeling functions for two classes, -1 where they abstain."""
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=texts)
    rows = []
    for number in range(texts):
        row: dict[str, Any] = {"id": number}
        for place in range(11):
            right = rng.random() < 0.65 + 0.03 * place
            row[f"lf_{place}"] = int(truth[number] if right else 1 - truth[number]) if rng.random() < 0.4 else -1
        rows.append(row)
    _write(path, rows)


def crowd(path: Path, tasks: int = 500) -> None:
    """Write one row per answer of 60 workers, a few of them constant; spelled as they like, and 12 rows twice."""
    rng = np.random.default_rng(2)
    truth = rng.integers(3, size=tasks)
    rows = []
    for task in range(tasks):
        for worker in rng.choice(60, size=4, replace=False):
            said = 2 if worker < 5 else truth[task] if rng.random() < 0.8 else rng.integers(3)
            spelled = MOODS[said].title() if worker % 7 == 0 else MOODS[said]
            row = {"task_id": f"task_{task:05d}", "worker_id": f"A{worker:03d}XZ", "answer": spelled}
            rows.append({**row, "seconds": int(rng.integers(5, 90))})
    _write(path, [*rows, *rows[100:112]])


def arena(path: Path, comparisons: int = 1500, users: int = 1000) -> None:
    """Write battles of eight models as arenas publish them, each judged by one of many users."""
    rng = np.random.default_rng(3)
    strength = np.linspace(1.5, -1.5, len(MODELS))
    rows = []
    for number in range(comparisons):
        one, two = rng.choice(len(MODELS), size=2, replace=False)
        wins = rng.random() < 1.0 / (1.0 + np.exp(strength[two] - strength[one]))
        ends = rng.random()
        winner = "tie" if ends < 0.08 else "tie (bothbad)" if ends < 0.12 else "model_a" if wins else "model_b"
        row = {"question_id": f"q{number}", "model_a": MODELS[one], "model_b": MODELS[two], "winner": winner}
        rows.append({**row, "judge": f"user_{rng.integers(users)}"})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def searches(path: Path, queries: int = 40) -> None:
    """Write the ten best of thirty documents by each of four engines, a run file in the form of TREC."""
    rng = np.random.default_rng(4)
    lines = []
    for query in range(queries):
        relevance = rng.normal(size=30)
        for engine, noise in ENGINES.items():
            found = relevance + rng.normal(size=30) * noise
            for rank, document in enumerate(np.argsort(-found)[:10], start=1):
                lines.append(f"q{query} Q0 d{query}_{document} {rank} {found[document]:.4f} {engine}\n")
    path.write_text("".join(lines), encoding="utf-8")


JOBS = {
    "scores.csv": scores,
    "functions.csv": functions,
    "crowd.csv": crowd,
    "arena.jsonl": arena,
    "searches.run": searches,
}


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    listed = list(rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, listed[0])
        writer.writeheader()
        writer.writerows(listed)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in JOBS.items():
        make(folder / name)
