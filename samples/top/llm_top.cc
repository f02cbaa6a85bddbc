// llm-top: a terminal view of a running process's counters, from the file or the unix socket that
// it offers (--metrics-file and --metrics-socket of the other tools).
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>

#include "common/flags.h"
#include "top/prometheus.h"
#include "top/source.h"
#include "top/view.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Flags {
  std::string source;
  double interval_s = 1;
  unsigned count = 0;  // 0: until interrupted
};

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  bool once = false;
  tools::FlagTable table("FILE_OR_SOCKET [flag ...]");
  table.Add("--source", "what a process writes its counters to", &flags.source);
  table.SetPositional("--source");
  table.Add("--interval", "seconds between two looks (1)", &flags.interval_s);
  table.Add("--count", "so many looks; default: until interrupted", &flags.count);
  table.Add("--once", "one look, without rates", &once);
  table.Parse(argc, argv);
  if (flags.source.empty()) table.FailUsage("the file or socket is missing");
  if (!(flags.interval_s >= 0.01 && flags.interval_s <= 3600))
    table.FailUsage("--interval: not in [0.01, 3600]");
  if (once) flags.count = 1;
  return flags;
}

// On a terminal a frame replaces the last; in a pipe frames follow each other.
void Show(const std::string& frame, bool terminal) {
  const std::string text = terminal ? "\x1b[H\x1b[2J" + frame : frame + "\n";
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
    tools::Fail("cannot write the view");
}

struct Look {
  top::Snapshot snapshot;
  Clock::time_point time;
};

}  // namespace

int main(int argc, char** argv) {
  const Flags flags = ParseFlags(argc, argv);
  const bool terminal = flags.count != 1 && isatty(STDOUT_FILENO) != 0;
  std::optional<Look> before;
  for (unsigned i = 0; flags.count == 0 || i < flags.count; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::duration<double>(flags.interval_s));
    std::string text;
    std::string wrong = top::ReadSource(flags.source, &text);
    Look now = {{}, Clock::now()};
    if (wrong.empty()) wrong = now.snapshot.Parse(text);
    if (!wrong.empty()) {
      // A host that is not there yet, or any more, may come back.
      if (flags.count == 1) tools::Fail(wrong);
      Show("llm-top   waiting: " + wrong + "\n", terminal);
      continue;
    }
    const double seconds =
        before ? std::chrono::duration<double>(now.time - before->time).count() : 0;
    Show(top::View(now.snapshot, before ? &before->snapshot : nullptr, seconds), terminal);
    before = std::move(now);
  }
  return 0;
}
