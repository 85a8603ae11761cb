// All operations of the dialect, level by level.
include "ir/ops.td"
include "ir/fused_ops.td"
include "ir/program_ops.td"
