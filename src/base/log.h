// The one log sink: a callback of the host with its user data. Silent without it; never a prompt or
// an output.
#pragma once

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace llm {

enum class LogLevel : int32_t { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3 };

class Logger {
 public:
  using Callback = void (*)(void* user_data, int32_t level, const char* message,
                            uint64_t message_size);

  Logger() = default;
  Logger(Callback callback, void* user_data) : callback_(callback), user_data_(user_data) {}

  template <typename... Args>
  void Info(const Args&... args) const {
    Write(LogLevel::kInfo, args...);
  }
  template <typename... Args>
  void Warning(const Args&... args) const {
    Write(LogLevel::kWarning, args...);
  }
  template <typename... Args>
  void Error(const Args&... args) const {
    Write(LogLevel::kError, args...);
  }

 private:
  template <typename... Args>
  void Write(LogLevel level, const Args&... args) const {
    if (callback_ == nullptr) return;
    const std::string message = absl::StrCat(args...);
    callback_(user_data_, static_cast<int32_t>(level), message.data(), message.size());
  }

  Callback callback_ = nullptr;
  void* user_data_ = nullptr;
};

}  // namespace llm
