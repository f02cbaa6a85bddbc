// Starts the library's threads: guests of the process, which leave its signals to the host.
#pragma once

#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace llm {

// Starts `body` with every signal blocked but those that its own instructions raise and the
// profiler's. RESOURCE_EXHAUSTED, naming `what`, when there is no thread or no memory for one.
absl::Status StartThread(absl::string_view what, std::function<void()> body, std::thread* thread);

}  // namespace llm
