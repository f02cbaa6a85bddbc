// Makes room in a container ahead of changes that must not fail.
#pragma once

#include <algorithm>
#include <cstddef>

namespace llm {

// Room for `size` elements in all. Doubles, since reserving the exact size each time would make
// appending quadratic. Throws std::bad_alloc with nothing changed.
template <typename Container>
void ReserveTotal(Container* container, size_t size) {
  if (size > container->capacity()) container->reserve(std::max(size, 2 * container->size()));
}

}  // namespace llm
