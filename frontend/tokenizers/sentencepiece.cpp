#include "frontend/tokenizers/sentencepiece.h"

#include "frontend/formats/quote.h"
#include "frontend/tokenizers/character_map.h"
#include "frontend/tokenizers/pipeline_tokenizer.h"
#include "frontend/tokenizers/protobuf.h"
#include "frontend/tokenizers/utf8.h"
#include "runtime/text.h"

#include <fmt/format.h>

#include <cmath>

namespace heddle {

namespace {

constexpr size_t mostPieceBytes = 1 << 16;

/// What a file says.
struct Model {
  std::vector<Token> tokens;
  uint64_t type = 1; ///< 1 unigram, 2 byte-pair encoding, 3 words, 4 characters
  bool byteFallback = false;
  int32_t unknown = 0;
  std::optional<int32_t> bos, eos; ///< 1 and 2 where the file says nothing
  std::string unknownText = " \xe2\x81\x87 ";
  SentencePieceRules rules;
  std::string_view characterMap;
  bool hasTrainer = false, hasNormalizer = false;
};

using Field = ProtobufField;
using Wire = Field::Wire;

/// Whether `field` has number and wire type; of another wire type, `wrong` becomes the error.
bool is(const ProtobufReader &reader, const Field &field, uint32_t number, Wire wire,
        const char *what, std::optional<Error> &wrong) {
  if (field.number != number)
    return false;
  if (field.wire != wire)
    wrong = reader.error(
        field, what, fmt::format("is of wire type {}, expected {}", int(field.wire), int(wire)));
  return field.wire == wire;
}

/// Calls `use(field, reader, wrong)` for each field of a message.
template <class Use>
Status forEachField(std::string_view message, size_t offset, const std::string &name,
                    const Use &use) {
  ProtobufReader reader(message, offset, name);
  while (true) {
    const auto field = reader.next();
    if (!field)
      return field.error();
    if (!*field)
      return {};
    std::optional<Error> wrong;
    use(**field, reader, wrong);
    if (wrong)
      return *wrong;
  }
}

Status readPiece(const Field &piece, const std::string &name, Model &model) {
  Token token;
  const Status read = forEachField(
      piece.bytes, piece.offset, name,
      [&](const Field &field, const ProtobufReader &reader, std::optional<Error> &wrong) {
        if (is(reader, field, 1, Wire::bytes, "pieces.piece", wrong)) {
          token.text = field.text();
          if (token.text.size() > mostPieceBytes)
            wrong = reader.error(field, "pieces.piece",
                                 fmt::format("has {} bytes, expected at most {}", token.text.size(),
                                             mostPieceBytes));
        } else if (is(reader, field, 2, Wire::fixed32, "pieces.score", wrong)) {
          token.score = static_cast<double>(field.number32());
          if (!std::isfinite(token.score))
            wrong = reader.error(field, "pieces.score",
                                 fmt::format("is {}, expected a finite number", token.score));
        } else if (is(reader, field, 3, Wire::varint, "pieces.type", wrong)) {
          token.kind = static_cast<TokenKind>(field.value);
          if (field.value < 1 || field.value > 6)
            wrong = reader.error(field, "pieces.type",
                                 fmt::format("is {}, expected 1 to 6", field.value));
        }
      });
  if (read)
    model.tokens.push_back(std::move(token));
  return read;
}

Status readTrainer(const Field &trainer, const std::string &name, Model &model) {
  return forEachField(
      trainer.bytes, trainer.offset, name,
      [&](const Field &field, const ProtobufReader &reader, std::optional<Error> &wrong) {
        const auto id = [&](uint32_t number, const char *what, auto &value) {
          if (is(reader, field, number, Wire::varint, what, wrong))
            value = static_cast<int32_t>(field.value);
        };
        if (is(reader, field, 3, Wire::varint, "trainer_spec.model_type", wrong))
          model.type = field.value;
        if (is(reader, field, 24, Wire::varint, "trainer_spec.treat_whitespace_as_suffix", wrong))
          model.rules.whitespaceIsSuffix = field.flag();
        if (is(reader, field, 35, Wire::varint, "trainer_spec.byte_fallback", wrong))
          model.byteFallback = field.flag();
        id(40, "trainer_spec.unk_id", model.unknown);
        id(41, "trainer_spec.bos_id", model.bos);
        id(42, "trainer_spec.eos_id", model.eos);
        if (is(reader, field, 44, Wire::bytes, "trainer_spec.unk_surface", wrong))
          model.unknownText = field.text();
      });
}

Status readNormalizer(const Field &spec, const std::string &name, Model &model) {
  return forEachField(
      spec.bytes, spec.offset, name,
      [&](const Field &field, const ProtobufReader &reader, std::optional<Error> &wrong) {
        const auto flag = [&](uint32_t number, const char *what, bool &value) {
          if (is(reader, field, number, Wire::varint, what, wrong))
            value = field.flag();
        };
        if (is(reader, field, 2, Wire::bytes, "normalizer_spec.precompiled_charsmap", wrong))
          model.characterMap = field.bytes;
        flag(3, "normalizer_spec.add_dummy_prefix", model.rules.addDummyPrefix);
        flag(4, "normalizer_spec.remove_extra_whitespaces", model.rules.removeExtraWhitespaces);
        flag(5, "normalizer_spec.escape_whitespaces", model.rules.escapeWhitespaces);
      });
}

/// What a text is put through after decoding: nothing, in all published models.
Status readDenormalizer(const Field &spec, const std::string &name) {
  return forEachField(
      spec.bytes, spec.offset, name,
      [&](const Field &field, const ProtobufReader &reader, std::optional<Error> &wrong) {
        constexpr const char *what = "denormalizer_spec.precompiled_charsmap";
        if (is(reader, field, 2, Wire::bytes, what, wrong) && !field.bytes.empty())
          wrong = reader.error(field, what, "is not empty, which is not known here");
      });
}

Result<Model> readModel(std::span<const std::byte> bytes, const std::string &name) {
  Model model;
  const std::string_view file(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  Status status;
  const Status read = forEachField(
      file, 0, name,
      [&](const Field &field, const ProtobufReader &reader, std::optional<Error> &wrong) {
        if (is(reader, field, 1, Wire::bytes, "pieces", wrong))
          status = readPiece(field, name, model);
        else if (is(reader, field, 2, Wire::bytes, "trainer_spec", wrong)) {
          status = readTrainer(field, name, model);
          model.hasTrainer = true;
        } else if (is(reader, field, 3, Wire::bytes, "normalizer_spec", wrong)) {
          status = readNormalizer(field, name, model);
          model.hasNormalizer = true;
        } else if (is(reader, field, 5, Wire::bytes, "denormalizer_spec", wrong)) {
          status = readDenormalizer(field, name);
        }
        if (!status)
          wrong = status.error();
      });
  if (!read)
    return read.error();
  return model;
}

/// What is wrong with a model as a whole.
Status check(const Model &model, const std::string &name) {
  // A file that ends between two fields is a whole message; every trainer writes these two.
  if (!model.hasTrainer || !model.hasNormalizer)
    return dataError(fmt::format("{}: is cut short: it has {}, but no {}", name,
                                 counted(static_cast<int64_t>(model.tokens.size()), "piece"),
                                 model.hasTrainer ? "normalizer_spec" : "trainer_spec"));
  if (model.type != 1 && model.type != 2)
    return dataError(fmt::format(
        "{}: trainer_spec.model_type is {}{}, expected 1 (unigram) or 2 (byte-pair encoding)", name,
        model.type,
        model.type == 3   ? " (words)"
        : model.type == 4 ? " (characters)"
                          : ""));
  const auto count = static_cast<int32_t>(model.tokens.size());
  if (model.unknown < 0 || model.unknown >= count ||
      model.tokens[size_t(model.unknown)].kind != TokenKind::unknown)
    return dataError(
        fmt::format("{}: trainer_spec.unk_id is {}, expected the id of a piece of type "
                    "2 (unknown) below {}",
                    name, model.unknown, count));
  for (const auto &[field, id] : {std::pair("bos_id", model.bos), std::pair("eos_id", model.eos)})
    if (id && *id >= count)
      return dataError(fmt::format("{}: trainer_spec.{} is {}, expected an id below {}, or -1",
                                   name, field, *id, count));
  if (!model.byteFallback)
    return {};
  std::array<bool, 256> found{};
  for (const Token &token : model.tokens)
    if (const int byte = spelledByte(token.text); token.kind == TokenKind::byte && byte >= 0)
      found[size_t(byte)] = true;
  for (size_t byte = 0; byte < 256; ++byte)
    if (!found[byte])
      return dataError(fmt::format(
          "{}: trainer_spec.byte_fallback is set, but no piece is <0x{:02X}>", name, byte));
  return {};
}

/// What a piece adds to a text.
std::string pieceOf(const Token &token, const Model &model) {
  switch (token.kind) {
  case TokenKind::control:
    return "";
  case TokenKind::unknown:
    return model.unknownText;
  case TokenKind::byte:
    if (const int byte = spelledByte(token.text); byte >= 0)
      return std::string(1, static_cast<char>(byte));
    return "";
  default:
    break;
  }
  std::string text;
  for (std::string_view rest = token.text; !rest.empty();) {
    const bool isSpace = rest.starts_with(spaceSign);
    text += isSpace ? ' ' : rest.front();
    rest.remove_prefix(isSpace ? spaceSign.size() : 1);
  }
  return text;
}

/// An id that the file says, or the usual one where there is such a piece.
int32_t markOf(std::optional<int32_t> said, int32_t usual, int32_t count) {
  const int32_t id = said.value_or(usual);
  return id < 0 || id >= count ? TextMarks::none : id;
}

} // namespace

Result<int64_t> countSentencePieces(std::span<const std::byte> bytes, const std::string &name) {
  const auto model = readModel(bytes, name);
  if (!model)
    return model.error();
  return static_cast<int64_t>(model->tokens.size());
}

Result<std::unique_ptr<Tokenizer>> readSentencePiece(std::span<const std::byte> bytes,
                                                     const std::string &name,
                                                     int64_t modelVocabulary) {
  auto model = readModel(bytes, name);
  if (!model)
    return model.error();
  if (Status status = check(*model, name); !status)
    return status.error();
  CharacterMap map;
  if (!model->characterMap.empty()) {
    auto parsed = CharacterMap::parse(model->characterMap);
    if (!parsed)
      return dataError(name + ": normalizer_spec: " + parsed.error().message);
    map = *std::move(parsed);
  }
  Pipeline pipeline;
  const bool dropsSpace = model->rules.addDummyPrefix || model->rules.removeExtraWhitespaces;
  for (const Token &token : model->tokens) {
    std::string piece = pieceOf(token, *model);
    std::string first =
        dropsSpace && token.text.starts_with(spaceSign) ? withoutSpace(piece) : piece;
    pipeline.addPiece(std::move(piece), std::move(first));
    if (token.kind == TokenKind::userDefined)
      model->rules.userDefined.push_back(token.text);
  }
  pipeline.beginsWithText = model->rules.removeExtraWhitespaces;
  pipeline.keepsInvalid = true; // the normalizer knows of it
  pipeline.vocabulary = std::make_shared<const Vocabulary>(std::move(model->tokens));
  pipeline.normalizers.push_back(sentencePieceNormalizer(std::move(map), model->rules));
  const Fallback fallback{model->byteFallback, model->unknown, true};
  pipeline.model = model->type == 1
                       ? unigramModel(pipeline.vocabulary, {fallback, true})
                       : scoreModel(pipeline.vocabulary, {.fallback = fallback,
                                                          .characterLength = characterLength,
                                                          .findsUserDefined = true});
  pipeline.marks.bos = markOf(model->bos, 1, pipeline.vocabulary->size());
  pipeline.marks.eos = markOf(model->eos, 2, pipeline.vocabulary->size());
  pipeline.marks.addsBos = pipeline.marks.bos != TextMarks::none;
  pipeline.marks.ends = endsOf(pipeline.marks);
  pipeline.modelVocabulary = modelVocabulary;
  return PipelineTokenizer::create(std::move(pipeline));
}

} // namespace heddle
