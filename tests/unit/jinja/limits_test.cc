// Templates that ask for too much get a status, quickly, and never the stack.
#include <pthread.h>

#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/unit/jinja/render.h"

namespace llm {
namespace {

std::string Repeat(absl::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out.append(text.data(), text.size());
  return out;
}

// Runs `work` on a thread with the small stack that an embedding host may give us.
void OnSmallStack(std::function<void()> work) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 512 * 1024), 0);
  pthread_t thread;
  const auto run = [](void* argument) -> void* {
    (*static_cast<std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &work), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

// A refusal is a limit met, or a syntax error that names the nesting.
void ExpectRefused(const std::string& source) {
  OnSmallStack([&source] {
    const absl::StatusCode code = Code(source);
    EXPECT_TRUE(code == absl::StatusCode::kResourceExhausted ||
                code == absl::StatusCode::kInvalidArgument)
        << source.substr(0, 200) << ": " << code;
  });
}

TEST(JinjaLimitsTest, RefusesEndlessWork) {
  ExpectRefused(
      "{% for a in range(100000) %}{% for b in range(100000) %}{% for c in range(100000) %}"
      "{% endfor %}{% endfor %}{% endfor %}");
  ExpectRefused("{{ range(10 ** 12) }}");
  ExpectRefused("{{ range(-9223372036854775807, 9223372036854775807)|list }}");
  ExpectRefused("{{ 9223372036854775807 + 1 }}");
  ExpectRefused("{{ 3 ** 9223372036854775807 }}");
  ExpectRefused(
      "{% set n = namespace(x=2) %}{% for i in range(99) %}{% set n.x = n.x * n.x %}{% endfor %}");
}

TEST(JinjaLimitsTest, RefusesGiantValues) {
  ExpectRefused("{{ 'a' * 10 ** 9 }}");
  ExpectRefused("{{ [1] * 9223372036854775807 }}");
  ExpectRefused("{{ ('a' * 10 ** 6) * 10 ** 6 }}");
  ExpectRefused("{% set x = 'a' * 10 ** 7 %}{{ [x] * 1000 | join }}{{ ([x] * 1000)|join }}");
  ExpectRefused("{{ 'a'|indent(10 ** 12, true) }}");
  ExpectRefused("{{ 'a'.center(10 ** 15) }}{{ '%1000000000000d' % 1 }}");
  ExpectRefused("{{ '{:>1000000000000}'.format(1) }}");
  ExpectRefused("{{ '%.1000000000f' % 1.0 }}");
  ExpectRefused("{{ ('a' * 10 ** 5).replace('', 'b' * 10 ** 5) }}");
  ExpectRefused("{{ [1]|batch(10 ** 12, 0)|list }}");
  ExpectRefused("{{ [1]|slice(10 ** 12)|list }}");
  ExpectRefused("{{ d|tojson(indent=10 ** 12) }}");
}

TEST(JinjaLimitsTest, RefusesDoublingInALoop) {
  const std::string loop = "{% for i in range(80) %}";
  ExpectRefused("{% set n = namespace(x='a') %}" + loop + "{% set n.x = n.x + n.x %}{% endfor %}");
  ExpectRefused("{% set n = namespace(x=[1]) %}" + loop + "{% set n.x = n.x + n.x %}{% endfor %}");
  // Sharing makes these lists small in memory and huge to print, write or compare.
  const std::string shared = "{% set n = namespace(x=[1], y=[1]) %}" + loop +
                             "{% set n.x = [n.x, n.x] %}{% set n.y = [n.y, n.y] %}{% endfor %}";
  ExpectRefused(shared + "{{ n.x }}");
  ExpectRefused(shared + "{{ n.x|tojson }}");
  ExpectRefused(shared + "{{ n.x == n.y }}");
  ExpectRefused(shared + "{{ n.x < n.y }}");
}

TEST(JinjaLimitsTest, RefusesTooMuchOutput) {
  ChatTemplateLimits limits;
  limits.max_output_bytes = 100;
  EXPECT_EQ(Code("{% for i in range(99) %}ab{% endfor %}", limits),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Code("{% for i in range(50) %}ab{% endfor %}", limits), absl::StatusCode::kOk);
}

TEST(JinjaLimitsTest, CountsSteps) {
  ChatTemplateLimits limits;
  limits.max_steps = 1000;
  EXPECT_EQ(Code("{% for i in range(10) %}{{ i }}{% endfor %}", limits), absl::StatusCode::kOk);
  EXPECT_EQ(Code("{% for i in range(1000) %}{% endfor %}", limits),
            absl::StatusCode::kResourceExhausted);
}

TEST(JinjaLimitsTest, RefusesEndlessRecursion) {
  ExpectRefused("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}");
  ExpectRefused(
      "{% macro f() %}{% if t %}{{ [f() ~ 1, {'a': f()}] }}{% endif %}{% endmacro %}{{ f() }}");
  ExpectRefused("{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}{% endmacro %}{{ f() }}");
  ExpectRefused("{% macro f(a=f()) %}{% endmacro %}{{ f() }}");
  ExpectRefused("{% for x in l recursive %}{{ loop(l) }}{% endfor %}");
  ExpectRefused("{{ 'a'|map(" + Repeat("'map',", 1000) + "'upper')|list }}");
}

TEST(JinjaLimitsTest, RefusesDeepNestingWhenParsing) {
  for (const int depth : {120, 1000, 100000}) {
    ExpectRefused("{{ " + Repeat("(", depth) + "1" + Repeat(")", depth) + "|nofilter }}");
    ExpectRefused("{{ " + Repeat("[", depth) + Repeat("]", depth) + "|nofilter }}");
    ExpectRefused("{{ " + Repeat("{1:", depth) + "1" + Repeat("}", depth) + "|nofilter }}");
    ExpectRefused("{{ " + Repeat("f(", depth) + Repeat(")", depth) + " }}");
    ExpectRefused("{{ " + Repeat("l[", depth) + "0" + Repeat("]", depth) + " }}");
    ExpectRefused("{{ " + Repeat("- ", depth) + "s }}");
    ExpectRefused("{{ " + Repeat("1 if 0 else ", depth) + "nofunction() }}");
    ExpectRefused(Repeat("{% if 1 %}", depth) + "{{ s() }}" + Repeat("{% endif %}", depth));
    ExpectRefused(Repeat("{% for x in l %}", depth) + "{{ s() }}" + Repeat("{% endfor %}", depth));
    ExpectRefused(Repeat("{% filter upper %}", depth) + "{{ s() }}" +
                  Repeat("{% endfilter %}", depth));
    ExpectRefused(Repeat("{% call(x) m() %}", depth) + Repeat("{% endcall %}", depth) +
                  "{{ s() }}");
    ExpectRefused("{% set " + Repeat("(", depth) + "a" + Repeat(")", depth) + " = s() %}");
    ExpectRefused("{{ " + Repeat("(1 or 1 and not 1 == 1 + 1 ~ 1 * 1 ** ", depth) + "1" +
                  Repeat(")", depth) + "|nofilter }}");
    ExpectRefused("{{ " + Repeat("l|map(", depth) + Repeat(")", depth) + " }}");
  }
}

TEST(JinjaLimitsTest, TakesLongFlatChains) {
  const std::string chain = "{{ (" + Repeat("1 + ", 5000) + "1) ~ (" + Repeat("not ", 5000) +
                            "1) ~ (" + Repeat("0 or ", 5000) + "2) ~ s" + Repeat("|string", 5000) +
                            " }}";
  OnSmallStack([&chain] { EXPECT_EQ(Rendered(chain), "5001True2Hello"); });
  const std::string branches =
      "{% if 0 %}" + Repeat("{% elif 0 %}", 5000) + "{% else %}x{% endif %}";
  OnSmallStack([&branches] { EXPECT_EQ(Rendered(branches), "x"); });
}

TEST(JinjaLimitsTest, RefusesDeepValues) {
  ExpectRefused(
      "{% set n = namespace(x=1) %}{% for i in range(1000) %}{% set n.x = [n.x] %}{% endfor %}");
  ExpectRefused(
      "{% set n = namespace(x=1) %}{% for i in range(1000) %}{% set n.x = {1: n.x} %}{% endfor %}");
  ExpectRefused("{% set n = namespace() %}{% set n.x = [n] %}{{ n }}");
  OnSmallStack([] {
    const std::string nested =
        "{% set n = namespace(x=1) %}{% for i in range(100) %}"
        "{% set n.x = [n.x] %}{% endfor %}";
    EXPECT_EQ(Rendered(nested + "{{ n.x }}"), Repeat("[", 100) + "1" + Repeat("]", 100));
    EXPECT_EQ(Rendered(nested + "{{ n.x|tojson }}"), Repeat("[", 100) + "1" + Repeat("]", 100));
  });
}

TEST(JinjaLimitsTest, WalksTheDeepestValuesOnASmallStack) {
  const std::string nested =
      "{% set n = namespace(x=1, y=1) %}{% for i in range(120) %}"
      "{% set n.x = [n.x] %}{% set n.y = {1: n.y} %}{% endfor %}{% set z = n.x + [] %}";
  OnSmallStack([&nested] {
    EXPECT_EQ(Rendered(nested + "{{ n.x == z }}{{ n.x < z }}{{ n.y == n.y }}"), "TrueFalseTrue");
    EXPECT_EQ(Rendered(nested + "{{ n.y|string|length }}"), absl::StrCat(120 * 5 + 1));
    EXPECT_EQ(Rendered(nested + "{{ n.y|tojson|length }}"), absl::StrCat(120 * 7 + 1));
  });
}

TEST(JinjaLimitsTest, RefusesBadContexts) {
  EXPECT_EQ(Render("", "[1]").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Render("", "").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Render("", R"({"a": )").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Render("", "{\"a\": \"\xff\"}").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Render("", R"({"a": 18446744073709551616})").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Render("", R"({"a": 1e999})").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Render("", "{\"a\": " + Repeat("[", 100000)).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(JinjaLimitsTest, RefusesBadSources) {
  EXPECT_EQ(Code("\xff"), absl::StatusCode::kInvalidArgument);
  ChatTemplateLimits limits;
  limits.max_template_bytes = 10;
  EXPECT_EQ(Code("01234567890", limits), absl::StatusCode::kResourceExhausted);
}

TEST(JinjaLimitsTest, SaysWhereAndWhy) {
  EXPECT_EQ(Rendered("a\n{{ 1 / 0 }}"), "chat template line 2: division by zero");
  EXPECT_EQ(Rendered("\n\n{{ raise_exception('no system role') }}"),
            "chat template line 3: function 'raise_exception': no system role");
  EXPECT_EQ(Rendered("{% if 1 %}\n{% endfor %}"), "chat template line 2: unknown tag 'endfor'");
}

}  // namespace
}  // namespace llm
