// Builds values straight from the parser's events: nothing recurses, and each event is checked
// before it is kept.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/json.h"

namespace llm::jinja {
namespace {

// Receives nlohmann's SAX events; a false return stops the parser, and `status` says why.
class ValueBuilder {
 public:
  using number_integer_t = int64_t;
  using number_unsigned_t = uint64_t;
  using number_float_t = double;
  using string_t = std::string;
  using binary_t = nlohmann::json::binary_t;

  explicit ValueBuilder(Runtime& runtime) : runtime_(runtime) {}

  bool null() { return Add(Value::None()); }
  bool boolean(bool value) { return Add(Value::Bool(value)); }
  bool number_integer(number_integer_t value) { return Add(Value::Int(value)); }
  bool number_unsigned(number_unsigned_t value) {
    if (value > INT64_MAX) return Fail(TooLarge(absl::StrCat(value)));
    return Add(Value::Int(static_cast<int64_t>(value)));
  }
  bool number_float(number_float_t value, const string_t& text) {
    // Integers too long for 64 bits arrive here too; as a float they would print as another number.
    if (text.find_first_of(".eE") == string_t::npos) return Fail(TooLarge(text));
    return Add(Value::Float(value));
  }
  bool string(string_t& value) {
    const LiteralScope literal(runtime_, runtime_.marks_literal() && !BelongsToTemplate());
    return AddOr(runtime_.NewText(std::move(value)));
  }
  bool binary(binary_t&) { return Fail(absl::InvalidArgumentError("binary value")); }
  bool start_object(std::size_t) { return Open(true); }
  bool start_array(std::size_t) { return Open(false); }
  bool key(string_t& name) {
    open_.back().key = std::move(name);
    return true;
  }
  bool end_object() {
    Dict dict = std::move(open_.back().dict);
    open_.pop_back();
    return AddOr(runtime_.NewDict(std::move(dict)));
  }
  bool end_array() {
    std::vector<Value> items = std::move(open_.back().items);
    open_.pop_back();
    return AddOr(runtime_.NewList(std::move(items)));
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
    return Fail(absl::InvalidArgumentError(absl::StrCat("bad JSON near byte ", position)));
  }

  const absl::Status& status() const { return status_; }
  Value TakeResult() { return std::move(result_); }

 private:
  struct Level {
    bool object;
    Dict dict;
    std::vector<Value> items;
    std::string key;
  };

  static absl::Status TooLarge(const std::string& text) {
    return absl::InvalidArgumentError(
        absl::StrCat("JSON integer ", text.substr(0, 40), " does not fit 64 bits"));
  }

  bool Fail(absl::Status status) {
    status_ = std::move(status);
    return false;
  }

  bool Open(bool object) {
    if (open_.size() >= runtime_.budget().max_value_depth()) {
      return Fail(absl::ResourceExhaustedError(
          absl::StrCat("JSON nests deeper than ", runtime_.budget().max_value_depth())));
    }
    open_.push_back({object, {}, {}, {}});
    return true;
  }

  // The host's own variables beside the messages (bos_token and the like), and the role of a
  // message, of which templates make control tokens.
  bool BelongsToTemplate() const {
    if (open_.size() <= 1) return true;
    return open_.size() == 3 && open_[0].key == "messages" && open_[2].key == "role";
  }

  bool AddOr(absl::StatusOr<Value> value) {
    return value.ok() ? Add(*std::move(value)) : Fail(value.status());
  }

  bool Add(Value value) {
    if (open_.empty()) {
      result_ = std::move(value);
      return true;
    }
    Level& parent = open_.back();
    if (!parent.object) {
      const absl::Status charged = runtime_.budget().ChargeBytes(2 * sizeof(Value));
      if (!charged.ok()) return Fail(charged);
      parent.items.push_back(std::move(value));
      return true;
    }
    const LiteralScope literal(runtime_, runtime_.marks_literal());
    absl::StatusOr<Value> key = runtime_.NewText(std::move(parent.key));
    if (!key.ok()) return Fail(key.status());
    const absl::Status added = runtime_.AddEntry(&parent.dict, *std::move(key), std::move(value));
    return added.ok() || Fail(added);
  }

  Runtime& runtime_;
  std::vector<Level> open_;
  Value result_ = Value::None();
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Value> ParseJson(Runtime& runtime, absl::string_view text) {
  ValueBuilder builder(runtime);
  const bool parsed = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  LLM_RETURN_IF_ERROR(builder.status());
  if (!parsed) return absl::InvalidArgumentError("bad JSON");
  return builder.TakeResult();
}

}  // namespace llm::jinja
