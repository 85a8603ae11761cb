"""check_bench.py <file> <prompt tokens> <new tokens> <batch> <dtype> checks the JSON of heddle bench."""
import json
import sys

path, prompts, tokens, batch, dtype = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    result = json.load(file)
assert [entry["tokens"] for entry in result["prefill"]] == [int(n) for n in prompts.split(",")], result
for entry in result["prefill"]:
    assert entry["tokens_per_second"] > 0 and entry["spread"] >= 0, entry
    assert abs(entry["share_of_peak"] - entry["gflops"] / entry["limit"]) < 1e-3, entry
    assert (entry["share_of_peak"] > 1) == entry.get("over_limit", False), entry
    # Two multiply-adds a weight and token, the output product and the last layer's network for one token of each
    # sequence, and the causal half of attention: widths of 64, 4 heads over 2, 172 hidden, 512 words.
    n = entry["tokens"]
    network = 3 * 172 * 64
    layer = 64 * 64 + 2 * 32 * 64 + 64 * 64 + network
    flops = 2 * (2 * layer - network) * n + 2 * (512 * 64 + network) + 2 * 4 * 2 * (16 + 16) * n * (n + 1) / 2
    rate = flops * entry["tokens_per_second"] / n * 1e-9
    assert abs(rate / entry["gflops"] - 1) < 1e-3, (rate, entry)
decode = result["decode"]
assert decode["tokens"] == int(tokens) and decode["tokens_per_second"] > 0, decode
size = 2 if dtype == "bf16" else 4
weights = (2 * layer + 512 * 64) * size + 5 * 64 * 4  # norms are f32; the embedding is apart
rate = weights * decode["tokens_per_second"] / int(batch) * 1e-9
assert abs(rate / decode["gbytes_per_second"] - 1) < 1e-3, (rate, decode)
assert decode["share_of_bandwidth"] > 0, decode
assert result["first_token_ms"] > 0
assert result["compile"]["cold_ms"] > 0 and result["compile"]["kernels"] > 0, result["compile"]
assert result["compile"]["compiles"] == 1, result["compile"]
for name in ("weights_bytes", "kv_bytes", "arena_bytes", "peak_rss_bytes"):
    assert result["memory"][name] > 0, result["memory"]
for name in ("f32_gflops", "bf16_gflops", "int8_gops", "read_gbytes_per_second"):
    assert name in result["machine"], result["machine"]
assert result["dtype"] == dtype and result["isa"] and result["threads"] >= 1, result
