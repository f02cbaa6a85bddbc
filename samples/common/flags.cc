// Values are read whole or not at all: "12x" is no number.
#include "common/flags.h"

#include <errno.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <type_traits>
#include <utility>

namespace tools {
namespace {

template <typename T>
bool ReadNumber(const std::string& text, T* value) {
  if (std::is_unsigned_v<T> && text.find('-') == 0) return false;
  std::istringstream stream(text);
  T read{};
  if (!(stream >> read) || stream.peek() != EOF) return false;
  *value = read;
  return true;
}

}  // namespace

void Fail(const std::string& message) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, message.c_str());
  std::exit(1);
}

void Check(llm_status status) {
  if (status != LLM_OK) Fail(std::string(llm_status_name(status)) + ": " + llm_last_error());
}

void FlagTable::Add(std::string name, std::string help, FlagTarget target) {
  flags_.push_back({std::move(name), std::move(help), std::move(target)});
}

const FlagTable::Flag* FlagTable::Find(const std::string& name) const {
  for (const Flag& flag : flags_)
    if (flag.name == name) return &flag;
  return nullptr;
}

const FlagTable::Flag* FlagTable::NextPositional() const {
  for (const std::string& name : positionals_)
    if (const Flag* flag = Find(name); !flag->given) return flag;
  return nullptr;
}

bool FlagTable::Given(const std::string& name) const {
  const Flag* flag = Find(name);
  return flag != nullptr && flag->given;
}

std::string FlagTable::Synopsis() const {
  return std::string("usage: ") + program_invocation_short_name + " " + synopsis_;
}

std::string FlagTable::Usage() const {
  std::string usage = Synopsis();
  for (const Flag& flag : flags_) {
    const size_t width = flag.name.size() < 20 ? 20 - flag.name.size() : 1;
    usage += "\n  " + flag.name + std::string(width, ' ') + flag.help;
  }
  return usage + "\n";
}

void FlagTable::FailUsage(const std::string& message) const {
  std::fprintf(stderr, "%s: %s\n%s; --help lists the flags\n", program_invocation_short_name,
               message.c_str(), Synopsis().c_str());
  std::exit(2);
}

std::string FlagTable::SetValue(const Flag& flag, const std::string& value) const {
  const auto set = [&](const auto& target) -> std::string {
    using Target = std::decay_t<decltype(target)>;
    if constexpr (std::is_same_v<Target, ParseValue>) {
      const std::string wrong = target(value);
      return wrong.empty() ? "" : flag.name + ": " + wrong;
    } else if constexpr (std::is_same_v<Target, bool*>) {
      if (value != "on" && value != "off") return flag.name + ": neither on nor off: " + value;
      *target = value == "on";
      return "";
    } else if constexpr (std::is_same_v<Target, std::string*>) {
      *target = value;
      return "";
    } else {
      if (ReadNumber(value, target)) return "";
      return flag.name + ": not a number that it takes: " + value;
    }
  };
  return std::visit(set, flag.target);
}

std::string FlagTable::Set(const std::string& assignment) const {
  const size_t equals = assignment.find('=');
  const Flag* flag = Find("--" + assignment.substr(0, equals));
  if (flag == nullptr) return "unknown: " + assignment;
  if (equals != std::string::npos) return SetValue(*flag, assignment.substr(equals + 1));
  if (!std::holds_alternative<bool*>(flag->target)) return "without a value: " + assignment;
  return SetValue(*flag, "on");
}

void FlagTable::Parse(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    if (name == "--help") {
      std::fputs(Usage().c_str(), stdout);
      std::exit(0);
    }
    std::string value = "on";
    const Flag* flag = Find(name);
    if (flag == nullptr && !positionals_.empty() && name.compare(0, 2, "--") != 0) {
      flag = NextPositional();
      if (flag == nullptr) FailUsage("one argument too many: " + name);
      value = name;
    } else if (flag == nullptr) {
      FailUsage("unknown flag: " + name);
    } else if (!std::holds_alternative<bool*>(flag->target)) {
      if (i + 1 >= argc) FailUsage("a flag without its value: " + name);
      value = argv[++i];
    }
    const std::string wrong = SetValue(*flag, value);
    if (!wrong.empty()) FailUsage(wrong);
    flags_[static_cast<size_t>(flag - flags_.data())].given = true;
  }
}

std::string ParseIds(const std::string& text, std::vector<int32_t>* ids) {
  std::string plain;
  for (const char c : text)
    if (c != '[' && c != ']' && c != ' ' && c != '\n') plain += c;
  std::istringstream parts(plain);
  ids->clear();
  for (std::string part; std::getline(parts, part, ',');) {
    int32_t id = 0;
    if (!ReadNumber(part, &id)) return "not a token id: " + part.substr(0, 40);
    ids->push_back(id);
  }
  return "";
}

std::string ParseBytes(const std::string& text, uint64_t* bytes) {
  constexpr std::pair<const char*, double> kUnits[] = {{"KiB", 1024.0},
                                                       {"MiB", 1024.0 * 1024},
                                                       {"GiB", 1024.0 * 1024 * 1024},
                                                       {"TiB", 1099511627776.0},
                                                       {"KB", 1e3},
                                                       {"MB", 1e6},
                                                       {"GB", 1e9},
                                                       {"TB", 1e12},
                                                       {"", 1.0}};
  for (const auto& [unit, factor] : kUnits) {
    const std::string suffix = unit;
    if (text.size() <= suffix.size() ||
        text.compare(text.size() - suffix.size(), suffix.size(), suffix) != 0)
      continue;
    double number = 0;
    if (!ReadNumber(text.substr(0, text.size() - suffix.size()), &number)) break;
    if (!(number >= 0 && number * factor < 1e18)) break;
    *bytes = static_cast<uint64_t>(number * factor);
    return "";
  }
  return "not a number of bytes, such as 512MiB or 2GB: " + text;
}

}  // namespace tools
