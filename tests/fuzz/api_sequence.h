// A sequence of calls of the C ABI that bytes decide, with a host that lends its hooks well or
// badly. Whatever is called in whatever order: no fault, one FINISHED each, the answer that the
// request has alone, counters that agree, and all memory back. Aborts where that does not hold.
#pragma once

#include <cstddef>
#include <cstdint>

namespace llm {

void RunApiSequence(const uint8_t* data, size_t size);

}  // namespace llm
