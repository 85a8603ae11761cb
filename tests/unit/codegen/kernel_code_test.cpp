// The code of kernels as somebody wrote it: what it may be made of, and how the rest is refused.
#include "codegen/kernel_code.h"

#include "codegen/jit/jit.h"
#include "codegen/jit/machine.h"
#include "codegen/passes.h"
#include "ir/dialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <gmock/gmock.h>

#include <set>

using namespace mlir;

namespace heddle::codegen {
namespace {

class KernelCode : public testing::Test {
protected:
  KernelCode() : context(registry(), MLIRContext::Threading::DISABLED) {
    context.loadAllAvailableDialects();
  }

  static DialectRegistry registry() {
    DialectRegistry registry;
    registry.insert<ir::HeddleDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                    memref::MemRefDialect, scf::SCFDialect, tensor::TensorDialect,
                    vector::VectorDialect, x86vector::X86VectorDialect>();
    registerKernels(registry);
    return registry;
  }

  OwningOpRef<ModuleOp> parse(const std::string &text) {
    return parseSourceString<ModuleOp>(text, &context);
  }

  /// What is wrong with `text`, after the line it is said of; empty: nothing.
  std::string fault(const std::string &text, const char *isa) {
    std::string found;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      unsigned line = 0;
      if (auto place = dyn_cast<FileLineColLoc>(diagnostic.getLocation()))
        line = place.getLine();
      found += std::to_string(line) + ": " + diagnostic.str();
    });
    auto module = parse(text);
    EXPECT_TRUE(module) << found << "\n" << text;
    if (module)
      EXPECT_EQ(failed(checkLoops(*module, *findTarget(isa))), !found.empty()) << text;
    return found;
  }

  MLIRContext context;
};

/// A kernel whose code begins in line 3.
std::string kernel(const std::string &code, const std::string &name = "@scale_0",
                   const std::string &attributes = "") {
  return "func.func " + name +
         "(%dims: memref<?xi64>, %a: memref<?xf32>, %begin: index, %end: index, %scratch: "
         "memref<?xi8>) " +
         attributes + " {\n  %c0 = arith.constant 0 : index\n" + code + "\n  return\n}\n";
}

const char *const dot = R"(  %x = arith.constant dense<0.0> : vector<16xf32>
  %y = arith.constant dense<0.0> : vector<32xbf16>
  %z = x86vector.avx512.dot %x, %y, %y : vector<32xbf16> -> vector<16xf32>)";

const char *const halfDot = R"(  %x = arith.constant dense<0.0> : vector<8xf32>
  %y = arith.constant dense<0.0> : vector<16xbf16>
  %z = x86vector.avx512.dot %x, %y, %y : vector<16xbf16> -> vector<8xf32>)";

