// What real Jinja (3.1.6, set up as transformers does) refuses, we refuse: with a status, never
// otherwise.
#include "gtest/gtest.h"
#include "tests/unit/jinja/render.h"

namespace llm {
namespace {

TEST(JinjaErrorTest, RefusesUndefinedOperands) {
  for (const char* source : {
           "{{ missing + 1 }}",
           "{{ missing.x }}",
           "{{ d.x.y }}",
           "{{ missing() }}",
           "{{ missing['a'] }}",
           "{{ -missing }}",
           "{{ missing < 1 }}",
           "{{ missing|tojson }}",
           "{{ missing|int }}",
       }) {
    EXPECT_EQ(Code(source), absl::StatusCode::kInvalidArgument) << source;
  }
}

TEST(JinjaErrorTest, RefusesMixedOperands) {
  for (const char* source : {
           "{{ 'a' + 1 }}",
           "{{ 'a' + l }}",
           "{{ 1 < 'a' }}",
           "{{ [1] + (1,) }}",
           "{{ 1 in 'a' }}",
           "{{ 1 in 5 }}",
           "{{ none + 1 }}",
           "{{ {} < {} }}",
           "{{ l|tojson|map('x')|list }}",
       }) {
    EXPECT_EQ(Code(source), absl::StatusCode::kInvalidArgument) << source;
  }
}

TEST(JinjaErrorTest, RefusesDivisionByZero) {
  for (const char* source : {
           "{{ 1 / 0 }}",
           "{{ 1 // 0 }}",
           "{{ 1 % 0 }}",
           "{{ 1.0 / 0 }}",
           "{{ 0 ** -1 }}",
       }) {
    EXPECT_EQ(Code(source), absl::StatusCode::kInvalidArgument) << source;
  }
}

TEST(JinjaErrorTest, RefusesToChangeListsAndDicts) {
  for (const char* source : {
           "{{ l.append(1) }}",
           "{{ d.update({}) }}",
           "{{ d.pop('b') }}",
           "{{ l.sort() }}",
           "{% set d.x = 1 %}",
       }) {
    EXPECT_EQ(Code(source), absl::StatusCode::kInvalidArgument) << source;
  }
}

TEST(JinjaErrorTest, RefusesWrongCalls) {
  for (const char* source : {
           "{{ s() }}",
           "{{ range() }}",
           "{{ 'a'.split(1) }}",
           "{{ d.get() }}",
           "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}",
           "{% macro m(a) %}{% endmacro %}{{ m(b=2) }}",
           "{% for a, b in [1] %}{% endfor %}",
           "{% for a, b in [(1, 2, 3)] %}{% endfor %}",
           "{% for x in 5 %}{% endfor %}",
           "{{ l|nofilter }}",
           "{{ l is notest }}",
           "{{ l|join(',', x=1) }}",
           "{{ (l|map('string'))|tojson }}",
           "{{ (l|map('string'))|length }}",
           "{{ raise_exception('no') }}",
           "{{ 'a'|items|list }}",
           "{{ ''.format_map }}{{ 'a'.nomethod() }}",
           "{{ {[]: 1} }}",
           "{{ 'abc'.index('x') }}",
           "{{ '{} {}'.format(1) }}",
           "{{ '%s %s' % 'a' }}",
           "{{ '%s' % (1, 2) }}",
           "{{ 'a'[1:2:0] }}",
       }) {
    EXPECT_EQ(Code(source), absl::StatusCode::kInvalidArgument) << source;
  }
}

TEST(JinjaErrorTest, RefusesBadSyntax) {
  for (const char* source : {
           "{{ a b }}",
           "{{ }}",
           "{% if %}{% endif %}",
           "{% if a %}",
           "{% for x %}{% endfor %}",
           "{% endif %}",
           "{% nosuchtag %}",
           "{{ 'a }}",
           "{{ (1 }}",
           "{{ [1) }}",
           "{# a",
           "{% raw %}a",
           "{{ 1 +",
           "{% set = 1 %}",
           "{% set true = 1 %}",
           "{% macro m( %}{% endmacro %}",
           "{% for x in y %}{% else %}{% else %}{% endfor %}",
           "{{ a is b is c }}",
           "{{ f(a=1, 2) }}",
           "{{ a. }}",
           "{{ a[] }}",
           "{{ a | }}",
           "{% break %}",
           R"({{ '\x4' }})",
           "{{ a ! b }}",
           "{{ a } }",
           "{% call 5 %}{% endcall %}",
           "{% macro m(a=1, b) %}{% endmacro %}",
       }) {
    EXPECT_EQ(Code(source), absl::StatusCode::kInvalidArgument) << source;
  }
}

}  // namespace
}  // namespace llm
