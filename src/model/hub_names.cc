// A name is a run of the characters that names have; a full stop or colon behind it is none.
#include "src/model/hub_names.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace llm {
namespace {

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
}

}  // namespace

absl::Status HubNames::Explain(const absl::Status& status) const {
  if (status.ok()) return status;
  std::string text;
  absl::string_view rest = status.message();
  while (!rest.empty()) {
    size_t length = 0;
    while (length < rest.size() && IsNameCharacter(rest[length])) ++length;
    if (length == 0) {
      text += rest[0];
      rest.remove_prefix(1);
      continue;
    }
    const auto found = hub_.find(rest.substr(0, length));
    if (found == hub_.end()) {
      absl::StrAppend(&text, rest.substr(0, length));
    } else {
      absl::StrAppend(&text, found->second, " (", found->first, ")");
    }
    rest.remove_prefix(length);
  }
  return absl::Status(status.code(), text);
}

}  // namespace llm
