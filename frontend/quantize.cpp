#include "frontend/quantize.h"

#include "frontend/formats/quote.h"
#include "frontend/weight_mix.h"
#include "runtime/bf16.h"
#include "runtime/f16.h"
#include "runtime/quantized/codec.h"
#include "runtime/weight_sources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>

namespace heddle {

namespace {

/// Values quantised at a time: what is read, made and written together stays in the caches.
constexpr int64_t chunkValues = int64_t{1} << 20;

int64_t widthOf(const GgufSource &source) {
  return source.header.shape.empty() ? 1 : source.header.shape.back();
}
int64_t rowsOf(const GgufSource &source) {
  return elementCount(source.header.shape) / widthOf(source);
}

const Storage &storageOf(uint32_t number) { return *findGgmlStorage(number); }

/// The type that `source` is to have, if it can.
const Storage *wanted(const GgufSource &source, const FileType &type, const ModelConfig &config) {
  const bool isOutput = source.parameter == "output" ||
                        (config.tiedEmbedding && source.parameter == "token_embedding");
  const ElementType element = weightType(*type.storage).value_or(ElementType::f32);
  const bool finer = isFiner({element, type.mixed}, source.parameter, isOutput, config.layers);
  return finer ? &storageOf(ggml::q6_K) : type.storage;
}

/// What to take where `type` does not do: always one that loses less.
const Storage *next(const Storage *type) {
  if (type->blockElements == 256)
    return &storageOf(ggml::q8_0);
  return type->blockElements > 1 ? &bf16Storage : &f32Storage;
}

/// The largest value that can be stored as `type`.
float largestOf(const Storage *type) {
  constexpr float largestBf16 = 0x1.fep127f;
  if (type == &f32Storage)
    return std::numeric_limits<float>::max();
  if (type == &bf16Storage)
    return largestBf16;
  const auto element = weightType(*type);
  const runtime::BlockFormat *blocks = element ? runtime::blockFormat(*element) : nullptr;
  return blocks ? blocks->largest : runtime::largestF16;
}

/// Calls `visit(first, count, values, worker)` for rows [0, rows) from `from` on, a few at a time.
template <class Visit>
void readRows(const GgufSource &source, int64_t from, int64_t rows, runtime::ThreadPool &pool,
              Visit visit) {
  constexpr int64_t together = runtime::turnedTogether;
  const int64_t width = widthOf(source);
  pool.run((rows + together - 1) / together, runtime::Schedule::dynamic,
           [&](int64_t begin, int64_t end, int worker) {
             std::vector<float> values(static_cast<size_t>(std::min(rows, together) * width));
             for (int64_t strip = begin; strip < end; ++strip) {
               const int64_t first = strip * together, count = std::min(together, rows - first);
               source.values->read((from + first) * width, count * width, values.data());
               visit(first, count, values.data(), worker);
             }
           });
}

/// The largest magnitude of `source`; infinite or NaN if a value is.
float largestValue(const GgufSource &source, runtime::ThreadPool &pool) {
  auto larger = [](float most, float value) {
    return std::isnan(value) || std::isnan(most) ? NAN : std::max(most, std::abs(value));
  };
  const int64_t width = widthOf(source), rows = rowsOf(source);
  std::vector<float> largest(static_cast<size_t>(pool.workers()));
  readRows(source, 0, rows, pool, [&](int64_t, int64_t count, const float *values, int worker) {
    float &most = largest[static_cast<size_t>(worker)];
    most = std::accumulate(values, values + count * width, most, larger);
  });
  return std::accumulate(largest.begin(), largest.end(), 0.0f, larger);
}

/// A row of values as `type`.
void convertRow(const Storage *type, const float *values, int64_t width, std::byte *out) {
  if (const runtime::BlockFormat *format = codecOf(*type)) {
    quantiseRow(*format, values, width, out);
  } else if (type == &f32Storage) {
    std::memcpy(out, values, size_t(width) * sizeof(float));
  } else {
    for (int64_t i = 0; i < width; ++i) {
      const uint16_t bits =
          type == &bf16Storage ? runtime::toBf16(values[i]) : runtime::toF16(values[i]);
      std::memcpy(out + i * int64_t(sizeof(bits)), &bits, sizeof(bits));
    }
  }
}

/// Rows [first, first + count) of `source` as `type`.
void convert(const GgufSource &source, const Storage *type, int64_t first, int64_t count,
             std::byte *out, runtime::ThreadPool &pool) {
  const int64_t width = widthOf(source), rowBytes = width / type->blockElements * type->blockBytes;
  readRows(source, first, count, pool, [&](int64_t begin, int64_t rows, const float *values, int) {
    for (int64_t row = 0; row < rows; ++row)
      convertRow(type, values + row * width, width, out + (begin + row) * rowBytes);
  });
}

/// Whether the data of a tensor can be written as they are.
bool isCopied(const GgufSource &source, const GgufTensorHeader &header) {
  return header.type == source.header.type && !source.stored.empty();
}

} // namespace

std::span<const FileType> fileTypes() {
  static const FileType types[] = {
      {"q8_0", &storageOf(ggml::q8_0), false, 7},   {"q4_0", &storageOf(ggml::q4_0), true, 2},
      {"q4_k_m", &storageOf(ggml::q4_K), true, 15}, {"q4_k", &storageOf(ggml::q4_K), false, 14},
      {"q6_k", &storageOf(ggml::q6_K), false, 18},  {"bf16", &bf16Storage, false, 32},
      {"f16", &storageOf(ggml::f16), false, 1},
  };
  return types;
}

const FileType *findFileType(std::string_view name) {
  const auto types = fileTypes();
  const auto found = std::ranges::find(types, name, &FileType::name);
  return found == types.end() ? nullptr : &*found;
}

Status Quantizer::decide(const GgufSource &source, runtime::ThreadPool &pool) {
  QuantizedTensor tensor{
      .header = source.header, .from = std::string(source.header.type->name), .reason = {}};
  if (!source.isBulk()) {
    if (source.stored.empty())
      tensor.header.type = &f32Storage;
    planned.push_back(std::move(tensor));
    return {};
  }
  const Storage *asked = wanted(source, *options.type, model.checkpoint->config), *type = asked;
  tensor.header.type = type;
  if (isCopied(source, tensor.header)) {
    planned.push_back(std::move(tensor));
    return {};
  }
  const float largest = largestValue(source, pool);
  const int64_t width = source.header.shape.back();
  if (!std::isfinite(largest))
    return dataError(fmt::format("{}: tensor {} holds a value that is not finite, which no type "
                                 "keeps beside others",
                                 model.checkpoint->path, inQuotes(source.header.name)));
  for (; width % type->blockElements != 0 || largest > largestOf(type); type = next(type)) {
    if (!tensor.reason.empty())
      continue;
    tensor.reason =
        width % type->blockElements != 0
            ? fmt::format("rows of {} values are no whole blocks of {}", width, type->blockElements)
            : fmt::format("it holds {}, beyond the {} of {}", largest, largestOf(type), type->name);
    if (!options.fallback)
      return dataError(fmt::format("{}: tensor {} [{}] cannot be {}: {}; without --no-fallback it "
                                   "gets another type",
                                   model.checkpoint->path, inQuotes(source.header.name),
                                   fmt::join(source.header.shape, ", "), asked->name,
                                   tensor.reason));
  }
  tensor.header.type = type;
  if (!tensor.reason.empty())
    tensor.reason = fmt::format("not {}: {}", asked->name, tensor.reason);
  planned.push_back(std::move(tensor));
  return {};
}

Result<Quantizer> Quantizer::open(const std::string &path, const QuantizeOptions &options,
                                  const QuantizeProgressFn &progress) {
  auto model = openAsGguf(path, options.opening, options.tokenizer);
  if (!model)
    return model.error();
  constexpr uint32_t quantizationVersion = 2; // llama.cpp's GGML_QNT_VERSION
  model->keys.u32("general.quantization_version", quantizationVersion);
  model->keys.u32("general.file_type", options.type->number);
  Quantizer quantizer(*std::move(model), options);
  runtime::ThreadPool pool(options.threads);
  const auto &tensors = quantizer.model.tensors;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (progress)
      progress("reading " + tensors[i].header.name, int64_t(i), std::ssize(tensors));
    if (Status decided = quantizer.decide(tensors[i], pool); !decided)
      return decided.error();
  }
  return quantizer;
}

