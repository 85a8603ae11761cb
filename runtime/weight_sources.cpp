#include "runtime/weight_sources.h"

#include "runtime/bf16.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

namespace heddle::runtime {
namespace {

class MappedF32 final : public ElementSource {
public:
  explicit MappedF32(const void *data) : data(static_cast<const std::byte *>(data)) {}
  void read(int64_t begin, int64_t count, float *out) const override {
    std::memcpy(out, data + begin * 4, static_cast<size_t>(count) * 4);
  }

private:
  const std::byte *data;
};

class MappedBf16 final : public ElementSource {
public:
  explicit MappedBf16(const void *data) : data(static_cast<const std::byte *>(data)) {}
  void read(int64_t begin, int64_t count, float *out) const override {
    for (int64_t i = 0; i < count; ++i) {
      uint16_t bits;
      std::memcpy(&bits, data + (begin + i) * 2, 2);
      out[i] = fromBf16(bits);
    }
  }

private:
  const std::byte *data;
};

class MadeUp final : public ElementSource {
public:
  explicit MadeUp(RandomValues values) : values(values) {}
  void read(int64_t begin, int64_t count, float *out) const override {
    values.read(begin, count, out);
  }

private:
  RandomValues values;
};

class Rounded final : public ElementSource {
public:
  explicit Rounded(std::shared_ptr<const ElementSource> source) : source(std::move(source)) {}
  void read(int64_t begin, int64_t count, float *out) const override {
    source->read(begin, count, out);
    for (int64_t i = 0; i < count; ++i)
      out[i] = fromBf16(toBf16(out[i]));
  }

private:
  std::shared_ptr<const ElementSource> source;
};

class Turned final : public ElementSource {
public:
  Turned(std::shared_ptr<const ElementSource> source, int64_t rows, int64_t columns)
      : source(std::move(source)), rows(rows), columns(columns) {}
  void read(int64_t begin, int64_t count, float *out) const override {
    for (const int64_t end = begin + count; begin < end;) {
      const int64_t row = begin / columns, column = begin % columns;
      const int64_t whole = column == 0 ? std::min((end - begin) / columns, turnedTogether) : 0;
      const int64_t piece = whole > 0 ? whole * columns : std::min(columns - column, end - begin);
      readStrip(row, std::max<int64_t>(whole, 1), column, whole > 0 ? columns : piece, out);
      begin += piece;
      out += piece;
    }
  }

private:
  /// `wide` entries of `high` rows, one row after the other: what lies side by side in the source
  /// is read at once.
  void readStrip(int64_t row, int64_t high, int64_t column, int64_t wide, float *out) const {
    float side[turnedTogether];
    for (int64_t i = 0; i < wide; ++i) {
      source->read((column + i) * rows + row, high, side);
      for (int64_t j = 0; j < high; ++j)
        out[j * wide + i] = side[j];
    }
  }

  std::shared_ptr<const ElementSource> source;
  int64_t rows, columns;
};

class Quantised final : public BlockSource {
public:
  Quantised(std::shared_ptr<const ElementSource> source, const BlockFormat &format, int64_t width)
      : source(std::move(source)), format(format), width(width) {}
  void rows(int64_t first, int64_t count, void *out) const override {
    std::vector<float> values(static_cast<size_t>(count * width));
    source->read(first * width, count * width, values.data());
    for (const float value : values)
      if (!(std::fabs(value) <= format.largest)) // nor a NaN
        found.store(value, std::memory_order_relaxed);
    for (int64_t i = 0; i < count; ++i)
      quantiseRow(format, values.data() + i * width, width,
                  static_cast<std::byte *>(out) + i * format.rowBytes(width));
  }
  std::optional<float> beyond() const override {
    const float value = found.load(std::memory_order_relaxed);
    return value == 0 ? std::nullopt : std::optional(value);
  }

private:
  mutable std::atomic<float> found = 0; ///< a value beyond the format, or 0
  std::shared_ptr<const ElementSource> source;
  const BlockFormat &format;
  int64_t width;
};

class Dequantised final : public ElementSource {
public:
  Dequantised(std::shared_ptr<const BlockSource> source, const BlockFormat &format, int64_t width)
      : source(std::move(source)), format(format), width(width) {}
  void read(int64_t begin, int64_t count, float *out) const override {
    std::vector<std::byte> row(static_cast<size_t>(format.rowBytes(width)));
    for (const int64_t end = begin + count; begin < end;) {
      const int64_t inside = begin % width, piece = std::min(width - inside, end - begin);
      source->rows(begin / width, 1, row.data());
      dequantiseRow(format, row.data(), width, inside, piece, out);
      out += piece;
      begin += piece;
    }
  }

private:
  std::shared_ptr<const BlockSource> source;
  const BlockFormat &format;
  int64_t width;
};

} // namespace

MappedBlocks::MappedBlocks(const BlockFormat &format, const void *data, int64_t width)
    : MappedBlocks(format, {static_cast<const std::byte *>(data)}, 0, width) {}

MappedBlocks::MappedBlocks(const BlockFormat &format, std::vector<const std::byte *> pieces,
                           int64_t pieceRows, int64_t width)
    : format(format), width(width), rowBytes(format.rowBytes(width)), pieces(std::move(pieces)),
      pieceRows(pieceRows) {}

void MappedBlocks::rows(int64_t first, int64_t count, void *out) const {
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(static_cast<std::byte *>(out) + i * rowBytes, rowAt(first + i),
                static_cast<size_t>(rowBytes));
}

void MappedBlocks::read(int64_t begin, int64_t count, float *out) const {
  for (const int64_t end = begin + count; begin < end;) {
    const int64_t inside = begin % width, piece = std::min(width - inside, end - begin);
    dequantiseRow(format, rowAt(begin / width), width, inside, piece, out);
    out += piece;
    begin += piece;
  }
}

const std::byte *MappedBlocks::rowAt(int64_t index) const {
  return pieceRows ? pieces[static_cast<size_t>(index / pieceRows)] + index % pieceRows * rowBytes
                   : pieces.front() + index * rowBytes;
}

std::shared_ptr<const ElementSource> elementsAt(ElementType type, const void *data) {
  if (type == ElementType::bf16)
    return std::make_shared<MappedBf16>(data);
  return std::make_shared<MappedF32>(data);
}

std::shared_ptr<const ElementSource> madeUp(RandomValues values) {
  return std::make_shared<MadeUp>(values);
}

std::shared_ptr<const ElementSource> rounded(std::shared_ptr<const ElementSource> source) {
  return std::make_shared<Rounded>(std::move(source));
}

std::shared_ptr<const ElementSource> turned(std::shared_ptr<const ElementSource> source,
                                            int64_t rows, int64_t columns) {
  return std::make_shared<Turned>(std::move(source), rows, columns);
}

std::shared_ptr<const BlockSource> quantised(std::shared_ptr<const ElementSource> source,
                                             const BlockFormat &format, int64_t width) {
  return std::make_shared<Quantised>(std::move(source), format, width);
}

std::shared_ptr<const ElementSource> dequantised(std::shared_ptr<const BlockSource> source,
                                                 const BlockFormat &format, int64_t width) {
  return std::make_shared<Dequantised>(std::move(source), format, width);
}

} // namespace heddle::runtime
