// Times onnxruntime as the Node package onnxruntime-node carries it, and prints the seconds as JSON. Every
// measurement is made once before, for warmth. The model takes `ids` [1, T], one `past_key` and
// `past_value` [1, heads, P, d] for all layers, `seqlens_k` and `total`: what GroupQueryAttention
// asks for. A step of decode finds as many positions in them as there are before the first.
//
//   node onnxruntime.mjs '{"modules", "model", "threads", "prompt_tokens", "gen_tokens", "reps"}'
import { createRequire } from 'node:module';
import path from 'node:path';

const asked = JSON.parse(process.argv[2]);
const ort = createRequire(path.join(asked.modules, 'anything.js'))('onnxruntime-node');

const session = await ort.InferenceSession.create(asked.model, {
  intraOpNumThreads: asked.threads, interOpNumThreads: 1, graphOptimizationLevel: 'all',
});
const [, heads, , width] = session.inputMetadata.find(input => input.name === 'past_key').shape;

function arguments_(tokens, past) {
  const entries = () => new ort.Tensor(
    'float32', Float32Array.from({ length: heads * past * width }, () => Math.random() * 2 - 1),
    [1, heads, past, width]);
  const ids = BigInt64Array.from({ length: tokens }, () => BigInt(3 + Math.floor(Math.random() * 31997)));
  return {
    ids: new ort.Tensor('int64', ids, [1, tokens]),
    past_key: entries(),
    past_value: entries(),
    seqlens_k: new ort.Tensor('int32', Int32Array.of(tokens + past - 1), [1]),
    total: new ort.Tensor('int32', Int32Array.of(tokens + past), []),
  };
}

async function repeated(tokens, past, times) {
  const seconds = [], feeds = arguments_(tokens, past);
  for (let round = 0; round <= asked.reps; ++round) {
    const start = performance.now();
    for (let i = 0; i < times; ++i)
      await session.run(feeds);
    if (round > 0)
      seconds.push((performance.now() - start) / 1e3);
  }
  return seconds;
}

const result = { prefill: {} };
for (const tokens of asked.prompt_tokens)
  result.prefill[tokens] = await repeated(tokens, 0, 1);
result.decode = await repeated(1, asked.prompt_tokens[0], asked.gen_tokens);
console.log(JSON.stringify(result));
process.exit(0);
