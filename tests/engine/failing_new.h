// Replaces the global operator new of a test program, so that chosen allocations of the calling
// thread fail.
#pragma once

namespace llm {

// After `allocations` more that succeed, `length` fail; then all succeed again.
void FailAllocations(int allocations, int length);
// Back to normal; true when the failures had not begun.
bool StopFailing();

}  // namespace llm
