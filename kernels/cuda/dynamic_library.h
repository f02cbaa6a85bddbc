// Libraries that are opened at run time, so that machines without them can load ours.
#pragma once

namespace llm {

// Null when there is no such library. It stays open: work of its own may outlive who opened it.
void* OpenLibrary(const char* name);
// Null when the library has no such symbol.
void* FindSymbol(void* library, const char* symbol);

}  // namespace llm
