// Enumerations of the heddle dialect: the small closed sets an operation chooses from.
#ifndef HEDDLE_IR_ENUMS
#define HEDDLE_IR_ENUMS

include "ir/dialect.td"
include "mlir/IR/EnumAttr.td"

class Heddle_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::heddle::ir";
  let genSpecializedAttr = 0;
}

// A new elementwise function: CONTRIBUTING.md lists the places.
def Heddle_UnaryKind : Heddle_Enum<"UnaryKind", "elementwise function of one operand", [
  I32EnumAttrCase<"Neg", 0, "neg">, I32EnumAttrCase<"Abs", 1, "abs">,
  I32EnumAttrCase<"Exp", 2, "exp">, I32EnumAttrCase<"Log", 3, "log">,
  I32EnumAttrCase<"Sqrt", 4, "sqrt">, I32EnumAttrCase<"Rsqrt", 5, "rsqrt">,
  I32EnumAttrCase<"Sin", 6, "sin">, I32EnumAttrCase<"Cos", 7, "cos">,
  I32EnumAttrCase<"Tanh", 8, "tanh">, I32EnumAttrCase<"Sigmoid", 9, "sigmoid">,
  I32EnumAttrCase<"Relu", 10, "relu">, I32EnumAttrCase<"Silu", 11, "silu">,
  I32EnumAttrCase<"GeluErf", 12, "gelu_erf">, I32EnumAttrCase<"GeluTanh", 13, "gelu_tanh">,
  I32EnumAttrCase<"Erf", 14, "erf">, I32EnumAttrCase<"Square", 15, "square">,
  I32EnumAttrCase<"Not", 16, "not">]>;

def Heddle_BinaryKind : Heddle_Enum<"BinaryKind", "elementwise function of two operands", [
  I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"Sub", 1, "sub">,
  I32EnumAttrCase<"Mul", 2, "mul">, I32EnumAttrCase<"Div", 3, "div">,
  I32EnumAttrCase<"Max", 4, "max">, I32EnumAttrCase<"Min", 5, "min">,
  I32EnumAttrCase<"Equal", 6, "equal">, I32EnumAttrCase<"Less", 7, "less">,
  I32EnumAttrCase<"LessEqual", 8, "less_equal">, I32EnumAttrCase<"And", 9, "and">,
  I32EnumAttrCase<"Or", 10, "or">]>;

def Heddle_ReduceKind : Heddle_Enum<"ReduceKind", "how a dimension is folded into one value", [
  I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Mean", 1, "mean">,
  I32EnumAttrCase<"Max", 2, "max">, I32EnumAttrCase<"Min", 3, "min">]>;

def Heddle_NormKind : Heddle_Enum<"NormKind", "what a norm divides by", [
  I32EnumAttrCase<"Rms", 0, "rms">, I32EnumAttrCase<"Layer", 1, "layer">]>;

def Heddle_Pairing : Heddle_Enum<"Pairing", "which two entries of a head turn together", [
  I32EnumAttrCase<"Interleaved", 0, "interleaved">,
  I32EnumAttrCase<"HalfSplit", 1, "half_split">]>;

// The formats of runtime/quantized/codec.h, and those that `quantise` makes of activations.
def Heddle_BlockKind : Heddle_Enum<"BlockKind", "a format of blocks", [
  I32EnumAttrCase<"Q8_0", 0, "q8_0">, I32EnumAttrCase<"Q4_0", 1, "q4_0">,
  I32EnumAttrCase<"Q4_K", 2, "q4_k">, I32EnumAttrCase<"Q6_K", 3, "q6_k">,
  I32EnumAttrCase<"Int8", 4, "int8">, I32EnumAttrCase<"Row32", 5, "row32">,
  I32EnumAttrCase<"Row256", 6, "row256">]>;

#endif // HEDDLE_IR_ENUMS
