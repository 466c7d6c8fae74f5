"""Rules about everything that is not C++ in particular: names, sizes, words, scripts, YAML."""

import json
import os
import re
import subprocess

import yaml

from source_files import ROOT, Finding

LONGEST = 450  # lines; about 400 is the aim


def length(files):
    """no source file has more than 450 lines"""
    for file in files:
        is_source = file.is_cpp or file.is_python or file.is_shell or file.path.endswith('meson.build')
        if is_source and len(file.lines) > LONGEST:
            yield Finding(file.path, len(file.lines), f'has {len(file.lines)} lines, more than {LONGEST}: it has a second '
                          'reason to change; split it along that')


# In pieces, so that this file does not hold what it looks for.
UNFINISHED = re.compile(r'\b(' + '|'.join(('TO' 'DO', 'FIX' 'ME', 'X' 'XX', 'HA' 'CK')) + r')\b')


def unfinished(files):
    """nothing says of itself that it is unfinished"""
    for file in files:
        for number, line in enumerate(file.lines if file.is_text else (), 1):
            mark = UNFINISHED.search(line)
            if mark:
                yield Finding(file.path, number, f"'{mark.group(0)}': do it now, or file an issue and say here what holds")


VAGUE = re.compile(r'util|common|helper|manager', re.IGNORECASE)


def vague_names(files):
    """file names are words of the domain"""
    for file in files:
        mark = VAGUE.search(file.path)
        if mark:
            yield Finding(file.path, 0, f"'{mark.group(0)}' in its name tells a reader nothing; name what it holds")


MACHINE_PATH = re.compile(r'(?<![\w.~}$)-])/(?:work|home|root)/\w|\.' r'library/')


def machine_paths(files):
    """no path of one developer's machine"""
    for file in files:
        for number, line in enumerate(file.lines if file.is_text else (), 1):
            mark = MACHINE_PATH.search(line)
            if mark:
                yield Finding(file.path, number, f"'{mark.group(0)}...' is on one machine only; make it relative to the clone")


def conf_tells_exit_code(files):
    """each conf/*.yaml begins with a comment that names its exit code"""
    for file in files:
        if file.path.startswith('conf/') and file.suffix in ('.yaml', '.yml'):
            if not file.lines or not re.match(r'# Exits [0-4]\b', file.lines[0]):
                yield Finding(file.path, 1, 'must begin with "# Exits N. What it shows.", N being the exit code of a run')


def shellcheck(files):
    """shellcheck finds nothing in shell scripts"""
    scripts = [file.path for file in files if file.is_shell]
    if scripts:
        done = subprocess.run(['shellcheck', '--format=json', *scripts], cwd=ROOT, capture_output=True, text=True)
        for note in json.loads(done.stdout or '[]'):
            yield Finding(note['file'], note['line'], f"SC{note['code']}: {note['message']}")


def python_compiles(files):
    """Python files compile, and run as Debian's /usr/bin/python3"""
    for file in files:
        if not file.is_python:
            continue
        try:
            compile(file.data, file.path, 'exec')
        except SyntaxError as error:
            yield Finding(file.path, error.lineno or 0, f'{error.msg}')
        if file.interpreter and file.lines[0] != '#!/usr/bin/python3':
            yield Finding(file.path, 1, f'begins with {file.lines[0]}; scripts begin with #!/usr/bin/python3')


def shell_is_strict(files):
    """shell scripts run under bash with errexit, nounset and pipefail"""
    for file in files:
        if file.is_shell and 'set -euo pipefail' not in file.lines:
            yield Finding(file.path, 1, 'has no line "set -euo pipefail"')


def _is_meant_to_be_broken(file):
    """tests/config/bad holds files that no YAML parser takes; those that one takes are checked like any other."""
    if not file.path.startswith('tests/config/bad/'):
        return False
    try:
        yaml.safe_load(file.data)
    except yaml.YAMLError:
        return True
    return False


def yamllint(files):
    """yamllint finds nothing in YAML files"""
    paths = [file.path for file in files if file.suffix in ('.yaml', '.yml') and not _is_meant_to_be_broken(file)]
    if paths:
        done = subprocess.run(['yamllint', '--strict', '--format', 'parsable', '-c', '.yamllint', *paths], cwd=ROOT,
                              capture_output=True, text=True)
        for path, line, text in re.findall(r'^(.+?):(\d+):\d+: (.*)$', done.stdout, re.MULTILINE):
            yield Finding(path, int(line), text)
        if done.returncode and not done.stdout:
            yield Finding('.yamllint', 0, done.stderr.strip()[:200])


def executable_bits(files):
    """what begins with #! is executable, and nothing else is"""
    for file in files:
        executable = os.access(file.where, os.X_OK)
        if bool(file.interpreter) != executable:
            change = '+x' if file.interpreter else '-x'
            yield Finding(file.path, 0, f"{'is no' if executable else 'is a'} script by its first line; run: chmod {change} "
                          f'{file.path}')


RULES = (length, unfinished, vague_names, machine_paths, conf_tells_exit_code, shellcheck, shell_is_strict, python_compiles,
         yamllint, executable_bits)
