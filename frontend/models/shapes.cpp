// The table of built-in shapes.
#include "frontend/models/shapes.h"

#include "frontend/models/gpt2.h"
#include "frontend/models/llama.h"

namespace heddle {

static Graph tiny(ElementType weights) {
  return llama({.width = 64,
                .layers = 2,
                .heads = 4,
                .kvHeads = 2,
                .hidden = 172,
                .words = 512,
                .context = 16384,
                .weights = weights});
}

static Graph gpt2Small(ElementType weights) {
  // As published, but that blocks run along the rows of [out, in].
  const bool isBlocks = weights != ElementType::f32 && weights != ElementType::bf16;
  return gpt2({.width = 768,
               .layers = 12,
               .heads = 12,
               .hidden = 3072,
               .words = 50257,
               .context = 1024,
               .orientation = isBlocks ? Orientation::outIn : Orientation::inOut,
               .weights = weights});
}

static Graph llama110m(ElementType weights) {
  return llama({.width = 768,
                .layers = 12,
                .heads = 12,
                .kvHeads = 12,
                .hidden = 2048,
                .words = 32000,
                .context = 32768,
                .weights = weights});
}

static Graph llama1b(ElementType weights) {
  return llama({.width = 2048,
                .layers = 22,
                .heads = 32,
                .kvHeads = 4,
                .hidden = 5632,
                .words = 32000,
                .context = 32768,
                .rotary = {.pairing = Pairing::halfSplit},
                .weights = weights});
}

static Graph mixture1b(ElementType weights) {
  return llama({.width = 1024,
                .layers = 24,
                .heads = 16,
                .kvHeads = 8,
                .words = 49152,
                .context = 4096,
                .rotary = {.pairing = Pairing::halfSplit},
                .tied = true,
                .weights = weights,
                .experts = 32,
                .expertsPerToken = 8,
                .expertHidden = 512});
}

static constexpr BuiltinShape shapes[] = {
    {"tiny", "LLaMA, 64 wide, 2 layers, 4 heads over 2, 512 words", tiny},
    {"gpt2-small", "GPT-2 of 124 million parameters", gpt2Small},
    {"llama-110m", "LLaMA of 134 million parameters, 768 wide, 12 layers", llama110m},
    {"llama-1b", "TinyLlama-1.1B's shape: 2048 wide, 22 layers, 32 heads over 4", llama1b},
    {"mixture-1b", "Granite-3.0-1B-A400M's shape: 1024 wide, 24 layers, 8 of 32 experts",
     mixture1b},
};

std::span<const BuiltinShape> builtinShapes() { return shapes; }

const BuiltinShape *findShape(std::string_view name) {
  for (const BuiltinShape &shape : shapes)
    if (shape.name == name)
      return &shape;
  return nullptr;
}

} // namespace heddle