TEST_F(KernelCode, IsRefusedWhereItStands) {
  struct Case {
    std::string text;
    const char *fault;
    const char *isa = "avx512_bf16";
  };
  const Case cases[] = {
      {kernel("  %t = tensor.empty() : tensor<3xf32>"),
       "3: kernel @scale_0 uses 'tensor.empty'; needs operations of arith, func, math, memref, "
       "scf, vector"},
      {kernel("  %x = arith.constant 1.0 : f32\n  %t = math.atan %x : f32"),
       "4: kernel @scale_0 uses 'math.atan'; of math a kernel uses absf, ceil, copysign, floor, "
       "roundeven, sqrt, trunc"},
      // The memrefs that a kernel is given have no sizes.
      {kernel("  %n = memref.dim %a, %c0 : memref<?xf32>"),
       "3: kernel @scale_0 uses 'memref.dim'; of memref a kernel uses load, prefetch, "
       "reinterpret_cast, store, view"},
      {kernel("  %m = memref.alloca() : memref<3xf32>"),
       "3: kernel @scale_0 takes memory by 'memref.alloca'; it has its operands and its scratch "
       "and no other"},
      {kernel("  func.call @scale_0(%dims, %a, %begin, %end, %scratch) : (memref<?xi64>, "
              "memref<?xf32>, index, index, memref<?xi8>) -> ()"),
       "3: kernel @scale_0 calls @scale_0; a kernel calls nothing"},
      {kernel("  scf.for %i = %begin to %end step %c0 {\n  }"),
       "3: kernel @scale_0 has a loop whose step is 0; needs one above 0"},
      {kernel("  %s = arith.constant -4 : index\n  scf.for %i = %begin to %end step %s {\n  }"),
       "4: kernel @scale_0 has a loop whose step is -4; needs one above 0"},
      {kernel("  %v = arith.constant dense<0> : vector<65xi32>"),
       "3: kernel @scale_0 has a value of type 'vector<65xi32>'; needs numbers, memrefs of "
       "numbers, or vectors of one dimension and at most 64 numbers"},
      {kernel("  %v = arith.constant dense<0> : vector<2x2xi32>"),
       "3: kernel @scale_0 has a value of type 'vector<2x2xi32>'; needs numbers, memrefs of "
       "numbers, or vectors of one dimension and at most 64 numbers"},
      {kernel("  %v = arith.constant dense_resource<far> : vector<4xi32>"),
       "3: kernel @scale_0 has the constant dense_resource<far> : vector<4xi32>; needs numbers, "
       "or dense<...>"},
      {kernel("  %v = arith.constant {note} 5 : i7"),
       "3: kernel @scale_0 says 'note' of 'arith.constant', which means nothing there"},
      {kernel("  %v = arith.constant 5 : i7"),
       "3: kernel @scale_0 has a value of type 'i7'; needs numbers, memrefs of numbers, or vectors "
       "of one dimension and at most 64 numbers"},
      {kernel(dot, "@scale_0"), ""},
      {kernel(halfDot, "@scale_0"), ""},
      {kernel(dot, "@scale_0"),
       "5: kernel @scale_0 uses 'x86vector.avx512.dot', which avx512_vnni has not; needs "
       "avx512_bf16",
       "avx512_vnni"},
      {kernel("  %x = arith.constant 0.0 : f32\n"
              "  %y = llvm.call_intrinsic \"llvm.sin.f32\"(%x) : (f32) -> f32"),
       "4: kernel @scale_0 uses 'llvm.sin.f32'; of instructions it may use llvm.x86.avx2.pmadd.wd, "
       "llvm.x86.avx512.pmaddw.d.512, llvm.x86.avx512.vpdpbusd.512, x86vector.avx512.dot"},
      {kernel("  %x = arith.constant 0.0 : f32\n"
              "  %y = llvm.call_intrinsic \"llvm.x86.avx2.pmadd.wd\"(%x, %x) : (f32, f32) -> f32"),
       "4: kernel @scale_0 uses 'llvm.x86.avx2.pmadd.wd' as (f32, f32) -> f32; needs "
       "(vector<16xi16>, vector<16xi16>) -> vector<8xi32>"},
      {kernel("", "@\"scale 0\""), "1: kernel @scale 0 needs a name of letters, digits and '_'"},
      {kernel("", "@memcpy"),
       "1: kernel @memcpy has the name of a library's function; needs one of its own"},
      {kernel("", "@scale_0", "attributes {llvm.bareptr}"),
       "1: kernel @scale_0 says 'llvm.bareptr' of 'func.func', which means nothing there"},
      {"func.func private @other()\n", "1: kernel @other has no body"},
      {kernel("") + "llvm.func @f()\n",
       "6: 'llvm.func' stands in a module of level loops, which holds heddle.param, heddle.program "
       "and kernels (func.func) alone"},
  };
  for (const Case &each : cases)
    EXPECT_EQ(fault(each.text, each.isa), each.fault) << each.text;
}

