// The table of architectures: an explicit list, since linkers drop objects that only register
// themselves.
#include "absl/strings/str_cat.h"
#include "src/model/architectures/architecture.h"

namespace llm {
namespace {

constexpr Architecture kArchitectures[] = {
    {"llama", ConfigureLlama},         {"qwen2", ConfigureQwen2},
    {"qwen3", ConfigureQwen3},         {"qwen3moe", ConfigureQwen3Moe},
    {"gemma2", ConfigureGemma2},       {"gemma3", ConfigureGemma3},
    {"phi3", ConfigurePhi3},           {"gpt-oss", ConfigureGptOss},
    {"deepseek2", ConfigureDeepseek2},
};

}  // namespace

const Architecture* FindArchitecture(absl::string_view name) {
  for (const Architecture& architecture : kArchitectures) {
    if (name == architecture.name) return &architecture;
  }
  return nullptr;
}

std::string ArchitectureNames() {
  std::string names;
  for (const Architecture& architecture : kArchitectures) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", architecture.name);
  }
  return names;
}

}  // namespace llm
