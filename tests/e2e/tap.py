"""Subtests as claims, printed as TAP for meson.

    @tap.subtest('a pool that is too large is refused')
    def _():
        tap.expect(code == 2, f'exit code {code}')

    sys.exit(tap.main())

A subtest passes by returning; tap.expect() and `raise tap.Skip(reason)` end it otherwise. Each runs by itself, in order of
the file, and a failed one does not keep the others from running.
"""

import signal
import sys
import traceback

# Whoever starts the tests in the background ignores SIGINT for all below; what is started here must hear it.
signal.signal(signal.SIGINT, signal.default_int_handler)

_subtests = []


class Skip(Exception):
    """Raised with the reason why a claim cannot be looked at on this machine."""


def subtest(claim):
    """Decorator: the function is the proof of `claim`."""

    def register(proof):
        _subtests.append((claim, proof))
        return proof

    return register


def expect(condition, *explanation):
    """Fails the subtest unless `condition`; each of `explanation` may have several lines."""
    if not condition:
        raise AssertionError('\n'.join(str(part) for part in explanation))


def _explain(text):
    for line in text.rstrip().splitlines():
        print(f'# {line}')


def main():
    """Runs what is registered. Returns 1 when something failed. An argument picks the subtests whose claim contains it."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else ''
    chosen = [(claim, proof) for claim, proof in _subtests if wanted in claim]
    failed = 0
    print(f'1..{len(chosen)}', flush=True)
    for number, (claim, proof) in enumerate(chosen, 1):
        claim = claim.replace('#', '')  # would begin a directive
        try:
            proof()
        except Skip as skip:
            print(f'ok {number} - {claim} # SKIP {skip}')
        except AssertionError as error:
            failed += 1
            print(f'not ok {number} - {claim}')
            _explain(str(error) or traceback.format_exc())
        except Exception:
            failed += 1
            print(f'not ok {number} - {claim}')
            _explain(traceback.format_exc())
        else:
            print(f'ok {number} - {claim}')
        sys.stdout.flush()
    return 1 if failed else 0
