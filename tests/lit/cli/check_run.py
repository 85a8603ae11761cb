"""check_run.py JSON TEXT: what `heddle run --json` says of a text of 200 tokens."""
import json
import sys

result = json.load(open(sys.argv[1]))
assert result["text"] == open(sys.argv[2]).read(), result["text"]
assert len(result["ids"]) == 200 and result["ending"] == "tokens", result
for part, tokens in (("prompt", 1), ("after_first", 199)):
    speed = result["speed"][part]
    assert speed["tokens"] == tokens and speed["seconds"] > 0, speed
    assert abs(speed["tokens_per_second"] * speed["seconds"] / tokens - 1) < 1e-3, speed
