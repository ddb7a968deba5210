"""The GPU's kernel without a GPU: Triton's interpreter runs it on the processor. It must be asked for before Triton is loaded."""

import os

os.environ["TRITON_INTERPRET"] = "1"
