"""The readers under atheris (pip install atheris), which looks for bytes that reach new places in their code.

python -m tests.fuzz.with_atheris snn -runs=100000
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path


def main() -> None:
    """Fuzz one reader; the rest of the command line is libFuzzer's."""
    import atheris

    with atheris.instrument_imports(include=["ftbc", "tomllib", "pickletools", "safetensors"]):
        from tests.fuzz.readers import READERS, check, real_files

    name = sys.argv.pop(1)
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        for number, content in enumerate(real_files(name)):
            (corpus / str(number)).write_bytes(content)
        atheris.Setup([*sys.argv, str(corpus)], lambda content: check(READERS[name], content, Path(folder)))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
