// Spans of threads become complete ("X") events, those of requests async ("b", "e") ones, since
// requests overlap.
#include "src/base/trace.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace llm {
namespace {

// Times relative to the first, so that they stay exact as doubles in the reader.
int64_t FirstNs(absl::Span<const TraceSpan> spans) {
  int64_t first_ns = spans.empty() ? 0 : spans[0].begin_ns;
  for (const TraceSpan& span : spans)
    first_ns = span.begin_ns < first_ns ? span.begin_ns : first_ns;
  return first_ns;
}

// Microseconds with their nanoseconds. REQUIRES: ns >= 0.
std::string Micros(int64_t ns) {
  const std::string fraction = absl::StrCat(1000 + ns % 1000);
  return absl::StrCat(ns / 1000, ".", absl::string_view(fraction).substr(1));
}

std::string Args(const TraceSpan& span) {
  std::string out = "{";
  for (const TraceArg& arg : span.args) {
    if (arg.name == nullptr) continue;
    absl::StrAppend(&out, out.size() > 1 ? "," : "", "\"", arg.name, "\":", arg.value);
  }
  return out + "}";
}

std::string ThreadEvent(const TraceSpan& span, int64_t first_ns) {
  return absl::StrCat(R"({"ph":"X","pid":1,"tid":)", span.thread, R"(,"name":")", span.name,
                      R"(","ts":)", Micros(span.begin_ns - first_ns), R"(,"dur":)",
                      Micros(span.end_ns - span.begin_ns), R"(,"args":)", Args(span), "}");
}

std::string RequestEvent(const TraceSpan& span, bool begin, int64_t first_ns) {
  return absl::StrCat(R"({"ph":")", begin ? "b" : "e", R"(","cat":"request","pid":1,"tid":)",
                      span.thread, R"(,"id":)", span.id, R"(,"name":")", span.name, R"(","ts":)",
                      Micros((begin ? span.begin_ns : span.end_ns) - first_ns), R"(,"args":)",
                      begin ? Args(span) : "{}", "}");
}

// A thread has one name; the first role seen on it wins over those that come after.
std::string ThreadNames(absl::Span<const TraceSpan> spans) {
  std::map<uint32_t, const char*> names;
  for (const TraceSpan& span : spans) names.emplace(span.thread, span.role);
  std::string out;
  for (const auto& [thread, name] : names) {
    absl::StrAppend(&out, R"({"ph":"M","pid":1,"tid":)", thread,
                    R"(,"name":"thread_name","args":{"name":")", name, "\"}},\n");
  }
  return out;
}

bool Write(std::FILE* file, const std::string& text) {
  return std::fwrite(text.data(), 1, text.size(), file) == text.size();
}

// The first span of a request encloses those that follow: where times are equal, readers nest by
// the order in the file.
std::string RequestEvents(absl::Span<const TraceSpan> spans, int64_t first_ns) {
  std::string out = RequestEvent(spans[0], true, first_ns) + ",\n";
  for (const TraceSpan& span : spans.subspan(1)) {
    absl::StrAppend(&out, RequestEvent(span, true, first_ns), ",\n",
                    RequestEvent(span, false, first_ns), ",\n");
  }
  return out + RequestEvent(spans[0], false, first_ns) + ",\n";
}

bool WriteTrace(std::FILE* file, absl::Span<const TraceSpan> spans, uint64_t num_dropped) {
  const int64_t first_ns = FirstNs(spans);
  bool ok =
      Write(file, absl::StrCat("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"dropped_spans\":",
                               num_dropped, "},\"traceEvents\":[\n")) &&
      Write(file, ThreadNames(spans));
  for (size_t begin = 0; ok && begin < spans.size();) {
    size_t end = begin + 1;
    if (spans[begin].id == 0) {
      ok = Write(file, ThreadEvent(spans[begin], first_ns) + ",\n");
    } else {
      while (end < spans.size() && spans[end].id == spans[begin].id) ++end;
      ok = Write(file, RequestEvents(spans.subspan(begin, end - begin), first_ns));
    }
    begin = end;
  }
  // The event without a comma after it, which ends the array.
  return ok && Write(file, R"({"ph":"M","pid":1,"name":"process_name","args":{"name":"inlay"}}]})");
}

}  // namespace

absl::Status TraceRecorder::Start(const std::string& path) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (file_ != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("trace: already writes to ", path_));
  }
  std::vector<TraceSpan> room;
  room.reserve(max_spans_);
  std::string kept = path;
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "we"));
  if (file == nullptr) {
    const int error = errno;
    return absl::ErrnoToStatus(error, absl::StrCat("trace: ", path));
  }
  path_ = std::move(kept);
  spans_ = std::move(room);
  file_ = std::move(file);
  num_dropped_ = 0;
  on_.store(true, std::memory_order_relaxed);
  return absl::OkStatus();
}

void TraceRecorder::Add(absl::Span<const TraceSpan> spans) {
  if (!on()) return;
  const uint32_t thread = static_cast<uint32_t>(syscall(SYS_gettid));
  std::lock_guard<std::mutex> lock(mutex_);
  if (file_ == nullptr) return;
  if (spans_.size() + spans.size() > max_spans_) {
    num_dropped_ += spans.size();
    return;
  }
  for (TraceSpan span : spans) {
    span.thread = thread;
    if (span.end_ns < span.begin_ns) span.end_ns = span.begin_ns;
    spans_.push_back(span);  // within the capacity that Start reserved
  }
}

absl::Status TraceRecorder::Stop() {
  std::unique_ptr<std::FILE, CloseFile> file;
  std::vector<TraceSpan> spans;
  std::string path;
  uint64_t num_dropped = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (file_ == nullptr) return absl::FailedPreconditionError("trace: none was started");
    on_.store(false, std::memory_order_relaxed);
    file = std::move(file_);
    spans.swap(spans_);
    path.swap(path_);
    num_dropped = num_dropped_;
  }
  const bool written = WriteTrace(file.get(), spans, num_dropped);
  if (std::fclose(file.release()) != 0 || !written) {
    return absl::DataLossError(absl::StrCat("trace: ", path, " could not be written completely"));
  }
  return absl::OkStatus();
}

}  // namespace llm
