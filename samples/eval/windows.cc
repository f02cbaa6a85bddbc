// Only whole windows count: each must have the same number of scored tokens.
#include "eval/windows.h"

#include "common/open.h"

namespace eval {

int32_t LeadingBos(const inlay::Model& model) {
  const int32_t bos = tools::ModelInfo(model).bos_id;
  std::vector<int32_t> ids;
  tools::Check(model.Tokenize("", LLM_TEXT_ADD_SPECIAL, &ids));
  return !ids.empty() && ids[0] == bos ? bos : -1;
}

std::vector<int32_t> Tokenize(const inlay::Model& model, const std::string& text) {
  std::vector<int32_t> ids;
  tools::Check(model.Tokenize(text, 0, &ids));
  return ids;
}

std::vector<std::vector<int32_t>> CutWindows(const std::vector<int32_t>& ids, int32_t bos,
                                             size_t context, size_t count) {
  std::vector<std::vector<int32_t>> windows;
  const size_t taken = bos >= 0 ? context - 1 : context;
  for (size_t begin = 0; begin + taken <= ids.size(); begin += taken) {
    if (count != 0 && windows.size() == count) break;
    std::vector<int32_t> window;
    if (bos >= 0) window.push_back(bos);
    const auto first = ids.begin() + static_cast<std::ptrdiff_t>(begin);
    window.insert(window.end(), first, first + static_cast<std::ptrdiff_t>(taken));
    windows.push_back(std::move(window));
  }
  return windows;
}

}  // namespace eval
