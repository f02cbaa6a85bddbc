// Where a request's time went. Each call moves one mark forward, so that the parts add up to the
// whole whatever happens.
#pragma once

#include <cstdint>

namespace llm {

struct RequestTimes {
  int64_t queue_ns = 0;    // until it was first scheduled
  int64_t prefill_ns = 0;  // inside its steps, until its first token
  int64_t stall_ns = 0;    // scheduled before, but in no step that counted
  int64_t decode_ns = 0;   // inside its steps, from its first token on
  int64_t deliver_ns = 0;  // from the end of its last step, or its end between two, to FINISHED
};

class RequestClock {
 public:
  explicit RequestClock(int64_t arrival_ns) : arrival_ns_(arrival_ns), mark_ns_(arrival_ns) {}

  // It was in a committed step from begin_ns up to now; called once or twice a step.
  void AddStep(int64_t begin_ns, int64_t now_ns, bool has_token) {
    MoveTo(begin_ns, scheduled_ ? &times_.stall_ns : &times_.queue_ns);
    MoveTo(now_ns, has_token ? &times_.decode_ns : &times_.prefill_ns);
    scheduled_ = true;
  }
  // It ended at end_ns, maybe inside its last step, and its FINISHED leaves now.
  void Finish(int64_t end_ns, int64_t now_ns) {
    MoveTo(end_ns, scheduled_ ? &times_.stall_ns : &times_.queue_ns);
    MoveTo(now_ns, scheduled_ ? &times_.deliver_ns : &times_.queue_ns);
  }

  const RequestTimes& times() const { return times_; }
  int64_t total_ns() const { return mark_ns_ - arrival_ns_; }  // the sum of the parts

 private:
  // A clock of the host's that runs backwards adds nothing.
  void MoveTo(int64_t now_ns, int64_t* part) {
    if (now_ns <= mark_ns_) return;
    *part += now_ns - mark_ns_;
    mark_ns_ = now_ns;
  }

  const int64_t arrival_ns_;
  int64_t mark_ns_;
  bool scheduled_ = false;
  RequestTimes times_;
};

}  // namespace llm
