// The weights of a model: named parameters from mapped memory or made up from a seed, given to
// kernels in the type and layout they want.
#pragma once

#include "runtime/memory.h"
#include "runtime/packing.h"
#include "runtime/parallel.h"
#include "runtime/program.h"
#include "runtime/random.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace heddle::runtime {

/// "f32", "bf16", "q8_0" and so on.
std::string_view typeName(ElementType type);

/// A parameter as somebody else holds it: dense, row-major, little endian, at any address; or in
/// another form that `source` reads.
struct MappedParam {
  ElementType type =
      ElementType::f32; ///< with `source`: one that holds its values; unused with `blocks`
  std::vector<int64_t> shape;
  const void *data = nullptr;
  std::shared_ptr<const ElementSource> source = nullptr;
  int64_t bytes = 0; ///< at `data`, of a source
  /// Of a source: where else it reads, `data` among it. Of blocks: as many rows each, in order.
  std::vector<std::span<const std::byte>> pieces = {};
  /// If set: the data are rows of this format, each `blocks->rowBytes(shape.back())` bytes.
  const BlockFormat *blocks = nullptr;
  /// Whether `shape` is a product's `[in, out]`. Blocks run along the rows of `[out, in]`: who asks
  /// for the parameter in blocks gets the transposed matrix. Not of parameters in blocks.
  bool inOut = false;
  /// Whether the memory is a mapping of a file that nobody has written to: then its pages are given
  /// back once they have been packed.
  bool file = false;
};

/// How far the preparing of weights has come.
struct WeightProgress {
  std::string_view name; ///< the parameter that is ready now
  int64_t done = 0;      ///< bytes
  int64_t total = 0;
};
/// Called on the binding thread; it must not call the store.
using WeightProgressFn = std::function<void(const WeightProgress &)>;

/// Reads a parameter's values piece by piece without preparing it: for the reference, which
/// converts weights row by row.
class ParamReader {
public:
  /// Elements [begin, begin + count), as f32; rounded first if the declared type is bf16, and with
  /// the values of its blocks if it is a quantised format.
  void read(int64_t begin, int64_t count, float *out) const { source->read(begin, count, out); }

private:
  friend class WeightStore;
  explicit ParamReader(std::shared_ptr<const ElementSource> source) : source(std::move(source)) {}
  std::shared_ptr<const ElementSource> source;
};

/// Bytes of a parameter in the form that `use` asks for, which must be one that WeightStore makes.
int64_t preparedBytes(const ParamUse &use);

/// Parameters as `WeightStore::bind` gives them, some of them in `memory`: good as long as both
/// live.
struct Lent {
  std::vector<const void *> addresses;
  Region memory;
};

/// Keeps the parameters of one model. Filled first; then shared by its programs and sessions, and
/// safe to bind from several threads. What it hands out is good as long as it lives.
class WeightStore {
public:
  /// Names memory that holds a parameter. Error: the name is taken.
  Status add(std::string name, MappedParam param);

  /// Keeps `owner` (of mapped memory) alive as long as the store.
  void keep(std::shared_ptr<const void> owner) { owners.push_back(std::move(owner)); }

  /// Where the memory is from, a file for example: named in errors.
  void setOrigin(std::string name) { origin = std::move(name); }

  /// Parameters without memory of their own are made up from `seed` from now on.
  void makeUp(uint64_t seed) { madeUpSeed = seed; }

  /// What the made-up values of `name` are like, instead of `Spread::guess`; what is said first
  /// holds.
  void setSpread(std::string name, Spread spread);

  /// Whether memory was added under this name.
  const MappedParam *find(const std::string &name) const;

  /// The parameters in the wanted types and layouts, in order. What is not there yet is made, by
  /// `pool`'s workers, straight from the source; mapped values of the wanted type in plain layout
  /// are used where they are. f32, bf16 and blocks convert into each other; blocks of the wanted
  /// format stay as they are. Errors name the parameter:
  /// missing, another shape, another type; or the memory it would take.
  Result<std::vector<const void *>> bind(std::span<const ParamUse> uses, ThreadPool &pool,
                                         const WeightProgressFn &progress = {});

  /// The same for something that runs once: what is made for it is not kept.
  Result<Lent> lend(std::span<const ParamUse> uses, ThreadPool &pool,
                    const WeightProgressFn &progress = {});

  /// A reader of a parameter declared with this type and shape. Errors as for `bind`.
  Result<ParamReader> reader(const std::string &name, ElementType type,
                             std::span<const int64_t> shape) const;

  /// Bytes of all weights bound so far, in the form the kernels read; and of these, bytes of memory
  /// made for them.
  int64_t bytes() const;
  int64_t ownedBytes() const;

private:
  /// What tells one prepared form of a parameter from another.
  using Key = std::tuple<std::string, ElementType, std::vector<int64_t>, Layout, bool>;
  struct Prepared {
    const void *data = nullptr;
    int64_t bytes = 0;
  };

  using Forms = std::map<Key, Prepared>;

  Result<Lent> prepare(std::span<const ParamUse> uses, ThreadPool &pool,
                       const WeightProgressFn &progress, Forms &fresh) const;
  Result<std::shared_ptr<const ElementSource>> source(const std::string &name, ElementType type,
                                                      std::span<const int64_t> shape) const;
  std::shared_ptr<const BlockSource> blockSource(const std::string &name, const BlockFormat &format,
                                                 std::span<const int64_t> shape,
                                                 std::shared_ptr<const ElementSource> values) const;
  Status check(const ParamUse &use) const;
  const void *inPlace(const ParamUse &use) const;
  Status make(const ParamUse &use, void *out, ThreadPool &pool) const;

  std::map<std::string, MappedParam, std::less<>> mapped;
  std::optional<uint64_t> madeUpSeed;
  std::string origin;
  std::vector<std::shared_ptr<const void>> owners;

  mutable std::mutex mutex; // guards what follows
  std::map<std::string, Spread, std::less<>> spreads;
  Forms prepared;
  std::vector<Region> regions;
};

} // namespace heddle::runtime
