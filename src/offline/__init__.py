"""The offline judge: deterministic rules that answer the same requests as a judge model."""
