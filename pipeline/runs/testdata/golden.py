"""Writes golden.safetensors and mixed.safetensors with the safetensors package from PyPI.

pip install safetensors==0.8.0 numpy; python golden.py
With a file as argument it prints name, shape and sum of each tensor instead.
"""
import sys

import numpy as np
from safetensors.numpy import load_file, save_file

if len(sys.argv) > 1:
    for name, tensor in sorted(load_file(sys.argv[1]).items()):
        print(name, str(tensor.dtype), list(tensor.shape), float(tensor.astype(np.float64).sum()))
    sys.exit()

save_file(
    {
        "actor.0.weight": np.arange(12, dtype=np.float32).reshape(4, 3) / 8,
        "actor.0.bias": np.array([-1.5, 0.0, 3.25], dtype=np.float32),
        "scalar": np.array(7, dtype=np.float32),
        "empty": np.zeros((0, 5), dtype=np.float32),
    },
    "golden.safetensors",
    metadata={"made_by": "safetensors"},
)
save_file(
    {"weight": np.ones((2, 2), dtype=np.float32), "steps": np.array([1, 2, 3], dtype=np.int64)},
    "mixed.safetensors",
)
