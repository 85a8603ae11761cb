#include "frontend/costs.h"

namespace heddle {

/// What came together since the last time; a long prompt is run in several calls.
static ModelledCost take(runtime::Executor &executor) {
  const runtime::Cost &cost = executor.totalCost();
  ModelledCost taken{.phases = cost.phases,
                     .bytesMoved = cost.bytes,
                     .arenaBytes = cost.arenaBytes,
                     .attentionBytes = cost.attentionBytes};
  executor.resetTotals();
  for (const runtime::StepTime &time : executor.stepTimes()) {
    if (time.calls == 0)
      continue;
    StepCost &cost = taken.steps[time.step->id];
    cost.phases += time.phases;
    cost.bytesMoved += time.bytes;
    cost.attentionBytes += time.attentionBytes;
  }
  return taken;
}

Result<ModelledCosts> costsOf(Session &session, std::span<const int32_t> ids) {
  ModelledCosts costs;
  session.reset();
  session.executor().resetTotals();
  auto logits = session.prefill(ids);
  if (!logits)
    return logits.error();
  costs.prefill = take(session.executor());
  if (!costs.prefill.steps.empty())
    session.executor().profile(true); // from 0 on
  if (session.cacheBytes() == 0)
    return costs;
  logits = session.step(ids.front());
  if (!logits)
    return logits.error();
  costs.decode = take(session.executor());
  return costs;
}

Result<ModelledCosts> modelledCosts(const Model &model, int64_t tokens, int threads) {
  auto session = model.session({.context = tokens + 1, .threads = threads});
  if (!session)
    return session.error();
  session->executor().profile(true);
  return costsOf(*session, std::vector<int32_t>(static_cast<size_t>(tokens), 0));
}

} // namespace heddle
