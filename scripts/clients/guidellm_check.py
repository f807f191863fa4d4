# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests `serve` with guidellm: short benchmarks of synthetic text, as completions and as chats. Every request must be
answered completely, with the requested number of tokens."""
import argparse
import json
import os
import pathlib
import subprocess

parser = argparse.ArgumentParser()
for name in ("guidellm", "url", "tokenizer", "folder"):
    parser.add_argument(f"--{name}", required=True)
a = parser.parse_args()

for api in ("/v1/completions", "/v1/chat/completions"):
    report = pathlib.Path(a.folder) / "benchmarks.json"
    command = [
        a.guidellm, "run", "--disable-console-interactive",
        "--backend", f"kind=openai_http,target={a.url},api_key=check,request_format={api}",
        "--tokenizer", f"kind=huggingface_auto,model={a.tokenizer}",
        "--data", "kind=synthetic_text,prompt_tokens=48,output_tokens=24",
        "--profile", "kind=concurrent,streams=8", "--constraint", "kind=max_requests,count=64",
        "--output", f"kind=json,path={report}"]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    if run.returncode != 0 or not report.exists():
        raise SystemExit(f"guidellm failed\n{run.stdout[-3000:]}\n{run.stderr[-3000:]}")
    metrics = json.loads(report.read_text())["benchmarks"][0]["metrics"]
    totals = metrics["request_totals"]
    tokens = metrics["output_token_count"]["successful"]
    assert totals["successful"] == 64 and totals["errored"] == 0, totals
    assert tokens["min"] == tokens["max"] == 24, tokens
    ttft = metrics["time_to_first_token_ms"]["successful"]["median"]
    itl = metrics["inter_token_latency_ms"]["successful"]["median"]
    print(f"guidellm {api}: 64 answers of 24 tokens, median TTFT {ttft:.1f} ms, ITL {itl:.2f} ms")