int64_t Quantizer::bytesBefore() const {
  int64_t sum = 0;
  for (const GgufSource &tensor : model.tensors)
    sum += int64_t(tensor.header.bytes());
  return sum;
}

int64_t Quantizer::bytesAfter() const {
  int64_t sum = 0;
  for (const QuantizedTensor &tensor : planned)
    sum += int64_t(tensor.header.bytes());
  return sum;
}

Status Quantizer::write(const WriteFn &write, const QuantizeProgressFn &progress) const {
  std::vector<GgufTensorHeader> headers;
  for (const QuantizedTensor &tensor : planned)
    headers.push_back(tensor.header);
  const std::string header = ggufHeader(model.keys, headers, model.alignment);
  if (Status written = write(std::as_bytes(std::span(header))); !written)
    return written;
  runtime::ThreadPool pool(options.threads);
  const int64_t total = bytesAfter();
  int64_t done = 0;
  auto put = [&](std::span<const std::byte> bytes, const std::string &name) {
    done += std::ssize(bytes);
    if (progress)
      progress("writing " + name, done, total);
    return write(bytes);
  };
  for (size_t i = 0; i < headers.size(); ++i) {
    const GgufSource &source = model.tensors[i];
    const auto size = int64_t(headers[i].bytes());
    if (isCopied(source, headers[i])) {
      for (const std::span<const std::byte> piece : source.stored)
        if (Status written = put(piece, headers[i].name); !written)
          return written;
    } else {
      const int64_t rows = rowsOf(source);
      const int64_t together = std::clamp<int64_t>(chunkValues / widthOf(source), 1, rows);
      std::vector<std::byte> bytes(static_cast<size_t>(size / rows * together));
      for (int64_t row = 0; row < rows; row += together) {
        const int64_t count = std::min(together, rows - row);
        convert(source, headers[i].type, row, count, bytes.data(), pool);
        if (Status written = put(std::span(bytes).first(static_cast<size_t>(size / rows * count)),
                                 headers[i].name);
            !written)
          return written;
      }
    }
    const std::vector<std::byte> padding(ggufPadding(uint64_t(size), model.alignment));
    if (Status written = write(padding); !written)
      return written;
  }
  return {};
}

} // namespace heddle
