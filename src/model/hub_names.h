// Which name of a hub's directory each GGUF name stands for, so that messages can say both.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace llm {

class HubNames {
 public:
  void Add(absl::string_view gguf, absl::string_view hub) {
    hub_.emplace(std::string(gguf), std::string(hub));
  }
  // The message with the hub's name before each GGUF name in it: "key llama.block_count: ..." gives
  // "key num_hidden_layers (llama.block_count): ...".
  absl::Status Explain(const absl::Status& status) const;

 private:
  std::map<std::string, std::string, std::less<>> hub_;  // by GGUF name
};

}  // namespace llm
