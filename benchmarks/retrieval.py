"""Whether the experience relevant to a request is found first, compared with simpler ways to
search.

    python benchmarks/retrieval.py FOLDER

The folder holds recorded household tasks, each with its request and the actions that served it
(agentinstruct_trajectories.json), and requests with known relevant recordings, graded from 6 to 10
(query_bank.json); it is the data of Proced_mem_bench. Ungraded recordings count as irrelevant. In
one run: ours (the library's index with requests and actions as separate fields), BM25 alone,
vectors alone (of requests, the better of the two), and these two fused by rank. Mean average
precision (MAP), precision among the first five (P@5) and graded gain among the first five (nDCG@5)
are averaged over requests; the interval holds 95 % of the means when requests are resampled with
replacement. The ratio of ours to the best simple method is printed last.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from journeyman.experience.experience import Bm25, Index
from journeyman.learning.search_keys import task_words, words
from journeyman.models.embedder import Embedder

_FIRST = 5
_RANK_OFFSET = 60
_DRAWS = 10_000
_MEASURES = ("MAP", f"P@{_FIRST}", f"nDCG@{_FIRST}")

Order = NDArray[np.intp]
Search = Callable[[str], Order]


def by_score(scores: NDArray[np.floating]) -> Order:
    return np.argsort(-scores, kind="stable")


def joined_by_rank(*orders: Order) -> Order:
    scores = np.zeros(len(orders[0]))
    for order in orders:
        scores[order] += 1.0 / (_RANK_OFFSET + np.arange(len(order)))
    return by_score(scores)


def searches(requests: list[str], actions: list[str]) -> dict[str, Search]:
    """The search methods by name, ours first."""
    embedder = Embedder()
    vectors = embedder.embed(requests)
    index = Index(
        range(len(requests)),
        vectors,
        [words(one) for one in requests],
        embedder.embed(actions),
        [words(one) for one in actions],
    )
    together = zip(requests, actions, strict=True)
    bm25 = Bm25([words(f"{request} {action}") for request, action in together])

    def ours(task: str) -> Order:
        vector = embedder.embed([task])[0]
        found = index.nearest(vector, task_words(task), most=len(requests))
        return np.array([one.row for one in found])

    def by_words(task: str) -> Order:
        return by_score(bm25.scores(words(task)))

    def by_meaning(task: str) -> Order:
        return by_score(vectors @ embedder.embed([task])[0])

    return {
        "ours": ours,
        "BM25": by_words,
        "vectors": by_meaning,
        "joined by rank": lambda task: joined_by_rank(by_words(task), by_meaning(task)),
    }


def measures(order: Order, grades: NDArray[np.float64]) -> tuple[float, float, float]:
    """Average precision, precision and gain of one result; a grade of 0 is irrelevant."""
    fits = grades[order] > 0
    precision = np.cumsum(fits) / np.arange(1, len(fits) + 1)
    discount = 1.0 / np.log2(np.arange(2, _FIRST + 2))
    best = np.sort(grades)[::-1][:_FIRST] @ discount
    gain = grades[order][:_FIRST] @ discount / best
    return float(precision[fits].mean()), float(fits[:_FIRST].mean()), float(gain)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    tasks = json.loads((folder / "agentinstruct_trajectories.json").read_text())["trajectories"]
    queries = json.loads((folder / "query_bank.json").read_text())["queries"]
    place = {task["task_instance_id"]: at for at, task in enumerate(tasks)}
    ways = searches(
        [task["task_description"] for task in tasks],
        [" ".join(step["action"] for step in task["state_action_pairs"]) for task in tasks],
    )
    print(f"{len(tasks)} recorded tasks, {len(queries)} requests")
    chance = np.random.default_rng(0)
    drawn = chance.integers(len(queries), size=(_DRAWS, len(queries)))
    means: dict[str, NDArray[np.float64]] = {}
    for name, search in ways.items():
        found = []
        search(queries[0]["query_text"])  # loads the model
        started = time.perf_counter()
        for query in queries:
            grades = np.zeros(len(tasks))
            for one in query["relevant_trajectories"]:
                grades[place[one["trajectory_id"]]] = one["relevance_score"]
            found.append(measures(search(query["query_text"]), grades))
        took = (time.perf_counter() - started) / len(queries)
        values = np.array(found)
        low, high = np.quantile(values[drawn].mean(axis=1), (0.025, 0.975), axis=0)
        means[name] = values.mean(axis=0)
        said = ", ".join(
            f"{measure} {mean:.3f} [{least:.3f}, {most:.3f}]"
            for measure, mean, least, most in zip(_MEASURES, means[name], low, high, strict=True)
        )
        print(f"{name:>15}: {said}, {1000 * took:.1f} ms per request")
    ours = means.pop("ours")
    best = np.max(list(means.values()), axis=0)
    ratios = zip(_MEASURES, ours / best, strict=True)
    said = ", ".join(f"{measure} {ratio:.2f}" for measure, ratio in ratios)
    print(f"ratio of ours to the best simple method: {said}")


if __name__ == "__main__":
    main()
