// Panels of weights in quantised formats: 16 columns side by side, as the kernels multiply them.
//
// The integers of a column stand in fours along k, one 32-bit lane of a vector: `[16][4]` bytes, a
// quad. Signed ones are stored with 128 added, for the instruction takes unsigned weights; nibbles
// and 6-bit parts stay packed as in GGUF, whose order within a block makes the low halves one part
// of the block's k and the high halves another. The scales of the 16 columns precede the quads of
// their block. So a panel is one stream, of the size it has in a file (Q4_K: 2.8 % more, for its
// 6-bit scales become bytes; int8: what pads K to 32).
#pragma once

#include "runtime/program.h"

namespace heddle::runtime {

inline constexpr int64_t quadBytes = 64;

/// 32 k: `[16]` f16 scales, `[8][16][4]` bytes plus 128.
namespace q8_0Panel {
inline constexpr int64_t length = 32, scales = 0, quads = 32, bytes = quads + 8 * quadBytes;
}
/// 32 k: `[16]` f16 scales, `[4][16][4]` pairs of nibbles: k in the low ones, k + 16 in the high.
namespace q4_0Panel {
inline constexpr int64_t length = 32, scales = 0, quads = 32, bytes = quads + 4 * quadBytes;
}
/// 256 k: `[16]` f16 scales, `[16]` f16 minima, `[8][16]` byte scales of 32 k each, `[4][16][2]`
/// byte minima, `[32][16][4]` pairs of nibbles: of each 64 k the first 32 low, the others high.
namespace q4_kPanel {
inline constexpr int64_t length = 256, scales = 0, minima = 32, partScales = 64, partMinima = 192,
                         quads = 320, bytes = quads + 32 * quadBytes;
}
/// 256 k: `[16]` f16 scales, `[16][16]` signed byte scales of 16 k each, then four groups of four
/// parts that share bytes, the scales in the same order. Group `2h + v` has the parts `8h + 2q + v`
/// along k, for q from 0 to 3: `[4][3][16][4]`, of every quad the low nibbles of q = 0 (in the high
/// ones: 2), of q = 1 (3), and the high pairs of bits of all four.
namespace q6_kPanel {
inline constexpr int64_t length = 256, scales = 0, partScales = 32, quads = 288,
                         groupBytes = 12 * quadBytes, bytes = quads + 4 * groupBytes;
}
/// All k: `[16]` f32 scales, then `[K/4][16][4]` bytes plus 128, K padded to 32.
namespace int8Panel {
inline constexpr int64_t scales = 0, quads = 64, padding = 32;
}

/// Bytes of a panel over `k` terms.
int64_t blockPanelBytes(ElementType type, int64_t k);

/// Packs 16 rows of a format, one after the other, into a panel.
void packBlockPanel(ElementType type, int64_t k, const uint8_t *rows, uint8_t *out);

} // namespace heddle::runtime
