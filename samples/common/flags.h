// A command line as a table, so that usage and parser cannot disagree; and how the tools fail.
#pragma once

#include <inlay/llm.h>

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace tools {

// Prints "<program>: <message>" on stderr and exits with 1.
[[noreturn]] void Fail(const std::string& message);
// Fails with the name and the message of a status that is not LLM_OK.
void Check(llm_status status);

// Takes a value and returns what is wrong with it; empty: nothing.
using ParseValue = std::function<std::string(const std::string&)>;
// Where a flag's value goes. A bool* takes no value and becomes true.
using FlagTarget =
    std::variant<bool*, std::string*, int*, unsigned*, uint64_t*, float*, double*, ParseValue>;

class FlagTable {
 public:
  // `synopsis` is what follows the program's name in the usage.
  explicit FlagTable(std::string synopsis) : synopsis_(std::move(synopsis)) {}

  void Add(std::string name, std::string help, FlagTarget target);
  // The arguments without a name, in their order: each is also what the flag of that name sets.
  void SetPositionals(std::vector<std::string> names) { positionals_ = std::move(names); }
  void SetPositional(const std::string& name) { SetPositionals({name}); }

  // Prints what is wrong and the synopsis on stderr and exits with 2; with --help, prints all flags
  // on stdout and exits with 0.
  void Parse(int argc, char** argv);
  [[noreturn]] void FailUsage(const std::string& message) const;

  // Sets one flag, named without its dashes, from text such as "kv-dtype=fp8" or "json"; returns
  // what is wrong.
  std::string Set(const std::string& assignment) const;
  // Whether it was on the command line.
  bool Given(const std::string& name) const;

 private:
  struct Flag {
    std::string name, help;
    FlagTarget target;
    bool given = false;
  };

  const Flag* Find(const std::string& name) const;
  const Flag* NextPositional() const;  // null: all are given
  std::string Synopsis() const;
  std::string Usage() const;
  std::string SetValue(const Flag& flag, const std::string& value) const;

  std::string synopsis_;
  std::vector<std::string> positionals_;
  std::vector<Flag> flags_;
};

// "1,2,3", with spaces, newlines and brackets as JSON has them, into *ids.
std::string ParseIds(const std::string& text, std::vector<int32_t>* ids);
// "512", "64KiB", "1.5GiB", "2GB" in bytes, into *bytes.
std::string ParseBytes(const std::string& text, uint64_t* bytes);

}  // namespace tools
