// Holds the code of kernels to what is turned into machine code.
#include "codegen/kernel_code.h"

#include "codegen/kernel_contract.h"
#include "ir/ops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

#include <array>
#include <dlfcn.h>

using namespace mlir;

namespace heddle::codegen {

/// The operations of a kernel, by dialect.
static constexpr std::pair<StringLiteral, StringLiteral> operations[] = {
    {"arith", "addf, addi, andi, bitcast, cmpf, cmpi, constant, divf, divsi, divui, extf, extsi, "
              "extui, fptosi, fptoui, index_cast, index_castui, maximumf, maxsi, maxui, minimumf, "
              "minsi, minui, mulf, muli, negf, ori, remsi, remui, select, shli, shrsi, shrui, "
              "sitofp, subf, subi, truncf, trunci, uitofp, xori"},
    {"func", "return"},
    {"math", "absf, ceil, copysign, floor, roundeven, sqrt, trunc"},
    {"memref", "load, prefetch, reinterpret_cast, store, view"},
    {"scf", "condition, for, if, while, yield"},
    {"vector", "bitcast, broadcast, constant_mask, create_mask, extract, fma, from_elements, "
               "insert, load, maskedload, maskedstore, reduction, shuffle, store"}};

std::vector<std::string> kernelOperations() {
  std::vector<std::string> all;
  for (auto [dialect, names] : operations)
    for (StringRef name : llvm::split(StringRef(names), ", "))
      all.push_back((dialect + "." + name).str());
  return all;
}

/// An instruction that has no operation of its own.
struct Instruction {
  StringLiteral name;      ///< of the intrinsic, or of the operation that stands for it
  StringLiteral signature; ///< operands and result
  bool Target::*needs;     ///< null: every target has it
  StringLiteral half = ""; ///< of half vectors, where kernels use it so too
};

static constexpr Instruction instructions[] = {
    {"llvm.x86.avx2.pmadd.wd", "(vector<16xi16>, vector<16xi16>) -> vector<8xi32>", nullptr},
    {"llvm.x86.avx512.pmaddw.d.512", "(vector<32xi16>, vector<32xi16>) -> vector<16xi32>",
     &Target::avx512},
    {"llvm.x86.avx512.vpdpbusd.512",
     "(vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>", &Target::int8Dot},
    {"x86vector.avx512.dot", "(vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>",
     &Target::bf16Dot, "(vector<8xf32>, vector<16xbf16>, vector<16xbf16>) -> vector<8xf32>"}};

/// Entries of the longest vector; ours have 64.
static constexpr int64_t longest = 64;

static bool isNumber(Type type) {
  return isa<IndexType, Float16Type, BFloat16Type, Float32Type, Float64Type>(type) ||
         llvm::any_of(std::array{1, 8, 16, 32, 64},
                      [&](unsigned bits) { return type.isSignlessInteger(bits); });
}

static bool isValue(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getRank() == 1 && !vector.isScalable() && vector.getDimSize(0) <= longest &&
           isNumber(vector.getElementType());
  if (auto memref = dyn_cast<MemRefType>(type))
    return isNumber(memref.getElementType()) && !memref.getMemorySpace() &&
           (memref.getLayout().isIdentity() || isa<StridedLayoutAttr>(memref.getLayout()));
  return isNumber(type);
}

namespace {

class CodeChecker {
public:
  explicit CodeChecker(const Target &target) : target(target) {
    for (const std::string &name : kernelOperations())
      known.insert(name);
  }

