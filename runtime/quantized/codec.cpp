#include "runtime/quantized/codec.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace heddle::runtime {

static constexpr const BlockFormat *formats[] = {
    &q8_0Format, &q4_0Format, &q4_kFormat,   &q6_kFormat, &int8Format, &q4_1Format,
    &q5_0Format, &q5_1Format, &iq4_nlFormat, &q2_kFormat, &q3_kFormat, &q5_kFormat};

/// The longest block there is.
static constexpr int64_t longestBlock = 256;

std::span<const BlockFormat *const> blockFormats() { return formats; }

const BlockFormat *findBlockFormat(std::string_view name) {
  auto place =
      std::ranges::find_if(formats, [&](const BlockFormat *each) { return each->name == name; });
  return place == std::end(formats) ? nullptr : *place;
}

void quantiseRow(const BlockFormat &format, const float *in, int64_t width, void *row) {
  if (format.length == 0)
    return format.quantise(in, width, row);
  int64_t whole = width / format.length * format.length;
  format.quantise(in, whole, row);
  if (whole == width)
    return;
  float last[longestBlock] = {};
  std::copy(in + whole, in + width, last);
  format.quantise(last, format.length,
                  static_cast<std::byte *>(row) + whole / format.length * format.bytes);
}

void dequantiseRow(const BlockFormat &format, const void *row, int64_t width, int64_t begin,
                   int64_t count, float *out) {
  if (format.length == 0) {
    if (begin == 0 && count == width)
      return format.dequantise(row, width, out);
    std::vector<float> whole(static_cast<size_t>(width));
    format.dequantise(row, width, whole.data());
    std::copy_n(whole.begin() + begin, count, out);
    return;
  }
  auto *blocks = static_cast<const std::byte *>(row);
  for (int64_t end = begin + count; begin < end;) {
    int64_t block = begin / format.length, inside = begin % format.length;
    const std::byte *from = blocks + block * format.bytes;
    if (inside == 0 && end - begin >= format.length) {
      int64_t piece = (end - begin) / format.length * format.length;
      format.dequantise(from, piece, out);
      out += piece;
      begin += piece;
      continue;
    }
    float values[longestBlock];
    format.dequantise(from, format.length, values);
    int64_t piece = std::min(format.length - inside, end - begin);
    out = std::copy_n(values + inside, piece, out);
    begin += piece;
  }
}

} // namespace heddle::runtime
