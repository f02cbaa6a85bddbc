inlay_test(templates_golden_test SOURCES templates_golden_test.cc
           DEPS inlay_engine inlay_chat_template nlohmann_json::nlohmann_json)
