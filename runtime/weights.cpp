#include "runtime/weights.h"

#include "runtime/bf16.h"
#include "runtime/weight_sources.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ranges>
#include <sys/mman.h>
#include <unistd.h>

namespace heddle::runtime {
namespace {

/// Elements converted at a time where a whole parameter is made in plain layout.
constexpr int64_t plainChunk = int64_t{1} << 14;

bool isFloat(ElementType type) { return type == ElementType::f32 || type == ElementType::bf16; }

int64_t elementCount(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count = saturatingMul(count, extent);
  return count;
}

/// Bytes of a tensor in rows.
int64_t plainBytes(ElementType type, const BlockFormat *blocks, std::span<const int64_t> shape) {
  if (!blocks)
    return byteSize(type, elementCount(shape));
  return saturatingMul(elementCount(shape.first(shape.size() - 1)), blocks->rowBytes(shape.back()));
}

PanelShape panelShape(const ParamUse &use) {
  auto matrix = std::span(use.shape).last(2);
  return {.type = use.type,
          .k = matrix[use.transposed ? 1 : 0],
          .n = matrix[use.transposed ? 0 : 1],
          .experts = use.shape.size() == 3 ? use.shape[0] : 1};
}

/// Gives the whole pages of a mapped file's piece back to the page cache.
void releasePages(std::span<const std::byte> piece) {
  auto page = static_cast<uintptr_t>(getpagesize());
  auto begin = reinterpret_cast<uintptr_t>(piece.data());
  uintptr_t end = begin + piece.size();
  begin = (begin + page - 1) / page * page;
  end = end / page * page;
  if (begin < end)
    madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
}

void releasePages(const MappedParam &param) {
  int64_t bytes = param.source ? param.bytes : plainBytes(param.type, param.blocks, param.shape);
  if (param.pieces.empty())
    return releasePages({static_cast<const std::byte *>(param.data), static_cast<size_t>(bytes)});
  for (std::span<const std::byte> piece : param.pieces)
    releasePages(piece);
}

/// A parameter in blocks as it lies in memory.
std::shared_ptr<const MappedBlocks> blocksOf(const MappedParam &param) {
  const BlockFormat &format = *param.blocks;
  int64_t width = param.shape.back();
  if (param.pieces.empty())
    return std::make_shared<MappedBlocks>(format, param.data, width);
  std::vector<const std::byte *> pieces;
  for (std::span<const std::byte> piece : param.pieces)
    pieces.push_back(piece.data());
  int64_t pieceRows = static_cast<int64_t>(param.pieces.front().size()) /
                      std::max<int64_t>(format.rowBytes(width), 1);
  return std::make_shared<MappedBlocks>(format, std::move(pieces), pieceRows, width);
}

/// Whether who wants `param` as `type` gets the transposed matrix.
bool isTurned(const MappedParam &param, ElementType type) {
  return param.inOut && param.shape.size() == 2 && blockFormat(type);
}

std::string describe(ElementType type, std::span<const int64_t> shape) {
  return fmt::format("[{}] of {}", fmt::join(shape.begin(), shape.end(), ", "), typeName(type));
}

std::string describe(const MappedParam &param) {
  return fmt::format("[{}] of {}", fmt::join(param.shape, ", "),
                     param.blocks ? param.blocks->name : typeName(param.type));
}

} // namespace

int64_t preparedBytes(const ParamUse &use) {
  return use.layout == Layout::panels ? panelShape(use).bytes()
                                      : plainBytes(use.type, blockFormat(use.type), use.shape);
}

std::string_view typeName(ElementType type) {
  if (const BlockFormat *format = blockFormat(type))
    return format->name;
  switch (type) {
  case ElementType::f32:
    return "f32";
  case ElementType::bf16:
    return "bf16";
  case ElementType::i32:
    return "i32";
  case ElementType::i1:
    return "i1";
  case ElementType::f64:
    return "f64";
  default:
    return "?";
  }
}

Status WeightStore::add(std::string name, MappedParam param) {
  auto [place, isNew] = mapped.try_emplace(std::move(name), std::move(param));
  if (!isNew)
    return dataError(fmt::format("parameter {} is there twice", place->first));
  return {};
}

void WeightStore::setSpread(std::string name, Spread spread) {
  std::lock_guard lock(mutex);
  spreads.try_emplace(std::move(name), spread);
}

const MappedParam *WeightStore::find(const std::string &name) const {
  auto place = mapped.find(name);
  return place == mapped.end() ? nullptr : &place->second;
}

Result<std::shared_ptr<const ElementSource>>
WeightStore::source(const std::string &name, ElementType type,
                    std::span<const int64_t> shape) const {
  std::shared_ptr<const ElementSource> source;
  const std::string where = origin.empty() ? "" : " in " + origin;
  bool round = type == ElementType::bf16;
  if (const MappedParam *param = find(name)) {
    bool readable = param->blocks ? !param->shape.empty() : isFloat(param->type);
    bool turns = isTurned(*param, type);
    bool fits = turns ? std::ranges::equal(param->shape | std::views::reverse, shape)
                      : std::ranges::equal(param->shape, shape);
    if (!fits || !readable)
      return dataError(fmt::format("parameter {}{} is {}, expected {}", name, where,
                                   describe(*param), describe(type, shape)));
    round = round && (param->blocks || param->type != ElementType::bf16);
    if (param->blocks) {
      source = blocksOf(*param);
    } else if (param->source) {
      source = param->source;
    } else {
      source = elementsAt(param->type, param->data);
    }
    if (turns)
      source = turned(std::move(source), shape[0], shape[1]);
  } else if (madeUpSeed) {
    auto place = spreads.find(name);
    Spread spread = place == spreads.end() ? Spread::guess(name, shape) : place->second;
    source = madeUp(RandomValues(*madeUpSeed, name, spread));
  } else {
    return dataError(
        fmt::format("parameter {} is missing{}, expected {}", name, where, describe(type, shape)));
  }
  if (round)
    source = rounded(std::move(source));
  return source;
}

/// The rows of `values` in blocks; where they lie in memory in that format, just those.
std::shared_ptr<const BlockSource>
WeightStore::blockSource(const std::string &name, const BlockFormat &format,
                         std::span<const int64_t> shape,
                         std::shared_ptr<const ElementSource> values) const {
  const MappedParam *param = find(name);
  if (param && param->blocks == &format)
    return blocksOf(*param);
  return quantised(std::move(values), format, shape.back());
}

Result<ParamReader> WeightStore::reader(const std::string &name, ElementType type,
                                        std::span<const int64_t> shape) const {
  const BlockFormat *format = blockFormat(type);
  if (!isFloat(type) && !format)
    return internalError(fmt::format("parameter {} is read as numbers", name));
  std::lock_guard lock(mutex);
  auto found = source(name, type, shape);
  if (!found)
    return found.error();
  if (format && !shape.empty())
    *found =
        dequantised(blockSource(name, *format, shape, std::move(*found)), *format, shape.back());
  return ParamReader(std::move(*found));
}

const void *WeightStore::inPlace(const ParamUse &use) const {
  const MappedParam *param = find(use.name);
  bool fits = param && !param->source && param->pieces.empty() && use.layout == Layout::plain &&
              std::ranges::equal(param->shape, use.shape) &&
              (param->blocks ? param->blocks == blockFormat(use.type)
                             : param->type == use.type &&
                                   reinterpret_cast<uintptr_t>(param->data) %
                                           static_cast<uintptr_t>(byteSize(use.type, 1)) ==
                                       0);
  return fits ? param->data : nullptr;
}

Status WeightStore::check(const ParamUse &use) const {
  for (int64_t extent : use.shape)
    if (extent < 0)
      return internalError(fmt::format("parameter {} has a negative dimension", use.name));
  const BlockFormat *format = blockFormat(use.type);
  bool fits = use.layout == Layout::panels
                  ? (use.shape.size() == 2 || (use.shape.size() == 3 && use.transposed)) &&
                        (format ? use.transposed : isFloat(use.type))
                  : !format || !use.shape.empty();
  if (!fits)
    return internalError(fmt::format("parameter {}, {}, cannot be laid out so", use.name,
                                     describe(use.type, use.shape)));
  if (elementCount(use.shape) > (int64_t{1} << 58))
    return dataError(fmt::format("parameter {}, {}, is larger than can be addressed", use.name,
                                 describe(use.type, use.shape)));
  if (inPlace(use))
    return {};
  if (!isFloat(use.type) && !format) {
    const MappedParam *param = find(use.name);
    return dataError(fmt::format("parameter {} is {}, expected {}", use.name,
                                 param ? describe(*param) : "missing",
                                 describe(use.type, use.shape)));
  }
  auto found = source(use.name, use.type, use.shape);
  return found ? Status() : Status(found.error());
}

/// Rows in blocks, in panels or one after the other.
static void makeBlocks(const BlockSource &blocks, const BlockFormat &format, const ParamUse &use,
                       void *out, ThreadPool &pool) {
  if (use.layout == Layout::panels)
    return packBlocks(blocks, panelShape(use), out, pool);
  int64_t rows = elementCount(std::span(use.shape).first(use.shape.size() - 1));
  int64_t rowBytes = format.rowBytes(use.shape.back());
  int64_t strips = (rows + panelWidth - 1) / panelWidth;
  pool.run(strips, Schedule::dynamic, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin * panelWidth; row < std::min(rows, end * panelWidth);
         row += panelWidth)
      blocks.rows(row, std::min(panelWidth, rows - row),
                  static_cast<std::byte *>(out) + row * rowBytes);
  });
}