// One of every operation; what it computes matters to nobody.
const char *const everything = R"(
  %f0 = arith.constant 1.5 : f32
  %d0 = arith.extf %f0 : f32 to f64
  %f1 = arith.truncf %d0 : f64 to f32
  %f2 = arith.addf %f0, %f1 : f32
  %f3 = arith.subf %f2, %f1 : f32
  %f4 = arith.mulf %f3, %f2 : f32
  %f5 = arith.divf %f4, %f2 : f32
  %f6 = arith.negf %f5 : f32
  %f7 = arith.maximumf %f6, %f5 : f32
  %f8 = arith.minimumf %f7, %f5 : f32
  %p0 = arith.cmpf olt, %f8, %f7 : f32
  %f9 = arith.select %p0, %f8, %f7 : f32
  %m0 = math.absf %f9 : f32
  %m1 = math.ceil %m0 : f32
  %m2 = math.copysign %m1, %f9 : f32
  %m3 = math.floor %m2 : f32
  %m4 = math.roundeven %m3 : f32
  %m5 = math.sqrt %m4 : f32
  %m6 = math.trunc %m5 : f32
  %i0 = arith.bitcast %m6 : f32 to i32
  %i1 = arith.fptosi %m6 : f32 to i32
  %i2 = arith.fptoui %m6 : f32 to i32
  %i3 = arith.addi %i0, %i1 : i32
  %i4 = arith.subi %i3, %i2 : i32
  %i5 = arith.muli %i4, %i3 : i32
  %i6 = arith.andi %i5, %i4 : i32
  %i7 = arith.ori %i6, %i4 : i32
  %i8 = arith.xori %i7, %i5 : i32
  %i9 = arith.maxsi %i8, %i7 : i32
  %i10 = arith.maxui %i9, %i7 : i32
  %i11 = arith.minsi %i10, %i7 : i32
  %i12 = arith.minui %i11, %i7 : i32
  %i13 = arith.divsi %i12, %i7 : i32
  %i14 = arith.divui %i13, %i7 : i32
  %i15 = arith.remsi %i14, %i7 : i32
  %i16 = arith.remui %i15, %i7 : i32
  %i17 = arith.shli %i16, %i7 : i32
  %i18 = arith.shrsi %i17, %i7 : i32
  %i19 = arith.shrui %i18, %i7 : i32
  %l0 = arith.extsi %i19 : i32 to i64
  %l1 = arith.extui %i19 : i32 to i64
  %l2 = arith.addi %l0, %l1 : i64
  %i20 = arith.trunci %l2 : i64 to i32
  %g0 = arith.sitofp %i20 : i32 to f32
  %g1 = arith.uitofp %i20 : i32 to f32
  %n0 = arith.index_cast %l2 : i64 to index
  %n1 = arith.index_castui %i20 : i32 to index
  %p1 = arith.cmpi slt, %n0, %n1 : index
  %c1 = arith.constant 1 : index
  %w = memref.reinterpret_cast %a to offset: [0], sizes: [%n0, 16], strides: [16, 1] : memref<?xf32> to memref<?x16xf32, strided<[16, 1]>>
  %s = memref.view %scratch[%c0][%n0] : memref<?xi8> to memref<?xf32>
  memref.prefetch %w[%c0, %c0], read, locality<3>, data : memref<?x16xf32, strided<[16, 1]>>
  %h0 = memref.load %a[%c0] : memref<?xf32>
  memref.store %g1, %s[%c0] : memref<?xf32>
  %v0 = vector.broadcast %h0 : f32 to vector<16xf32>
  %v1 = vector.load %w[%c0, %c0] : memref<?x16xf32, strided<[16, 1]>>, vector<16xf32>
  %v2 = vector.fma %v0, %v1, %v0 : vector<16xf32>
  %k0 = vector.create_mask %n0 : vector<16xi1>
  %k1 = vector.constant_mask [3] : vector<16xi1>
  %v3 = vector.maskedload %w[%c0, %c0], %k0, %v2 : memref<?x16xf32, strided<[16, 1]>>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  vector.maskedstore %w[%c0, %c0], %k1, %v3 : memref<?x16xf32, strided<[16, 1]>>, vector<16xi1>, vector<16xf32>
  %v4 = vector.bitcast %v3 : vector<16xf32> to vector<32xi16>
  %v5 = vector.shuffle %v3, %v2 [0, 17, 2, 19] : vector<16xf32>, vector<16xf32>
  %h1 = vector.extract %v5[2] : f32 from vector<4xf32>
  %v6 = vector.insert %h1, %v5[1] : f32 into vector<4xf32>
  %h2 = vector.reduction <add>, %v6 : vector<4xf32> into f32
  %v7 = vector.from_elements %h1, %h2, %g0, %g1 : vector<4xf32>
  vector.store %v7, %s[%c0] : memref<?xf32>, vector<4xf32>
  %e0 = vector.extract %v4[1] : i16 from vector<32xi16>
  %r = scf.if %p1 -> (i16) {
    scf.yield %e0 : i16
  } else {
    %z = arith.constant 0 : i16
    scf.yield %z : i16
  }
  scf.for %i = %begin to %end step %c1 {
    %q = arith.sitofp %r : i16 to f32
    memref.store %q, %a[%i] : memref<?xf32>
  }
  %u = scf.while (%t = %begin) : (index) -> index {
    %more = arith.cmpi slt, %t, %end : index
    scf.condition(%more) %t : index
  } do {
  ^bb0(%t: index):
    %next = arith.addi %t, %c1 : index
    scf.yield %next : index
  })";

TEST_F(KernelCode, OfEveryOperationItMayUseBecomesMachineCode) {
  auto module = parse(kernel(everything));
  ASSERT_TRUE(module);
  std::set<std::string> used;
  module->walk([&](Operation *op) {
    if (!isa<ModuleOp, func::FuncOp>(op))
      used.insert(op->getName().getStringRef().str());
  });
  std::vector<std::string> allowed = kernelOperations();
  EXPECT_EQ(used, std::set(allowed.begin(), allowed.end()));
  for (const Target &target : targets) {
    if (!selectTarget(target.name))
      continue;
    ASSERT_TRUE(succeeded(checkLoops(*module, target)));
    auto objects = compileKernels(*module, target, 1);
    ASSERT_TRUE(objects) << objects.error().message;
    auto code = link(objects->front(), target);
    ASSERT_TRUE(code) << code.error().message;
    EXPECT_NE((*code)->kernel("scale_0"), nullptr);
  }
}

} // namespace
} // namespace heddle::codegen
