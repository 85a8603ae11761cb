#include "tests/unit/compiler/plain_decoder.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace heddle::test {

namespace {

using Rows = std::vector<Vector>;

class PlainDecoder {
public:
  PlainDecoder(const PlainFamily &family, const PlainTensors &tensors)
      : family(family), tensors(tensors) {}

  Vector run(const std::vector<int32_t> &ids) {
    const PlainTensor &table = tensors.at("model.embed_tokens.weight");
    Rows x;
    for (int32_t id : ids) {
      Vector row(table.values.begin() + id * family.width,
                 table.values.begin() + (id + 1) * family.width);
      for (double &value : row)
        value *= family.embeddingScale;
      x.push_back(row);
    }
    for (int64_t layer = 0; layer < family.layers; ++layer)
      runLayer(layer, x);
    Vector logits = matrix(tensors.contains("lm_head.weight") ? "lm_head" : "model.embed_tokens",
                           normed("model.norm", x.back()));
    for (double &value : logits) {
      value *= family.logitScale;
      if (family.logitCap > 0)
        value = family.logitCap * std::tanh(value / family.logitCap);
    }
    return logits;
  }

private:
  void runLayer(int64_t layer, Rows &x) {
    prefix = "model.layers." + std::to_string(layer) + ".";
    Rows queries, keys, values;
    for (size_t position = 0; position < x.size(); ++position) {
      const Vector h = family.normIn ? normed(prefix + family.normIn, x[position]) : x[position];
      project(h, queries, keys, values);
      turn(queries.back(), family.heads, layer, double(position));
      turn(keys.back(), family.kvHeads, layer, double(position));
    }
    // Of the last layer only the last token matters.
    const size_t first = layer + 1 == family.layers ? x.size() - 1 : 0;
    for (size_t position = first; position < x.size(); ++position) {
      Vector mixed = matrix(prefix + "self_attn.o_proj",
                            attend(layer, position, queries[position], keys, values));
      addTo(x[position], family.normOut ? normed(prefix + family.normOut, mixed) : mixed);
      Vector h = family.mlpNormIn ? normed(prefix + family.mlpNormIn, x[position]) : x[position];
      Vector made = mlp(h);
      addTo(x[position], family.mlpNormOut ? normed(prefix + family.mlpNormOut, made) : made);
    }
  }

  void project(const Vector &h, Rows &queries, Rows &keys, Rows &values) {
    const int64_t d = family.headWidth, q = family.heads * d, kv = family.kvHeads * d;
    if (tensors.contains(prefix + "self_attn.qkv_proj.weight")) {
      const Vector all = matrix(prefix + "self_attn.qkv_proj", h);
      queries.emplace_back(all.begin(), all.begin() + q);
      keys.emplace_back(all.begin() + q, all.begin() + q + kv);
      values.emplace_back(all.begin() + q + kv, all.end());
    } else {
      queries.push_back(matrix(prefix + "self_attn.q_proj", h));
      keys.push_back(matrix(prefix + "self_attn.k_proj", h));
      values.push_back(matrix(prefix + "self_attn.v_proj", h));
    }
    if (family.normWhole) {
      queries.back() = normed(prefix + "self_attn.q_norm", queries.back());
      keys.back() = normed(prefix + "self_attn.k_norm", keys.back());
    }
    if (family.normHeads) {
      normHeads(prefix + "self_attn.q_norm", queries.back());
      normHeads(prefix + "self_attn.k_norm", keys.back());
    }
  }

  void normHeads(const std::string &name, Vector &row) {
    for (auto at = row.begin(); at != row.end(); at += family.headWidth) {
      const Vector head = normed(name, Vector(at, at + family.headWidth));
      std::copy(head.begin(), head.end(), at);
    }
  }

  /// rotate_half of the transformers library.
  void turn(Vector &row, int64_t heads, int64_t layer, double position) {
    const int64_t turned = family.turned ? family.turned : family.headWidth, half = turned / 2;
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t pair = 0; pair < half; ++pair) {
        double &a = row[size_t(head * family.headWidth + pair)];
        double &b = row[size_t(head * family.headWidth + pair + half)];
        const double angle = position * family.frequency(layer, pair);
        const double cosine = std::cos(angle) * family.magnitude;
        const double sine = std::sin(angle) * family.magnitude;
        const double before = a;
        a = before * cosine - b * sine;
        b = b * cosine + before * sine;
      }
  }

