#include "passes/declined.h"

#include "passes/provenance.h"
#include "passes/remarks.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace heddle::passes {

std::string fusionShape(ValueRange tensors) {
  return llvm::join(llvm::map_range(tensors,
                                    [](Value tensor) {
                                      std::string text;
                                      llvm::raw_string_ostream(text) << tensor.getType();
                                      StringRef shape = text;
                                      if (shape.consume_front("tensor<"))
                                        shape.consume_back(">");
                                      return shape.str();
                                    }),
                    " ");
}

/// The notes of `function`, whoever wrote them: what is no dictionary says nothing.
static SmallVector<DictionaryAttr> notesOf(func::FuncOp function) {
  SmallVector<DictionaryAttr> notes;
  if (auto list = function->getAttrOfType<ArrayAttr>(declinedAttrName))
    for (Attribute each : list)
      if (auto note = dyn_cast<DictionaryAttr>(each))
        notes.push_back(note);
  return notes;
}

static void write(func::FuncOp function, ArrayRef<DictionaryAttr> notes) {
  if (notes.empty())
    function->removeAttr(declinedAttrName);
  else
    function->setAttr(
        declinedAttrName,
        ArrayAttr::get(function.getContext(), SmallVector<Attribute>(notes.begin(), notes.end())));
}

static StringRef textIn(DictionaryAttr note, StringRef name) {
  auto text = note.getAs<StringAttr>(name);
  return text ? text.getValue() : StringRef();
}

void setDeclined(func::FuncOp function, ArrayRef<Declined> declined) {
  Builder builder(function.getContext());
  SmallVector<DictionaryAttr> notes;
  for (const Declined &one : declined)
    notes.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("fusion", builder.getStringAttr(one.fusion)),
         builder.getNamedAttr("shape", builder.getStringAttr(one.shape)),
         builder.getNamedAttr("why", builder.getStringAttr(one.why))}));
  write(function, notes);
}

void keepEffective(func::FuncOp function) {
  SmallVector<DictionaryAttr> notes = notesOf(function);
  llvm::erase_if(notes, [](DictionaryAttr note) { return !note.contains("at"); });
  write(function, notes);
}

bool isDeclined(StringRef pass, Operation *op, StringRef shape) {
  auto function = op->getParentOfType<func::FuncOp>();
  if (!function || !function->hasAttr(declinedAttrName))
    return false;
  SmallVector<DictionaryAttr> notes = notesOf(function);
  for (DictionaryAttr &note : notes) {
    if (textIn(note, "fusion") != pass || textIn(note, "shape") != shape)
      continue;
    Builder builder(op->getContext());
    SmallVector<Attribute> ids;
    if (auto known = note.getAs<ArrayAttr>("at"))
      llvm::append_range(ids, known);
    ids.push_back(builder.getStringAttr(idOf(op)));
    NamedAttrList changed(note);
    changed.set("at", builder.getArrayAttr(ids));
    std::string why = textIn(note, "why").str();
    note = changed.getDictionary(op->getContext());
    write(function, notes);
    remarkDeclined(pass, op, shape, why);
    return true;
  }
  return false;
}

} // namespace heddle::passes
