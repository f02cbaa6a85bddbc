// Asks the dynamic linker once.
#include "tests/cuda_on_cpu/read_only_data.h"

#include <link.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace llm::cuda_on_cpu {
namespace {

using Ranges = std::vector<std::pair<uintptr_t, uintptr_t>>;

int AddRanges(dl_phdr_info* info, size_t /*size*/, void* data) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    // RELRO pages are constants too, once the program runs.
    const bool relocated = segment.p_type == PT_GNU_RELRO;
    if (!relocated && (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0)) continue;
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    static_cast<Ranges*>(data)->push_back({begin, begin + segment.p_memsz});
  }
  return 0;
}

}  // namespace

bool IsReadOnlyData(const void* address, size_t bytes) {
  static const Ranges ranges = [] {
    Ranges found;
    dl_iterate_phdr(AddRanges, &found);
    return found;
  }();
  const auto begin = reinterpret_cast<uintptr_t>(address);
  for (const auto& [first, last] : ranges) {
    if (begin >= first && begin + bytes <= last) return true;
  }
  return false;
}

}  // namespace llm::cuda_on_cpu
