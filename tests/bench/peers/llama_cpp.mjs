// Times llama.cpp as the Node package node-llama-cpp carries it, on the processor alone, and prints the
// seconds as JSON. Every measurement is made once before, for warmth.
//
//   node llama_cpp.mjs '{"modules", "model", "threads", "prompt_tokens", "gen_tokens", "reps"}'
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import path from 'node:path';

const asked = JSON.parse(process.argv[2]);
const require = createRequire(path.join(asked.modules, 'anything.js'));
const { getLlama } = await import(pathToFileURL(require.resolve('node-llama-cpp')));

const llama = await getLlama({
  gpu: false, build: 'never', maxThreads: asked.threads, logLevel: 'error', progressLogs: false,
});
const model = await llama.loadModel({ modelPath: asked.model, gpuLayers: 0 });
const context = await model.createContext({
  contextSize: Math.max(...asked.prompt_tokens) + asked.gen_tokens + 16,
  batchSize: 512,
  threads: asked.threads,
  flashAttention: true,
});
const sequence = context.getSequence();
const words = Math.min(model.fileInfo.metadata?.tokenizer?.ggml?.tokens?.length || 32000, 32000);
const someIds = count => Array.from({ length: count }, () => 3 + Math.floor(Math.random() * (words - 3)));
const feed = ids => sequence.evaluateWithoutGeneratingNewTokens(ids);

async function repeated(prepare, work) {
  const seconds = [];
  for (let round = 0; round <= asked.reps; ++round) {
    await sequence.clearHistory();
    await prepare();
    const start = performance.now();
    await work();
    if (round > 0)
      seconds.push((performance.now() - start) / 1e3);
  }
  return seconds;
}

const result = { prefill: {} };
for (const tokens of asked.prompt_tokens)
  result.prefill[tokens] = await repeated(() => {}, () => feed(someIds(tokens)));
result.decode = await repeated(() => feed(someIds(asked.prompt_tokens[0])), async () => {
  for (let i = 0; i < asked.gen_tokens; ++i)
    await feed(someIds(1));
});
console.log(JSON.stringify(result));
process.exit(0);
