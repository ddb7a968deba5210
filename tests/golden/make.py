"""Small seeded releases of every method, as checksums: a refactoring shows here that it changed no bit.

    python tests/golden/make.py            # print
    python tests/golden/make.py --write    # rewrite golden.json

Everything is computed in one process whose environment keeps libraries from choosing code by the processor.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

GOLDEN = Path(__file__).with_name("golden.json")
KEPT = ("HOME", "LANG", "LD_LIBRARY_PATH", "NUMBA_CACHE_DIR", "PATH", "PYTHONPATH", "TMPDIR", "VIRTUAL_ENV")
PINNED = {
    "PYTHONHASHSEED": "0",
    # One thread: sums in one order.
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    # Code that all processors have: torch, its MKL and oneDNN, OpenBLAS, numpy, and the C library's exp and log.
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_CBWR": "COMPATIBLE",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "OPENBLAS_CORETYPE": "Prescott",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-FMA,-FMA4",
    # No GPU.
    "CUDA_VISIBLE_DEVICES": "",
}


def environment():
    """Of the process that computes: what is pinned, and what it needs to run at all."""
    return {name: os.environ[name] for name in KEPT if name in os.environ} | PINNED


def made():
    """All entries, by name."""
    from questions import questions
    from releases import releases

    from methods import methods

    with tempfile.TemporaryDirectory() as place:
        return releases(Path(place)) | methods() | questions()


def main():
    if any(os.environ.get(name) != value for name, value in PINNED.items()):
        # Libraries read these when they are loaded, so this process starts over.
        os.execve(sys.executable, [sys.executable, str(Path(__file__).resolve()), *sys.argv[1:]], environment())
    text = json.dumps(made(), indent=1, sort_keys=True) + "\n"
    if "--write" in sys.argv[1:]:
        GOLDEN.write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
