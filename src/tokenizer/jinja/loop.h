// The `loop` variable of a for block.
#pragma once

#include <memory>

#include "absl/strings/string_view.h"
#include "src/tokenizer/jinja/value.h"

namespace llm::jinja {

struct ForStatement;

struct Loop {
  std::shared_ptr<const Sequence> items;
  size_t index = 0;  // of the round that runs
  size_t depth = 0;  // 0: not inside a recursive call of the same loop
  bool running = true;
  Value last_changed;  // what loop.changed was last given; emptied at the end, so that it cannot
                       // hold the loop itself
  bool has_changed = false;
  const ForStatement* statement = nullptr;  // set when the loop is recursive: then it can be called
  Frame* frame = nullptr;                   // around the loop; the interpreter keeps it alive
};

// loop.index, loop.last, ...; loop.cycle and loop.changed are functions. Undefined for other names.
Value LoopAttribute(const Value& loop, absl::string_view name);

}  // namespace llm::jinja
