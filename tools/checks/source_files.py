"""The files that are checked, and how a rule says what it found."""

import pathlib
import re
import subprocess
from dataclasses import dataclass, field
from functools import cached_property

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int  # from 1; 0: the file as a whole
    text: str  # what is wrong, and what to do

    def __str__(self):
        return f'{self.path}:{self.line}: {self.text}' if self.line else f'{self.path}: {self.text}'


@dataclass
class SourceFile:
    path: str  # relative to the clone, with slashes
    where: pathlib.Path = field(repr=False)

    @cached_property
    def data(self):
        return self.where.read_bytes()

    @cached_property
    def is_text(self):
        return b'\0' not in self.data

    @cached_property
    def lines(self):
        return self.data.decode('utf-8', 'replace').splitlines()

    @property
    def suffix(self):
        return pathlib.PurePath(self.path).suffix

    @cached_property
    def interpreter(self):
        """`bash`, `python3`, ... of a script's first line; empty where it has none."""
        first = self.lines[0] if self.is_text and self.lines else ''
        return re.split(r'[/ ]', first.strip())[-1] if first.startswith('#!') else ''

    @property
    def is_cpp(self):
        return self.suffix in ('.h', '.cc', '.c')

    @property
    def is_python(self):
        return self.suffix == '.py' or self.interpreter.startswith('python')

    @property
    def is_shell(self):
        return self.suffix == '.sh' or self.interpreter in ('bash', 'sh')

    def includes(self):
        """(line number, name) of each #include."""
        for number, line in enumerate(self.lines, 1):
            mark = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
            if mark:
                yield number, mark.group(1)

    @cached_property
    def code(self):
        """The lines with comments and the insides of string literals blanked, so that only code is looked at."""
        text = '\n'.join(self.lines)
        tokens = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
        return re.sub(tokens, _blank, text, flags=re.DOTALL).split('\n')


def _blank(mark):
    token = mark.group(0)
    if token[0] in '"\'':
        return token[0] * 2
    return '\n' * token.count('\n')


def source_files():
    """Every file of the project: what git tracks or would, or, without git, what is there and no build made."""
    try:
        listed = subprocess.run(['git', '-c', f'safe.directory={ROOT}', 'ls-files', '-z', '--cached', '--others',
                                 '--exclude-standard'], cwd=ROOT, check=True, capture_output=True).stdout
        names = [name for name in listed.decode().split('\0') if name]
    except (OSError, subprocess.CalledProcessError):
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob('*')
                 if not re.match(r'(\.git|build[^/]*)/|.*__pycache__/', str(path.relative_to(ROOT)) + '/')]
    files = [SourceFile(name, ROOT / name) for name in sorted(set(names))]
    return [file for file in files if file.where.is_file() and not file.where.is_symlink()]
