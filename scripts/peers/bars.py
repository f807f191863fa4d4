# SPDX-License-Identifier: GPL-3.0-or-later
"""The speed ratios that Meshwright has to reach, by work, peer and class of processor."""

DECODE = {"avx2": 1.1, "avx512": 1.1, "avx512_vnni": 1.1}
F32_PREFILL = {"avx2": 1.1, "avx512": 1.1, "bf16": 1.1}
BARS = {
    **{(f"decode-{dtype}-{rows}", "llama.cpp"): DECODE for dtype in ("bf16", "int8") for rows in (1, 16)},
    ("prefill", "llama.cpp"): {"avx2": 1.3, "bf16": 2.2},
    ("prefill", "PyTorch"): {"avx2": 1.1, "bf16": 1.4, "amx": 1},
    ("prefill", "OpenVINO"): {"avx2": 1.25, "bf16": 1.25},
    ("lora-all", "PyTorch"): {"avx2": 1.3, "bf16": 2, "amx": 1},
    **{("prefill-f32", peer): F32_PREFILL for peer in ("PyTorch", "OpenVINO")},
    ("lora-all-f32", "PyTorch"): {"avx2": 1.4, "avx512": 1.4, "bf16": 1.4},
}


def bar(results, work, peer):
    """Returns the ratio for results of bench.py, or None. AVX-512 BF16 is what `native` means where it was measured."""
    native = results["class"] == "native" and results["machine"]["bf16_flops"]
    kind = "bf16" if native or results["class"] == "avx512_bf16" else results["class"]
    return BARS.get((work, peer), {}).get(kind)
