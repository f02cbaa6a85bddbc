// llm-top: a terminal view of a running process's counters, from the file or the unix socket that
// it offers (--metrics-file and --metrics-socket of the other tools).
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>

#include "common/flags.h"
#include "common/text.h"
#include "top/prometheus.h"
#include "top/source.h"
#include "top/view.h"

namespace {

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
  double time_s = 0;
};

// The next frame; keeps the look that it shows as the one before. A file that was not rewritten
// since gives the last frame again, with its age once it is late.
std::string NextFrame(const Flags& flags, std::optional<Look>* before, std::string* frame) {
  top::Reading reading;
  std::string wrong = top::ReadSource(flags.source, &reading);
  Look now;
  now.time_s = reading.time_s;
  if (wrong.empty()) wrong = now.snapshot.Parse(reading.text);
  // A host that is not there yet, or any more, may come back.
  if (!wrong.empty() && flags.count == 1) tools::Fail(wrong);
  if (!wrong.empty()) return "llm-top   waiting: " + wrong + "\n";
  if (*before && now.time_s == (*before)->time_s) {
    const double age_s = top::NowSeconds() - now.time_s;
    return age_s < 5 ? *frame : *frame + tools::Format("written %.0f s ago\n", age_s);
  }
  const double seconds = *before ? now.time_s - (*before)->time_s : 0;
  *frame = top::View(now.snapshot, *before ? &(*before)->snapshot : nullptr, seconds);
  *before = std::move(now);
  return *frame;
}

}  // namespace

int main(int argc, char** argv) {
  const Flags flags = ParseFlags(argc, argv);
  const bool terminal = flags.count != 1 && isatty(STDOUT_FILENO) != 0;
  std::optional<Look> before;
  std::string frame;
  for (unsigned i = 0; flags.count == 0 || i < flags.count; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::duration<double>(flags.interval_s));
    Show(NextFrame(flags, &before, &frame), terminal);
  }
  return 0;
}
