"""Rounds of a comparison: two variants in turn, the ratio of each round, its median, spread and target."""

import dataclasses
import random
import statistics
import sys


def interval(ratios):
    """90 % bootstrap interval of the median: what the same rounds could as well have given."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    return medians[100], medians[1899]


@dataclasses.dataclass
class Row:
    """One comparison. `ours` and `theirs` measure once and return a rate; the ratio is ours over theirs.

    `judge` takes the rounds' ratios and `at_least`; left out, their median decides.
    """

    name: str
    ours: object
    theirs: object
    at_least: float
    judge: object = None


@dataclasses.dataclass
class Outcome:
    row: Row
    ratios: list
    ours: list
    theirs: list

    @property
    def median(self):
        return statistics.median(self.ratios)

    def interval(self):
        return interval(self.ratios)

    @property
    def met(self):
        if self.row.judge is not None:
            return self.row.judge(self.ratios, self.row.at_least)
        return self.median >= self.row.at_least


def measure(row, rounds):
    """Runs `row` for `rounds` rounds, the order turned round in every second one. One uncounted round goes before."""
    outcome = Outcome(row, [], [], [])
    for number in range(-1, rounds):
        first_ours = number % 2 == 0
        values = {}
        for ours in (first_ours, not first_ours):
            values[ours] = (row.ours if ours else row.theirs)()
        print(f'  {row.name}: round {number + 1} of {rounds}: {values[True]:.4g} against {values[False]:.4g}'
              f'{" (warm-up)" if number < 0 else ""}', file=sys.stderr, flush=True)
        if number >= 0:
            outcome.ours.append(values[True])
            outcome.theirs.append(values[False])
            outcome.ratios.append(values[True] / values[False])
    return outcome


def report(outcomes, unit):
    """Prints a line for each row. Returns the exit code."""
    width = max(len(outcome.row.name) for outcome in outcomes)
    print(f'{"":{width}}  ratio  90 % interval   spread          target  median rates ({unit})')
    for outcome in outcomes:
        low, high = outcome.interval()
        print(f'{outcome.row.name:{width}}  {outcome.median:5.2f}  {low:5.2f} to {high:5.2f}  '
              f'{min(outcome.ratios):5.2f} to {max(outcome.ratios):5.2f}  {outcome.row.at_least:6.2f}  '
              f'{statistics.median(outcome.ours):.1f} against {statistics.median(outcome.theirs):.1f}  '
              f'{"met" if outcome.met else "MISSED"}')
    missed = [outcome for outcome in outcomes if not outcome.met]
    print(f'bench: {len(outcomes)} rows, {len(missed)} missed')
    return 4 if missed else 0
