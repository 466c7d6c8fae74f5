"""What a suite prints: a line for each row, the machine's state, and the exit code that goes with them."""

import dataclasses
import statistics

from interleave import interval


@dataclasses.dataclass
class Line:
    """A row that was measured. `met` is None where this machine cannot judge it; the detail says why."""

    name: str
    measured: str
    target: str
    met: object  # bool or None
    detail: str = ''

    def verdict(self):
        return {True: 'met', False: 'MISSED', None: 'not judged'}[self.met]


def of_ratios(name, values, target, met, detail):
    """The line of a comparison by its rounds' ratios."""
    low, high = interval(values)
    return Line(name, f'{statistics.median(values):5.2f}  {low:5.2f} to {high:5.2f}  {min(values):5.2f} to {max(values):5.2f}',
                target, met, detail)


def show(lines, title):
    """Prints one section. Its lines' measured column is a number, or ratio, interval and spread."""
    name = max(len(title), *(len(line.name) for line in lines))
    measured = max(len(line.measured) for line in lines)
    heads = 'ratio  90 % interval   spread' if measured > 16 else ''
    print(f'{title:{name}}  {heads:{measured}}   target')
    for line in lines:
        print(f'{line.name:{name}}  {line.measured:>{measured}}  {line.target:>7}  {line.verdict():6}  {line.detail}'.rstrip())
    print(flush=True)


def close(lines):
    """Prints the count. Returns the exit code: 4 when a row misses its target."""
    missed = [line for line in lines if line.met is False]
    unjudged = [line for line in lines if line.met is None]
    print(f'bench: {len(lines)} rows, {len(missed)} missed' + (f', {len(unjudged)} not judged' if unjudged else ''))
    for line in missed:
        print(f'bench: missed: {line.name}')
    return 4 if missed else 0
