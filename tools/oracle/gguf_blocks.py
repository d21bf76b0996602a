"""Blocks of every type of GGUF that Rondo reads, with the values that the `gguf` package gives for them.

    python3 -m venv build/oracle && build/oracle/bin/pip install numpy gguf
    build/oracle/bin/python tools/oracle/gguf_blocks.py tests/golden/gguf_blocks.gguf

The file holds, for each type, a tensor `TYPE` of 2 x 256 values (random bytes under random seed 5, scales that are finite) and
the same values as F32 under the name `TYPE.values`; also values `made` and what the package's quantisers make of them. tests/unit/blocks_test.c compares bit by bit.
"""

import sys

import gguf
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as Type
from gguf.quants import dequantize, quantize

# Where the f16 numbers of a block stand.
HALVES = {
    "F16": [0], "BF16": [], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "IQ4_NL": [0], "MXFP4": [],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
}
ROWS, WIDTH = 2, 256


def blocks(kind, halves, random):
    values, size = GGML_QUANT_SIZES[kind]
    count = ROWS * WIDTH // values
    raw = random.integers(0, 256, (count, size), dtype=np.uint8)
    for at in halves:
        scale = (random.standard_normal(count) * 10.0 ** random.integers(-6, 2, count)).astype(np.float16)
        raw[:, at : at + 2] = scale.view(np.uint8).reshape(count, 2)
    if kind == Type.MXFP4:
        raw[:, 0] = random.choice([0, 1, 2, 3, 100, 127, 128, 140, 250], count)
    if kind == Type.BF16:
        raw = (random.standard_normal(count).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    return raw.reshape(ROWS, -1)


def main(path):
    random = np.random.default_rng(5)
    writer = gguf.GGUFWriter(path, "none")
    for name, halves in HALVES.items():
        kind = Type[name]
        raw = blocks(kind, halves, random)
        values = dequantize(raw, kind)
        assert values.shape == (ROWS, WIDTH) and np.isfinite(values).all()
        writer.add_tensor(name, raw, raw_dtype=kind)
        writer.add_tensor(name + ".values", values.astype(np.float32))
    made = (random.standard_normal((ROWS, WIDTH)) * 10.0 ** random.integers(-3, 2, (ROWS, 1))).astype(np.float32)
    made[0, :32] = 0
    writer.add_tensor("made", made)
    for kind in (Type.Q8_0, Type.Q4_0):
        writer.add_tensor("made." + kind.name, quantize(made, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
