"""The rows of a table in docs/figures.md, from the numbers behind a figure: figure_rows.py FIGURE.json"""

import json
import sys


def percent(share):
    return "–" if share is None else f"{100 * share:.1f}%"


def row(arm, run):
    """One run: when agents left, and how good the model was before and at the end."""
    departures, agents = run["departures"], run["agents"]
    early = run["rounds"] < arm["experiment"]["rounds"] and run["stop"] != "everyone-left"
    left = "0"
    if departures:
        left = f"{len(departures)} of {agents}"
    if len(departures) > 1:
        left += f" by {departures[-1]}"
    end = run["accuracy_at_end"]
    return [
        arm["name"] + (f" (stops in round {run['rounds']})" if early else ""),
        str(run["seed"]),
        str(departures[0]) if departures else "–",
        left,
        percent(run["accuracy_before_first_departure"]),
        percent(end["mean"]),
        percent(end["min"]),
        percent(run["population_before_first_departure"]),
        percent(run["population_at_end"]),
    ]


def main(path):
    with open(path, encoding="utf-8") as file:
        numbers = json.load(file)
    numbers = numbers.get("numbers", numbers)
    print("| rule | seed | first departure | left | before | at the end | worst agent | population before | population at the end |")
    print("|---|---|---|---|---|---|---|---|---|")
    for arm in numbers["arms"]:
        for run in arm["runs"]:
            print("| " + " | ".join(row(arm, run)) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
