"""A language model of about 35,000 random weights, as a GGUF file: enough to see how a real server treats our requests.

Its text means nothing. Every byte is a token, so it can read any prompt and write any JSON. A random model seldom ends
a string or a list, so the characters that do so are made more likely than others; a grammar decides where they fit.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.float32]

WIDTH = 32
HEADS = 2
LAYERS = 2
INNER = 64
CONTEXT = 65_536
SEED = 42
SMALL, LARGE = 0.25, 4.0
"""Scales of the weights of what a layer adds, and of the output."""

SPECIAL = ("<unk>", "<s>", "</s>")
SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
"""How this kind of tokenizer writes a space; without this token, a space would be read as the three bytes of it."""
TOKENS = (*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), SPACE)
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6
"""Kinds of tokens, as GGUF numbers them."""

FAVORED = {'"': 12.0, "{": 8.0, "]": 5.0, "}": 5.0}
"""What is added to the logits of some characters: a string ends at once, and a list has one object if it may have one."""
END = 3.0
"""What is added to the logit of the token that ends the text."""

TEMPLATE = (
    "{% for message in messages %}{{ message['role'] + ': ' + message['content'] + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
)


def write_model(path: Path) -> None:
    """Write the model; the same bytes every time. Needs the package `gguf`."""
    gguf: Any = importlib.import_module("gguf")
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny random model")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(list(TOKENS))
    writer.add_token_scores([0.0] * len(TOKENS))
    writer.add_token_types([_UNKNOWN, _CONTROL, _CONTROL, *[_BYTE] * 256, _NORMAL])
    writer.add_unk_token_id(SPECIAL.index("<unk>"))
    writer.add_bos_token_id(SPECIAL.index("<s>"))
    writer.add_eos_token_id(SPECIAL.index("</s>"))
    writer.add_add_space_prefix(False)
    writer.add_chat_template(TEMPLATE)
    for name, values in _tensors().items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _tensors() -> dict[str, Weights]:
    draw = np.random.default_rng(SEED)

    def random(rows: int, columns: int, scale: float = 1.0) -> Weights:
        return draw.standard_normal((rows, columns), dtype=np.float32) * np.float32(scale / columns**0.5)

    ones: Weights = np.ones(WIDTH, dtype=np.float32)
    embedding = random(len(TOKENS), WIDTH)
    # The first coordinate is the same for every token and much larger than the others, so its place in the output
    # matrix works as a constant added to a token's logit. After the last norm it is close to the root of WIDTH.
    embedding[:, 0] = 8.0
    output = random(len(TOKENS), WIDTH, LARGE)
    output[:, 0] = 0.0
    added = {len(SPECIAL) + ord(character): value for character, value in FAVORED.items()}
    for token, value in {**added, SPECIAL.index("</s>"): END}.items():
        output[token, 0] = value / WIDTH**0.5
    tensors: dict[str, Weights] = {"token_embd.weight": embedding, "output_norm.weight": ones, "output.weight": output}
    for layer in range(LAYERS):
        parts: dict[str, Weights] = {
            **dict.fromkeys(("attn_norm", "ffn_norm"), ones),
            **{f"attn_{part}": random(WIDTH, WIDTH) for part in ("q", "k", "v")},
            **{f"ffn_{part}": random(INNER, WIDTH) for part in ("gate", "up")},
            # What a layer adds is small, so that the first coordinate stays the largest.
            "attn_output": random(WIDTH, WIDTH, SMALL),
            "ffn_down": random(WIDTH, INNER, SMALL),
        }
        tensors |= {f"blk.{layer}.{name}.weight": values for name, values in parts.items()}
    return tensors
