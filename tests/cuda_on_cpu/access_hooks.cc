// What the compiler calls before each memory access of device code: that code is compiled, not
// linked, with -fsanitize=thread,alignment, and these functions take the place of the sanitizers'
// libraries.
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "tests/cuda_on_cpu/block.h"

using llm::cuda_on_cpu::CheckAccess;

namespace {

// What -fsanitize=alignment passes, as far as it is read here.
struct TypeMismatch {
  const char* file;
  uint32_t line;
  uint32_t column;
  const void* type;
  unsigned char log_alignment;
};

}  // namespace

#define LLM_ACCESS_HOOKS(size)                                                           \
  void __tsan_read##size(void* address) { CheckAccess(address, size, false); }           \
  void __tsan_write##size(void* address) { CheckAccess(address, size, true); }           \
  void __tsan_volatile_read##size(void* address) { CheckAccess(address, size, false); }  \
  void __tsan_volatile_write##size(void* address) { CheckAccess(address, size, true); }  \
  void __tsan_unaligned_read##size(void* address) { CheckAccess(address, size, false); } \
  void __tsan_unaligned_write##size(void* address) { CheckAccess(address, size, true); }

extern "C" {

LLM_ACCESS_HOOKS(1)
LLM_ACCESS_HOOKS(2)
LLM_ACCESS_HOOKS(4)
LLM_ACCESS_HOOKS(8)
LLM_ACCESS_HOOKS(16)
void __tsan_read_range(void* address, size_t size) { CheckAccess(address, size, false); }
void __tsan_write_range(void* address, size_t size) { CheckAccess(address, size, true); }
// A pointer is used for a type that it is not aligned to: known before the compiler takes a
// vector's access apart.
void __ubsan_handle_type_mismatch_v1(const TypeMismatch* found, uintptr_t address) {
  if (!llm::cuda_on_cpu::InKernel()) return;
  llm::cuda_on_cpu::Fault(absl::StrCat(found->file, ":", found->line, ": address ",
                                       absl::Hex(address), " is not a multiple of ",
                                       1 << found->log_alignment));
}
void __tsan_vptr_update(void* /*pointer*/, void* /*value*/) {}
void __tsan_func_entry(void* /*caller*/) {}
void __tsan_func_exit() {}
void __tsan_init() {}

}  // extern "C"
#undef LLM_ACCESS_HOOKS
