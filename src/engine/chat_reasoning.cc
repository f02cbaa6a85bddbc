// Only chats that speak of reasoning are parsed: most do not.
#include "src/engine/chat_reasoning.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace llm {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kNames[] = {"reasoning_content", "thinking", "reasoning"};

bool SpeaksOfReasoning(const std::string& context) {
  return context.find("\"reasoning") != std::string::npos ||
         context.find("\"thinking\"") != std::string::npos;
}

void NameReasoning(Json* message) {
  for (const char* name : kNames) {
    const auto found = message->find(name);
    if (found == message->end() || found->is_null()) continue;
    const Json reasoning = *found;
    // `thinking` comes first, where a template shows members in their order.
    Json named = Json::object();
    if (!message->contains("thinking")) named["thinking"] = reasoning;
    for (auto& [key, value] : message->items()) named[key] = std::move(value);
    named["reasoning_content"] = reasoning;
    *message = std::move(named);
    return;
  }
}

}  // namespace

std::string WithReasoningNames(std::string context) {
  if (!SpeaksOfReasoning(context)) return context;
  Json json = Json::parse(context, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json["messages"].is_array()) return context;
  for (Json& message : json["messages"]) {
    if (message.is_object()) NameReasoning(&message);
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace llm