Status WeightStore::make(const ParamUse &use, void *out, ThreadPool &pool) const {
  auto found = source(use.name, use.type, use.shape);
  if (!found)
    return found.error();
  const ElementSource &values = **found;
  if (const BlockFormat *format = blockFormat(use.type)) {
    auto blocks = blockSource(use.name, *format, use.shape, *found);
    makeBlocks(*blocks, *format, use, out, pool);
    if (const auto value = blocks->beyond())
      return dataError(fmt::format("parameter {}{} holds {}, which {} cannot keep (its largest is "
                                   "{}); f32 can",
                                   use.name, origin.empty() ? "" : " in " + origin, *value,
                                   format->name, format->largest));
  } else if (use.layout == Layout::panels) {
    packPanels(values, panelShape(use), use.transposed, out, pool);
  } else {
    int64_t count = elementCount(use.shape);
    int64_t chunks = (count + plainChunk - 1) / plainChunk;
    pool.run(chunks, Schedule::dynamic, [&](int64_t begin, int64_t end, int) {
      float buffer[plainChunk / 16];
      int64_t last = std::min(count, end * plainChunk);
      for (int64_t at = begin * plainChunk; at < last;) {
        int64_t piece = std::min<int64_t>(last - at, std::size(buffer));
        if (use.type == ElementType::f32) {
          values.read(at, piece, static_cast<float *>(out) + at);
        } else {
          values.read(at, piece, buffer);
          for (int64_t i = 0; i < piece; ++i)
            static_cast<uint16_t *>(out)[at + i] = toBf16(buffer[i]);
        }
        at += piece;
      }
    });
  }
  if (const MappedParam *param = find(use.name); param && param->file)
    releasePages(*param);
  return {};
}

