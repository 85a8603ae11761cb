// What the operations that add to the cache have in common.
#ifndef HEDDLE_IR_CACHE_INTERFACE
#define HEDDLE_IR_CACHE_INTERFACE

include "mlir/IR/OpBase.td"

def Heddle_CacheAppendInterface : OpInterface<"CacheAppendInterface"> {
  let cppNamespace = "::heddle::ir";
  let description = [{
    An operation that writes the keys and values of a call to a layer of the cache, as `cache_append` does. Whatever reads the
    cache in place looks for this.
  }];
  let methods = [
    InterfaceMethod<"The cache as it was, of type !heddle.cache.", "::mlir::Value", "getCache">,
    InterfaceMethod<"The rows that are appended.", "::mlir::Value", "getRows">,
    InterfaceMethod<"The layer they go to.", "uint64_t", "getLayer">,
    InterfaceMethod<"The cache with them.", "::mlir::Value", "getNewCache">,
    InterfaceMethod<"All keys of the call's sequences.", "::mlir::Value", "getAllKeys">,
    InterfaceMethod<"All values of the call's sequences.", "::mlir::Value", "getAllValues">,
    InterfaceMethod<"The description of the rows of both.", "::mlir::Value", "getKeyRows">
  ];
}

#endif // HEDDLE_IR_CACHE_INTERFACE