  Vector attend(int64_t layer, size_t position, const Vector &query, const Rows &keys,
                const Rows &values) {
    const int64_t d = family.headWidth;
    const double scale =
        family.attentionScale != 0 ? family.attentionScale : 1 / std::sqrt(double(d));
    const auto window = size_t(family.window ? family.window(layer) : 0);
    const size_t first = window && position + 1 > window ? position + 1 - window : 0;
    Vector result(size_t(family.heads * d));
    for (int64_t head = 0; head < family.heads; ++head) {
      const int64_t kv = head / (family.heads / family.kvHeads);
      Vector scores;
      for (size_t key = first; key <= position; ++key) {
        double score = std::inner_product(query.begin() + head * d, query.begin() + (head + 1) * d,
                                          keys[key].begin() + kv * d, 0.0) *
                       scale;
        if (family.attentionCap > 0)
          score = family.attentionCap * std::tanh(score / family.attentionCap);
        scores.push_back(score);
      }
      const double most = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (double &score : scores)
        sum += score = std::exp(score - most);
      for (size_t key = first; key <= position; ++key)
        for (int64_t i = 0; i < d; ++i)
          result[size_t(head * d + i)] +=
              scores[key - first] / sum * values[key][size_t(kv * d + i)];
    }
    return result;
  }

  Vector mlp(const Vector &h) {
    if (family.mixture && tensors.contains(prefix + family.mixture + "gate.weight"))
      return mixture(prefix + family.mixture, h);
    Vector gate, up;
    if (tensors.contains(prefix + "mlp.gate_up_proj.weight")) {
      const Vector both = matrix(prefix + "mlp.gate_up_proj", h);
      gate.assign(both.begin(), both.begin() + int64_t(both.size() / 2));
      up.assign(both.begin() + int64_t(both.size() / 2), both.end());
    } else {
      gate = matrix(prefix + "mlp.gate_proj", h);
      up = matrix(prefix + "mlp.up_proj", h);
    }
    return matrix(prefix + "mlp.down_proj", gated(std::move(gate), up));
  }

  /// As the transformers library has it: shares of all experts, the largest ones, their sum.
  Vector mixture(const std::string &name, const Vector &h) {
    Vector shares = matrix(name + "gate", h);
    const double most = *std::max_element(shares.begin(), shares.end());
    double all = 0;
    for (double &share : shares)
      all += share = std::exp(share - most);
    std::vector<size_t> order(shares.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return shares[a] > shares[b]; });
    order.resize(size_t(family.expertsPerToken));
    if (family.weightsSumToOne) {
      all = 0;
      for (size_t expert : order)
        all += shares[expert];
    }
    Vector result(h.size());
    for (size_t expert : order) {
      const std::string of = name + "experts." + std::to_string(expert) + ".";
      const Vector made =
          matrix(of + family.expertParts[2], gated(matrix(of + family.expertParts[0], h),
                                                   matrix(of + family.expertParts[1], h)));
      for (size_t i = 0; i < made.size(); ++i)
        result[i] += shares[expert] / all * made[i];
    }
    return result;
  }

  Vector gated(Vector gate, const Vector &up) const {
    for (size_t i = 0; i < gate.size(); ++i) {
      const double x = gate[i];
      const double inner = 0.79788456080286535588 * (x + 0.044715 * x * x * x); // sqrt(2 / pi)
      gate[i] =
          (family.geluGate ? 0.5 * x * (1 + std::tanh(inner)) : x / (1 + std::exp(-x))) * up[i];
    }
    return gate;
  }

  Vector normed(const std::string &name, const Vector &x) const {
    const PlainTensor &weight = tensors.at(name + ".weight");
    double squares = 0;
    for (double value : x)
      squares += value * value;
    const double factor = 1 / std::sqrt(squares / double(x.size()) + family.epsilon);
    Vector result(x.size());
    for (size_t i = 0; i < x.size(); ++i)
      result[i] = x[i] * factor * (double(weight.values[i]) + family.normShift);
    return result;
  }

  Vector matrix(const std::string &name, const Vector &x) const {
    const PlainTensor &weight = tensors.at(name + ".weight");
    const auto bias = tensors.find(name + ".bias");
    Vector result(size_t(weight.shape[0]));
    for (size_t row = 0; row < result.size(); ++row) {
      double sum = bias == tensors.end() ? 0 : double(bias->second.values[row]);
      for (size_t i = 0; i < x.size(); ++i)
        sum += double(weight.values[row * x.size() + i]) * x[i];
      result[row] = sum;
    }
    return result;
  }

  void addTo(Vector &x, const Vector &change) const {
    for (size_t i = 0; i < x.size(); ++i)
      x[i] += change[i] * family.residualScale;
  }

  const PlainFamily &family;
  const PlainTensors &tensors;
  std::string prefix;
};

} // namespace

Vector plainLogits(const PlainFamily &family, const PlainTensors &tensors,
                   const std::vector<int32_t> &ids) {
  return PlainDecoder(family, tensors).run(ids);
}

} // namespace heddle::test