/// Makes the forms of `uses` that are not there yet, and notes these in `fresh`.
Result<Lent> WeightStore::prepare(std::span<const ParamUse> uses, ThreadPool &pool,
                                  const WeightProgressFn &progress, Forms &fresh) const {
  struct Job {
    const ParamUse *use;
    Key key;
    int64_t offset;
  };
  std::vector<Job> jobs;
  std::vector<Key> keys;
  int64_t total = 0, made = 0;
  for (const ParamUse &use : uses) {
    if (Status status = check(use); !status)
      return status.error();
    keys.emplace_back(use.name, use.type, use.shape, use.layout,
                      use.layout == Layout::panels && use.transposed);
    if (prepared.contains(keys.back()) || fresh.contains(keys.back()))
      continue;
    const void *data = inPlace(use);
    int64_t bytes = preparedBytes(use);
    fresh[keys.back()] = {data, bytes};
    if (data)
      continue;
    jobs.push_back({&use, keys.back(), total});
    total = saturatingAdd(total, roundUp(bytes, bufferAlignment));
    made += bytes;
  }
  // One mapping for all that is new, so that small parameters share pages and large ones huge
  // pages. A parameter without elements gets an address too.
  Result<Region> region = Region::allocate(jobs.empty() ? 0 : saturatingAdd(total, bufferAlignment),
                                           Region::Pages::huge, "preparing the weights");
  if (!region)
    return region.error();
  int64_t done = 0;
  for (const Job &job : jobs) {
    Prepared &entry = fresh[job.key];
    entry.data = region->data() + job.offset;
    if (Status status = make(*job.use, region->data() + job.offset, pool); !status)
      return status.error();
    done += entry.bytes;
    if (progress)
      progress({job.use->name, done, made});
  }
  Lent lent{{}, std::move(*region)};
  for (const Key &key : keys) {
    auto made = fresh.find(key);
    lent.addresses.push_back(made == fresh.end() ? prepared.at(key).data : made->second.data);
  }
  return lent;
}

Result<std::vector<const void *>> WeightStore::bind(std::span<const ParamUse> uses,
                                                    ThreadPool &pool,
                                                    const WeightProgressFn &progress) {
  std::lock_guard lock(mutex);
  Forms fresh;
  auto lent = prepare(uses, pool, progress, fresh);
  if (!lent)
    return lent.error();
  regions.push_back(std::move(lent->memory));
  prepared.merge(fresh);
  return std::move(lent->addresses);
}

Result<Lent> WeightStore::lend(std::span<const ParamUse> uses, ThreadPool &pool,
                               const WeightProgressFn &progress) {
  std::lock_guard lock(mutex);
  Forms notKept;
  return prepare(uses, pool, progress, notKept);
}

int64_t WeightStore::bytes() const {
  std::lock_guard lock(mutex);
  int64_t sum = 0;
  for (const auto &[key, entry] : prepared)
    sum += entry.bytes;
  return sum;
}

int64_t WeightStore::ownedBytes() const {
  std::lock_guard lock(mutex);
  int64_t sum = 0;
  for (const Region &region : regions)
    sum += region.size();
  return sum;
}

} // namespace heddle::runtime
