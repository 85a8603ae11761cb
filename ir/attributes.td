// Attributes of the heddle dialect: its enumerations as they stand in the text.
#ifndef HEDDLE_IR_ATTRIBUTES
#define HEDDLE_IR_ATTRIBUTES

include "ir/enums.td"

class Heddle_EnumAttr<I32EnumAttr info, string mnemonic>
    : EnumAttr<Heddle_Dialect, info, mnemonic> {
  // Operations print the keyword alone, by custom<Keyword>.
  let assemblyFormat = "`<` $value `>`";
}

def Heddle_UnaryKindAttr : Heddle_EnumAttr<Heddle_UnaryKind, "unary_kind">;
def Heddle_BinaryKindAttr : Heddle_EnumAttr<Heddle_BinaryKind, "binary_kind">;
def Heddle_ReduceKindAttr : Heddle_EnumAttr<Heddle_ReduceKind, "reduce_kind">;
def Heddle_NormKindAttr : Heddle_EnumAttr<Heddle_NormKind, "norm_kind">;
def Heddle_PairingAttr : Heddle_EnumAttr<Heddle_Pairing, "pairing">;

#endif // HEDDLE_IR_ATTRIBUTES
