"""When the ratios of a comparison's rounds are enough."""

import statistics

from interleave import interval

EVEN = 1.0
WITHIN = 0.02  # a target of 1.00 is reached when the median is as near, and the interval does not exclude 1.00


def at_most(ratios, target):
    """Whether times, ours over theirs, are small enough."""
    median, low = statistics.median(ratios), interval(ratios)[0]
    return median <= target or (target == EVEN and median <= EVEN + WITHIN and low <= EVEN)


def at_least(ratios, target):
    """Whether rates, ours over theirs, are large enough."""
    median, high = statistics.median(ratios), interval(ratios)[1]
    return median >= target or (target == EVEN and median >= EVEN - WITHIN and high >= EVEN)
