// Opens a trained model and lets it write: checkpoint, graph, code, session, text.
#include "frontend/heddle.h"
#include "frontend/models/checkpoint_model.h"

#include <cstdio>

using namespace heddle;

static int fail(const Error &error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 2)
    return fail(usageError("usage: example_tell_story CHECKPOINT [PROMPT]"));
  auto checkpoint = openCheckpoint(argv[1]);
  if (!checkpoint)
    return fail(checkpoint.error());
  auto weights = checkpointWeights(*checkpoint);
  auto tokenizer = findTokenizer(argv[1], checkpoint->config.vocabulary);
  if (!weights || !tokenizer)
    return fail(!weights ? weights.error() : tokenizer.error());
  if (!tokenizer->tokenizer)
    return fail(dataError(tokenizer->whyNone));

  auto model = compile(graphOf(*checkpoint), {}, *weights);
  if (!model)
    return fail(model.error());
  auto session = model->session();
  if (!session)
    return fail(session.error());
  auto told =
      generateText(*session, *tokenizer->tokenizer, argc > 2 ? argv[2] : "",
                   {.tokens = 200, .sampling = {.temperature = 0}}, [](std::string_view text) {
                     std::fwrite(text.data(), 1, text.size(), stdout);
                     return std::fflush(stdout) == 0;
                   });
  return told ? 0 : fail(told.error());
}
