// Event to llm_event, for queues and callbacks.
#pragma once

#include "inlay/llm.h"
#include "src/engine/events.h"

namespace llm {

// Lends what `event` lends.
llm_event TranslateEvent(const Event& event);

EventHandler MakeHandler(llm_event_callback on_event);

}  // namespace llm
