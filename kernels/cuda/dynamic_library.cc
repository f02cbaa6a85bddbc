// The dynamic linker's.
#include "kernels/cuda/dynamic_library.h"

#include <dlfcn.h>

namespace llm {

void* OpenLibrary(const char* name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }

void* FindSymbol(void* library, const char* symbol) { return dlsym(library, symbol); }

}  // namespace llm