  LogicalResult check(func::FuncOp function) {
    kernel = function.getSymName();
    if (failed(checkKernel(function)) || failed(checkName(function)))
      return failure();
    if (!function.getBody().hasOneBlock())
      return wrong(function) << "has several blocks; needs one, with loops of scf";
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (DictionaryAttr attributes = function.getArgAttrDict(i))
        for (NamedAttribute attribute : attributes)
          if (attribute.getName() != takesAttrName)
            return foreign(function, attribute.getName());
    for (NamedAttribute attribute : function->getDiscardableAttrs())
      if (attribute.getName() != contractAttrName)
        return foreign(function, attribute.getName());
    if (function.getNoInline())
      return foreign(function, "no_inline");
    auto walked = function.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
      return failed(check(op)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    return success(!walked.wasInterrupted());
  }

private:
  InFlightDiagnostic wrong(Operation *op) const {
    return emitError(op->getLoc(), "kernel @") << kernel << ' ';
  }

  LogicalResult foreign(Operation *op, StringRef attribute) const {
    return wrong(op) << "says '" << attribute << "' of '" << op->getName()
                     << "', which means nothing there";
  }

  /// Kernels are linked by their names, with what LLVM calls beside them.
  LogicalResult checkName(func::FuncOp function) const {
    auto isLetter = [](char c) { return llvm::isAlnum(c) || c == '_'; };
    if (kernel.empty() || llvm::isDigit(kernel.front()) || !llvm::all_of(kernel, isLetter))
      return wrong(function) << "needs a name of letters, digits and '_'";
    if (dlsym(RTLD_DEFAULT, kernel.str().c_str()))
      return wrong(function) << "has the name of a library's function; needs one of its own";
    return success();
  }

  LogicalResult check(Operation *op) const {
    StringRef name = op->getName().getStringRef();
    StringRef dialect = op->getName().getDialectNamespace();
    if (name == "func.call")
      return wrong(op) << "calls " << op->getAttr("callee") << "; a kernel calls nothing";
    if (name == "llvm.call_intrinsic" || dialect == "x86vector") {
      if (failed(checkInstruction(op)))
        return failure();
    } else if (!known.contains(name)) {
      return unknown(op);
    }
    for (NamedAttribute attribute : op->getDiscardableAttrs())
      return foreign(op, attribute.getName());
    for (Type type : op->getResultTypes())
      if (!isValue(type))
        return wrongType(op, type);
    for (Region &region : op->getRegions())
      for (Type type : region.getArgumentTypes())
        if (!isValue(type))
          return wrongType(op, type);
    if (auto constant = op->getAttr("value"); constant && name == "arith.constant")
      if (!isa<IntegerAttr, FloatAttr, DenseIntOrFPElementsAttr>(constant))
        return wrong(op) << "has the constant " << constant << "; needs numbers, or dense<...>";
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return checkStep(loop);
    return success();
  }

  LogicalResult unknown(Operation *op) const {
    StringRef name = op->getName().getStringRef();
    if (name.starts_with("memref.alloc") || name == "memref.realloc")
      return wrong(op) << "takes memory by '" << name
                       << "'; it has its operands and its scratch and no other";
    for (auto [dialect, names] : operations)
      if (op->getName().getDialectNamespace() == dialect)
        return wrong(op) << "uses '" << name << "'; of " << dialect << " a kernel uses " << names;
    return wrong(op) << "uses '" << name << "'; needs operations of "
                     << llvm::join(llvm::make_first_range(operations), ", ");
  }

  LogicalResult wrongType(Operation *op, Type type) const {
    return wrong(op) << "has a value of type " << type
                     << "; needs numbers, memrefs of numbers, or vectors of one dimension and at "
                        "most "
                     << longest << " numbers";
  }

  LogicalResult checkInstruction(Operation *op) const {
    auto intrinsic = op->getAttrOfType<StringAttr>("intrin");
    StringRef name = intrinsic ? intrinsic.getValue() : op->getName().getStringRef();
    auto found = llvm::find_if(instructions, [&](const auto &each) { return each.name == name; });
    if (found == std::end(instructions))
      return wrong(op) << "uses '" << name << "'; of instructions it may use "
                       << llvm::join(llvm::map_range(instructions,
                                                     [](const auto &each) { return each.name; }),
                                     ", ");
    std::string signature;
    llvm::raw_string_ostream(signature)
        << FunctionType::get(op->getContext(), op->getOperandTypes(), op->getResultTypes());
    auto bundles = op->getAttrOfType<DenseI32ArrayAttr>("op_bundle_sizes");
    bool fits = signature == found->signature || signature == found->half;
    if (!fits || (bundles && !bundles.empty()))
      return wrong(op) << "uses '" << name << "' as " << signature << "; needs " << found->signature
                       << (found->half.empty() ? "" : " or ") << found->half;
    if (found->needs && !(target.*found->needs)) {
      auto first = llvm::find_if(targets, [&](const Target &each) { return each.*found->needs; });
      return wrong(op) << "uses '" << name << "', which " << target.name << " has not; needs "
                       << first->name;
    }
    return success();
  }

  LogicalResult checkStep(scf::ForOp loop) const {
    APInt step;
    if (matchPattern(loop.getStep(), m_ConstantInt(&step)) && !step.isStrictlyPositive())
      return wrong(loop) << "has a loop whose step is " << step.getSExtValue()
                         << "; needs one above 0";
    return success();
  }

  const Target &target;
  llvm::StringSet<> known;
  StringRef kernel;
};

} // namespace

LogicalResult checkLoops(ModuleOp loops, const Target &target) {
  CodeChecker checker(target);
  for (Operation &op : *loops.getBody()) {
    if (auto function = dyn_cast<func::FuncOp>(op)) {
      if (failed(checker.check(function)))
        return failure();
    } else if (!isa<ir::ParamOp, ir::ProgramOp>(op)) {
      return emitError(op.getLoc(), "'")
             << op.getName()
             << "' stands in a module of level loops, which holds heddle.param, heddle.program and "
                "kernels (func.func) alone";
    }
  }
  return success();
}

} // namespace heddle::codegen
