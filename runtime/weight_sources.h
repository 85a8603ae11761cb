// Where the values of weights come from: memory in some type, a seed, or other sources.
#pragma once

#include "runtime/packing.h"
#include "runtime/random.h"

#include <memory>
#include <vector>

namespace heddle::runtime {

/// Reads f32 or bf16 values at `data`, at any address.
std::shared_ptr<const ElementSource> elementsAt(ElementType type, const void *data);

/// A matrix that lies in memory in blocks, in one piece or in several of `pieceRows` rows each.
class MappedBlocks final : public BlockSource, public ElementSource {
public:
  MappedBlocks(const BlockFormat &format, const void *data, int64_t width);
  MappedBlocks(const BlockFormat &format, std::vector<const std::byte *> pieces, int64_t pieceRows,
               int64_t width);
  void rows(int64_t first, int64_t count, void *out) const override;
  void read(int64_t begin, int64_t count, float *out) const override;

private:
  const std::byte *rowAt(int64_t index) const;

  const BlockFormat &format;
  int64_t width, rowBytes;
  std::vector<const std::byte *> pieces;
  int64_t pieceRows = 0; ///< 0: there is one piece
};

/// What a seed makes of a name.
std::shared_ptr<const ElementSource> madeUp(RandomValues values);

/// The values of another source as bf16 holds them.
std::shared_ptr<const ElementSource> rounded(std::shared_ptr<const ElementSource> source);

/// A `[columns, rows]` source as `[rows, columns]`. It reads whole rows best when asked for
/// `turnedTogether` of them at once.
std::shared_ptr<const ElementSource> turned(std::shared_ptr<const ElementSource> source,
                                            int64_t rows, int64_t columns);
constexpr int64_t turnedTogether = panelWidth;

/// The values of another source, `width` in a row, in blocks.
std::shared_ptr<const BlockSource> quantised(std::shared_ptr<const ElementSource> source,
                                             const BlockFormat &format, int64_t width);

/// The values that blocks stand for.
std::shared_ptr<const ElementSource> dequantised(std::shared_ptr<const BlockSource> source,
                                                 const BlockFormat &format, int64_t width);

} // namespace heddle::runtime
