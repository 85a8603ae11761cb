// What the options of a compilation come to: fusions, a processor, what measurement declines.
#include "frontend/compiler/driver.h"

#include "codegen/jit/machine.h"

namespace heddle {

int64_t ChoiceTable::bound(std::string_view isa) {
  auto target = codegen::findTarget(isa);
  return target ? codegen::decodeRows(*target) : 0;
}

/// Empty: what of the shapes of tiny and llama-110m lost on AVX2, a better kernel cured.
const ChoiceTable &ChoiceTable::builtin() {
  static const ChoiceTable table;
  return table;
}

namespace detail {

Result<Choices> choose(const CompileOptions &options) {
  std::string why;
  passes::FusionSet forced;
  auto fusions = passes::FusionSet::parse(options.fuse.value_or("all"), why, &forced);
  if (failed(fusions))
    return usageError("--fuse: " + why);
  auto target = codegen::selectTarget(options.isa.value_or("native"));
  if (!target)
    return usageError("--isa: " + target.error().message);
  if (options.plan)
    for (const Choice &choice : options.plan->choices())
      if (const passes::Stage *stage = passes::findStage(choice.fusion); !stage || !stage->isFusion)
        return dataError((options.plan->name().empty() ? "--plan" : options.plan->name()) +
                         ": unknown fusion '" + choice.fusion + "'");
  return Choices{*fusions, forced, *target, options.plan};
}

int64_t decodeTokens(const Choices &choices, const CompileOptions &options) {
  return options.decodeTokens.value_or(codegen::decodeRows(choices.target));
}

std::vector<passes::Declined> Choices::declined(Phase phase) const {
  const ChoiceTable &choices = table ? *table : ChoiceTable::builtin();
  bool few = phase == Phase::decode;
  std::vector<passes::Declined> declined;
  for (const Choice &choice : choices.choices())
    if (choice.isa == target.name && !(few ? choice.fewFused : choice.manyFused) &&
        fusions.has(choice.fusion) && !forced.has(choice.fusion))
      declined.push_back({choice.fusion, choice.shape, whyUnfused(choice, few)});
  return declined;
}

} // namespace detail
} // namespace heddle
