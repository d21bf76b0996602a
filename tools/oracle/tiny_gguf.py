"""tests/golden/tiny.gguf: a llama of two layers with random weights in Q8_0 and a vocabulary of bytes, for tests of GGUF files.

    python3 tools/oracle/tiny_gguf.py tests/golden/tiny.gguf        needs gguf and numpy
"""

import sys

import numpy as np
from gguf import GGUFWriter, GGMLQuantizationType
from gguf.quants import quantize

EMBED, FFN, HEADS, KV, LAYERS = 32, 64, 4, 2, 2


def bytes_alphabet():
    """GPT-2's letters for the 256 bytes, in the order of the bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return [chr(b) if b in plain else chr(256 + [c for c in range(256) if c not in plain].index(b)) for b in range(256)]


def main(path):
    random = np.random.default_rng(7)
    out = GGUFWriter(path, "llama")
    out.add_name("tiny")
    out.add_context_length(256)
    out.add_embedding_length(EMBED)
    out.add_block_count(LAYERS)
    out.add_feed_forward_length(FFN)
    out.add_head_count(HEADS)
    out.add_head_count_kv(KV)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_rope_freq_base(10000.0)
    out.add_rope_dimension_count(EMBED // HEADS)
    out.add_file_type(7)
    tokens = [*bytes_alphabet(), "th", "<|start|>", "<|end|>"]
    out.add_vocab_size(len(tokens))
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    out.add_token_list(tokens)
    out.add_token_types([1] * 257 + [3, 3])
    out.add_token_merges(["t h"])
    out.add_bos_token_id(257)
    out.add_eos_token_id(258)
    out.add_chat_template("{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}<|end|>{% endfor %}")

    def matrix(name, rows, width):
        values = (random.standard_normal((rows, width)) * 1.5 / width**0.5).astype(np.float32)
        out.add_tensor(name, quantize(values, GGMLQuantizationType.Q8_0), raw_dtype=GGMLQuantizationType.Q8_0)

    def vector(name):
        out.add_tensor(name, (1 + 0.1 * random.standard_normal(EMBED)).astype(np.float32))

    matrix("token_embd.weight", len(tokens), EMBED)
    vector("output_norm.weight")
    for layer in range(LAYERS):
        at = f"blk.{layer}."
        for name, rows, width in [("attn_q", EMBED, EMBED), ("attn_k", EMBED // HEADS * KV, EMBED), ("attn_v", EMBED // HEADS * KV, EMBED),
                                  ("attn_output", EMBED, EMBED), ("ffn_gate", FFN, EMBED), ("ffn_up", FFN, EMBED), ("ffn_down", EMBED, FFN)]:
            matrix(f"{at}{name}.weight", rows, width)
        vector(at + "attn_norm.weight")
        vector(at + "ffn_norm.weight")
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
