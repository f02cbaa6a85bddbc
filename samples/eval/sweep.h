// Measures every row of a table.
#pragma once

#include <vector>

#include "eval/eval_flags.h"
#include "eval/table.h"

namespace eval {

// One open model of the table's weights at a time, beside the base.
Table MeasureTable(const Flags& flags, const std::vector<std::vector<int32_t>>& windows,
                   Configuration* base);

}  // namespace eval
