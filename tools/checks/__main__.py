"""tools/check: runs every rule, prints each finding as file:line: what is wrong and what to do."""

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import cpp_rules
import text_rules
from source_files import ROOT, source_files

RULES = (*text_rules.RULES, *cpp_rules.RULES)


def arguments():
    parser = argparse.ArgumentParser(prog='tools/check', description='Looks for what a compiler cannot see. Exit code: 0 '
                                     'when nothing was found, 1 otherwise, 2 for wrong usage.')
    parser.add_argument('--list', action='store_true', help='print the rules and check nothing')
    parser.add_argument('--rule', metavar='NAME', action='append', choices=[rule.__name__ for rule in RULES],
                        help='only this rule; may be given again')
    parser.add_argument('--tidy', action='store_true', help='run clang-tidy as well (minutes; needs build/ from tools/build)')
    return parser.parse_args()


def tidy(files):
    """clang-tidy, with .clang-tidy's checks, finds nothing"""
    sources = [file.path for file in files if file.suffix == '.cc' and not file.path.startswith('tests/')]
    command = ['clang-tidy', '--quiet', '-p', 'build', '--warnings-as-errors=*']
    with ThreadPoolExecutor(cpp_rules.JOBS) as pool:
        runs = pool.map(lambda path: subprocess.run([*command, path], cwd=ROOT, capture_output=True, text=True), sources)
        for path, done in zip(sources, runs):
            if done.returncode:
                yield f'{path}: clang-tidy:\n{done.stdout.strip() or done.stderr.strip()}'


def main():
    options = arguments()
    rules = [rule for rule in RULES if not options.rule or rule.__name__ in options.rule]
    if options.list:
        print('\n'.join(f'{rule.__name__}: {rule.__doc__}' for rule in rules))
        return 0
    if options.tidy:
        if not os.path.exists(ROOT / 'build' / 'compile_commands.json'):
            print('check: --tidy needs build/compile_commands.json; run tools/build first', file=sys.stderr)
            return 2
        rules.append(tidy)
    files = source_files()
    count = 0
    for rule in rules:
        findings = sorted(set(rule(files)))
        count += len(findings)
        for finding in findings:
            print(f'{finding}  [{rule.__name__}]')
    print(f'check: {len(rules)} rules, {count} findings')
    return 1 if count else 0


if __name__ == '__main__':
    sys.exit(main())
