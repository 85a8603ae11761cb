// Compiled with -Ofast -march=native; see tests/bench/CMakeLists.txt.
#include "tests/bench/plain/llama_loops.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

namespace heddle::bench {

namespace {

/// to[n] = sum over k of matrix[n][k] * from[k].
void product(float *to, const float *from, const float *matrix, int64_t rows, int64_t depth) {
  for (int64_t n = 0; n < rows; ++n) {
    float sum = 0;
    for (int64_t k = 0; k < depth; ++k)
      sum += matrix[n * depth + k] * from[k];
    to[n] = sum;
  }
}

void rmsNorm(float *to, const float *from, const float *weight, int64_t width) {
  float squares = 0;
  for (int64_t i = 0; i < width; ++i)
    squares += from[i] * from[i];
  float scale = 1 / std::sqrt(squares / float(width) + 1e-5f);
  for (int64_t i = 0; i < width; ++i)
    to[i] = weight[i] * (scale * from[i]);
}

void softmax(float *row, int64_t count) {
  float largest = row[0];
  for (int64_t i = 1; i < count; ++i)
    largest = row[i] > largest ? row[i] : largest;
  float sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += row[i] = std::exp(row[i] - largest);
  for (int64_t i = 0; i < count; ++i)
    row[i] /= sum;
}

void rotate(float *heads, int64_t width, int64_t headWidth, const float *cosines,
            const float *sines) {
  for (int64_t i = 0; i < width; i += 2) {
    float a = heads[i], b = heads[i + 1];
    float cosine = cosines[i % headWidth / 2], sine = sines[i % headWidth / 2];
    heads[i] = a * cosine - b * sine;
    heads[i + 1] = a * sine + b * cosine;
  }
}

} // namespace

LlamaLoops::LlamaLoops(std::vector<float> bytes) : file(std::move(bytes)) {
  int32_t header[7];
  std::memcpy(header, file.data(), sizeof header);
  width = header[0], hidden = header[1], layers = header[2], heads = header[3], kvHeads = header[4];
  words = std::abs(header[5]), positions = header[6], headWidth = width / heads;
  int64_t kvWidth = kvHeads * headWidth;
  const float *next = file.data() + 7;
  auto take = [&](int64_t count) {
    const float *first = next;
    next += count;
    return first;
  };
  embedding = take(words * width);
  attentionNorm = take(layers * width);
  query = take(layers * width * width);
  key = take(layers * kvWidth * width);
  value = take(layers * kvWidth * width);
  output = take(layers * width * width);
  mlpNorm = take(layers * width);
  gate = take(layers * hidden * width);
  down = take(layers * width * hidden);
  up = take(layers * hidden * width);
  finalNorm = take(width);
  cosines = take(positions * headWidth / 2);
  sines = take(positions * headWidth / 2);
  classifier = header[5] > 0 ? embedding : next;
  for (std::vector<float> *row : {&x, &normed, &q, &mixed, &projected})
    row->resize(size_t(width));
  gated.resize(size_t(hidden));
  raised.resize(size_t(hidden));
  scores.resize(size_t(positions));
  logits.resize(size_t(words));
  keys.resize(size_t(layers * positions * kvWidth));
  values.resize(keys.size());
}

const float *LlamaLoops::forward(int32_t token, int64_t position) {
  int64_t kvWidth = kvHeads * headWidth, half = headWidth / 2;
  std::memcpy(x.data(), embedding + token * width, size_t(width) * sizeof(float));
  for (int64_t layer = 0; layer < layers; ++layer) {
    rmsNorm(normed.data(), x.data(), attentionNorm + layer * width, width);
    float *layerKeys = keys.data() + layer * positions * kvWidth;
    float *layerValues = values.data() + layer * positions * kvWidth;
    float *k = layerKeys + position * kvWidth;
    product(q.data(), normed.data(), query + layer * width * width, width, width);
    product(k, normed.data(), key + layer * kvWidth * width, kvWidth, width);
    product(layerValues + position * kvWidth, normed.data(), value + layer * kvWidth * width,
            kvWidth, width);
    rotate(q.data(), width, headWidth, cosines + position * half, sines + position * half);
    rotate(k, kvWidth, headWidth, cosines + position * half, sines + position * half);

    for (int64_t head = 0; head < heads; ++head) {
      int64_t shared = head / (heads / kvHeads) * headWidth;
      for (int64_t p = 0; p <= position; ++p) {
        float sum = 0;
        for (int64_t i = 0; i < headWidth; ++i)
          sum += q[size_t(head * headWidth + i)] * layerKeys[p * kvWidth + shared + i];
        scores[size_t(p)] = sum / std::sqrt(float(headWidth));
      }
      softmax(scores.data(), position + 1);
      float *to = mixed.data() + head * headWidth;
      for (int64_t i = 0; i < headWidth; ++i)
        to[i] = 0;
      for (int64_t p = 0; p <= position; ++p)
        for (int64_t i = 0; i < headWidth; ++i)
          to[i] += scores[size_t(p)] * layerValues[p * kvWidth + shared + i];
    }
    product(projected.data(), mixed.data(), output + layer * width * width, width, width);
    for (int64_t i = 0; i < width; ++i)
      x[size_t(i)] += projected[size_t(i)];

    rmsNorm(normed.data(), x.data(), mlpNorm + layer * width, width);
    product(gated.data(), normed.data(), gate + layer * hidden * width, hidden, width);
    product(raised.data(), normed.data(), up + layer * hidden * width, hidden, width);
    for (int64_t i = 0; i < hidden; ++i) {
      float z = gated[size_t(i)];
      gated[size_t(i)] = z / (1 + std::exp(-z)) * raised[size_t(i)];
    }
    product(projected.data(), gated.data(), down + layer * width * hidden, width, hidden);
    for (int64_t i = 0; i < width; ++i)
      x[size_t(i)] += projected[size_t(i)];
  }
  rmsNorm(x.data(), x.data(), finalNorm, width);
  product(logits.data(), x.data(), classifier, words, width);
  return logits.data();
}

int32_t LlamaLoops::best() const {
  size_t best = 0;
  for (size_t i = 1; i < logits.size(); ++i)
    if (logits[i] > logits[best])
      best = i;
  return int32_t(best);
}

} // namespace heddle::bench
