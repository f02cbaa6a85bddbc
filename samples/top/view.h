// One screen of counters, as text.
#pragma once

#include <string>

#include "top/prometheus.h"

namespace top {

// Rates and quantiles are of what came since `before`, which was taken `seconds` earlier. Without
// it (null) rates are dashes and quantiles of all since the engine opened.
std::string View(const Snapshot& now, const Snapshot* before, double seconds);

}  // namespace top
