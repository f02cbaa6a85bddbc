// Spans of threads become complete ("X") events, those of requests async ("b", "e") ones, since
// requests overlap.
#include "src/base/trace.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/output_file.h"

namespace llm {
namespace {

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

std::string OpEvent(const OpSpan& op, uint32_t thread, int64_t first_ns) {
  TraceSpan span;
  span.name = op.name;
  span.begin_ns = op.begin_ns;
  span.end_ns = std::max(op.begin_ns, op.end_ns);
  span.thread = thread;
  return ThreadEvent(span, first_ns);
}

// A thread has one name; the first role seen on it wins over those that come after.
std::string ThreadNames(absl::Span<const TraceSpan> spans, absl::Span<const uint32_t> workers) {
  std::map<uint32_t, std::string> names;
  for (const TraceSpan& span : spans) names.emplace(span.thread, span.role);
  for (size_t i = 0; i < workers.size(); ++i) {
    if (workers[i] != 0) names.emplace(workers[i], absl::StrCat("worker ", i));
  }
  std::string out;
  for (const auto& [thread, name] : names) {
    absl::StrAppend(&out, R"({"ph":"M","pid":1,"tid":)", thread,
                    R"(,"name":"thread_name","args":{"name":")", name, "\"}},\n");
  }
  return out;
}

bool WriteText(std::FILE* file, const std::string& text) {
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

}  // namespace

bool TraceRecorder::Write(std::FILE* file, const Contents& contents) {
  const absl::Span<const TraceSpan> spans = contents.spans;
  // Times relative to the first, so that they stay exact as doubles in the reader.
  int64_t first_ns = std::numeric_limits<int64_t>::max();
  for (const TraceSpan& span : spans) first_ns = std::min(first_ns, span.begin_ns);
  for (const std::vector<OpSpan>& ops : contents.ops) {
    for (const OpSpan& op : ops) first_ns = std::min(first_ns, op.begin_ns);
  }
  bool ok =
      WriteText(file, absl::StrCat("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"dropped_spans\":",
                                   contents.num_dropped, "},\"traceEvents\":[\n")) &&
      WriteText(file, ThreadNames(spans, contents.op_threads));
  for (size_t begin = 0; ok && begin < spans.size();) {
    size_t end = begin + 1;
    if (spans[begin].id == 0) {
      ok = WriteText(file, ThreadEvent(spans[begin], first_ns) + ",\n");
    } else {
      while (end < spans.size() && spans[end].id == spans[begin].id) ++end;
      ok = WriteText(file, RequestEvents(spans.subspan(begin, end - begin), first_ns));
    }
    begin = end;
  }
  for (size_t i = 0; i < contents.ops.size(); ++i) {
    for (size_t k = 0; ok && k < contents.ops[i].size(); ++k) {
      ok = WriteText(file, OpEvent(contents.ops[i][k], contents.op_threads[i], first_ns) + ",\n");
    }
  }
  // The event without a comma after it, which ends the array.
  return ok &&
         WriteText(file, R"({"ph":"M","pid":1,"name":"process_name","args":{"name":"inlay"}}]})");
}

void TraceRecorder::SetWorkers(int num_workers) {
  while (ops_.size() < static_cast<size_t>(num_workers)) ops_.push_back(std::make_unique<Ops>());
}

absl::Status TraceRecorder::Start(const std::string& path) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (file_ != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("trace: already writes to ", path_));
  }
  std::vector<TraceSpan> room;
  room.reserve(max_spans_);
  std::vector<std::vector<OpSpan>> op_room(ops_.size());
  for (std::vector<OpSpan>& of_worker : op_room) of_worker.resize(max_ops_ / ops_.size());
  std::string kept = path;
  std::unique_ptr<std::FILE, CloseFile> file(OpenOutputFile(path));
  if (file == nullptr) {
    const int error = errno;
    return absl::ErrnoToStatus(error, absl::StrCat("trace: ", path));
  }
  path_ = std::move(kept);
  spans_ = std::move(room);
  file_ = std::move(file);
  num_dropped_ = 0;
  for (size_t i = 0; i < ops_.size(); ++i) {
    std::lock_guard<std::mutex> ops_lock(ops_[i]->mutex);
    ops_[i]->room = std::move(op_room[i]);
    ops_[i]->num_spans = 0;
    ops_[i]->num_dropped = 0;
    ops_[i]->on = true;
  }
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

void TraceRecorder::AddOp(int worker, const OpSpan& op) {
  Ops& ops = *ops_[static_cast<size_t>(worker)];
  std::lock_guard<std::mutex> lock(ops.mutex);
  if (!ops.on) return;
  if (ops.num_spans == ops.room.size()) {
    ++ops.num_dropped;
    return;
  }
  // Asked once: a system call for each op would cost more than the rest of it.
  if (ops.thread == 0) ops.thread = static_cast<uint32_t>(syscall(SYS_gettid));
  ops.room[ops.num_spans++] = op;
}

void TraceRecorder::TakeOps(Contents* contents) {
  for (size_t i = 0; i < ops_.size(); ++i) {
    std::lock_guard<std::mutex> lock(ops_[i]->mutex);
    ops_[i]->on = false;
    ops_[i]->room.resize(ops_[i]->num_spans);
    contents->ops[i].swap(ops_[i]->room);
    contents->op_threads[i] = std::exchange(ops_[i]->thread, 0);
    contents->num_dropped += ops_[i]->num_dropped;
  }
}

absl::Status TraceRecorder::Stop() {
  std::unique_ptr<std::FILE, CloseFile> file;
  std::string path;
  Contents contents;
  contents.ops.resize(ops_.size());
  contents.op_threads.resize(ops_.size());
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (file_ == nullptr) return absl::FailedPreconditionError("trace: none was started");
    on_.store(false, std::memory_order_relaxed);
    file = std::move(file_);
    contents.spans.swap(spans_);
    path.swap(path_);
    contents.num_dropped = num_dropped_;
    TakeOps(&contents);
  }
  const ScopedQuietWrites quiet;
  const bool written = Write(file.get(), contents);
  if (std::fclose(file.release()) != 0 || !written) {
    return absl::DataLossError(absl::StrCat("trace: ", path, " could not be written completely"));
  }
  return absl::OkStatus();
}

}  // namespace llm
