"""Everything that packet memory is to reach, row by row: times, rates, bytes, and what else a handler owes."""

import sys

import buffer_times
import contracts
import forwarding
import hugepages
import memory_rows
import table
import testpmd

ABOUT = 'packet memory: times, testpmd, bytes and contracts of page_frag and exact_frag against stock, a quarter of an hour'
ROUNDS = 21  # at least
HUGE_PAGES = 600


def sections(options):
    """(title, what gives the lines) of each section that has a row holding the text which is asked for."""
    text = options.row or ''
    rounds = max(options.rounds, ROUNDS)

    def chosen(section):
        return [row for row in section.rows() if text in row.name]

    if rows := chosen(buffer_times):
        yield buffer_times.TITLE, lambda: buffer_times.run(rows, rounds)
    if rows_forwarding := chosen(forwarding):
        yield forwarding.TITLE, lambda: forwarding.run(rows_forwarding, rounds)
    yield memory_rows.TITLE, lambda: memory_rows.run(text)
    if rows_contracts := chosen(contracts):
        yield contracts.TITLE, lambda: contracts.run(rows_contracts)


def run(options):
    lines = []
    try:
        with hugepages.held(HUGE_PAGES):
            for title, measure in sections(options):
                found = measure()
                if found:
                    table.show(found, title)
                lines += found
    except testpmd.TestpmdError as error:
        print(f'bench: {error}', file=sys.stderr)
        return 1
    if not lines:
        print(f'bench: no row holds {options.row!r}', file=sys.stderr)
        return 2
    return table.close(lines)
