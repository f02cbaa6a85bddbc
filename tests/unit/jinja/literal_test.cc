// What of a rendered text is the template's own, and what the chat's data: shown in ‹›.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "src/tokenizer/chat_template.h"

namespace llm {
namespace {

constexpr char kContext[] = R"({
  "bos_token": "<s>",
  "messages": [{"role": "user", "content": " hi <x>, you "},
               {"role": "tool", "content": [{"text": "<"}, {"text": "x>"}], "n": 5}],
  "tools": [{"name": "f<x>"}]})";

std::string Marked(absl::string_view source) {
  const auto parsed = ChatTemplate::Parse(source, {});
  if (!parsed.ok()) return std::string(parsed.status().message());
  const auto rendered = (*parsed)->RenderMarked(kContext, 0);
  if (!rendered.ok()) return std::string(rendered.status().message());
  const auto plain = (*parsed)->Render(kContext, 0);
  EXPECT_TRUE(plain.ok() && *plain == rendered->text);
  std::string shown;
  size_t at = 0;
  for (const TextSpan& span : rendered->literal) {
    EXPECT_TRUE(span.begin < span.end && span.end <= rendered->text.size());
    EXPECT_TRUE(at == 0 || at < span.begin) << "spans must not touch";
    absl::StrAppend(&shown, rendered->text.substr(at, span.begin - at), "‹",
                    rendered->text.substr(span.begin, span.end - span.begin), "›");
    at = span.end;
  }
  return shown + rendered->text.substr(at);
}

// `m` is the user's message.
std::string MarkedMessage(absl::string_view expression) {
  return Marked(absl::StrCat("{% set m = messages[0] %}{{ ", expression, " }}"));
}

TEST(LiteralTest, ContentIsDataAndTheTemplateIsItself) {
  EXPECT_EQ(
      Marked("{{ bos_token }}{% for m in messages %}<x>{{ m.role }}: {{ m.content }}{% endfor %}"),
      "<s><x>user: ‹ hi <x>, you ›<x>tool: ‹[{'text': '<'}, {'text': 'x>'}]›");
  EXPECT_EQ(Marked("<{{ messages[0].role }}>{{ messages[1].n }}{{ tools[0].name }}"),
            "<user>5‹f<x>›");
}

TEST(LiteralTest, PartsOfDataAreData) {
  EXPECT_EQ(MarkedMessage("m.content | trim"), "‹hi <x>, you›");
  EXPECT_EQ(MarkedMessage("m.content.strip()"), "‹hi <x>, you›");
  EXPECT_EQ(MarkedMessage("m.content[4:7]"), "‹<x>›");
  EXPECT_EQ(MarkedMessage("m.content[4]"), "‹<›");
  EXPECT_EQ(MarkedMessage("m.content[::-1]"), "‹ uoy ,>x< ih ›");
  EXPECT_EQ(MarkedMessage("m.content.split('<x>')[1]"), "‹, you ›");
  EXPECT_EQ(MarkedMessage("m.content.split()[1]"), "‹<x>,›");
  EXPECT_EQ(MarkedMessage("m.content.partition('<x>')[0]"), "‹ hi ›");
  EXPECT_EQ(MarkedMessage("(m.content | list)[4]"), "‹<›");
  EXPECT_EQ(MarkedMessage("m.content.removeprefix(' hi ')"), "‹<x>, you ›");
}

TEST(LiteralTest, JoinsKeepWhatCameFromWhere) {
  EXPECT_EQ(MarkedMessage("'<x>' + m.content + '<x>'"), "<x>‹ hi <x>, you ›<x>");
  EXPECT_EQ(MarkedMessage("'<x>' ~ m.content ~ 3 ~ '<x>'"), "<x>‹ hi <x>, you ›3<x>");
  EXPECT_EQ(MarkedMessage("('<x>' + m.content + '<x>  ') | trim"), "<x>‹ hi <x>, you ›<x>");
  EXPECT_EQ(MarkedMessage("('<x>' + m.content)[2:6]"), ">‹ hi›");
  EXPECT_EQ(MarkedMessage("['a', m.role, m.content[1:3], 'b'] | join('<x>')"),
            "a<x>user<x>‹hi›<x>b");
  EXPECT_EQ(MarkedMessage("'<x>'.join([m.content[1:3], 'b'])"), "‹hi›<x>b");
  EXPECT_EQ(MarkedMessage("messages[1].content | map(attribute='text') | join"), "‹<x>›");
  EXPECT_EQ(Marked("{% for part in messages[1].content %}{{ part.text }}{% endfor %}"), "‹<x>›");
}

TEST(LiteralTest, ReplacementsAndFormatsKeepWhatCameFromWhere) {
  EXPECT_EQ(MarkedMessage("'<x>{}<x>{}'.replace('{}', m.content[1:3])"), "<x>‹hi›<x>‹hi›");
  EXPECT_EQ(MarkedMessage("m.content | replace('<x>', '<s>')"), "‹ hi ›<s>‹, you ›");
  EXPECT_EQ(MarkedMessage("'<x>%s<%s>' % (m.content[1:3], m.role)"), "<x>‹hi›<user>");
  EXPECT_EQ(MarkedMessage("'<x>{}<{}>'.format(m.content[1:3], m.role)"), "<x>‹hi›<user>");
  EXPECT_EQ(MarkedMessage("(m.content + '%s') % '<s>'"), "‹ hi <x>, you <s>›");
}

TEST(LiteralTest, BlocksAndMacrosKeepWhatCameFromWhere) {
  EXPECT_EQ(Marked("{% set block %}<x>{{ messages[0].content }}<x>{% endset %}[{{ block }}]"),
            "[<x>‹ hi <x>, you ›<x>]");
  EXPECT_EQ(Marked("{% macro turn(m) %}<x>{{ m.content | trim }}<x>{% endmacro %}"
                   "[{{ turn(messages[0]) }}]"),
            "[<x>‹hi <x>, you›<x>]");
  EXPECT_EQ(Marked("{% set ns = namespace(t='') %}{% for m in messages %}"
                   "{% set ns.t = ns.t + '<x>' + m.role + m.content[0].text | default('') %}"
                   "{% endfor %}{{ ns.t }}"),
            "<x>user<x>tool‹<›");
}

TEST(LiteralTest, WhatAFilterMakesOfDataIsDataAsAWhole) {
  EXPECT_EQ(Marked("{{ tools | tojson }}"), "‹[{\"name\": \"f<x>\"}]›");
  EXPECT_EQ(MarkedMessage("('<x>' + m.content) | upper"), "‹<X> HI <X>, YOU ›");
  EXPECT_EQ(MarkedMessage("m.content * 2"), "‹ hi <x>, you  hi <x>, you ›");
  EXPECT_EQ(MarkedMessage("m.role | upper"), "USER");
  EXPECT_EQ(Marked("{% for k, v in messages[1].items() %}{{ k }}{% endfor %}"), "‹rolecontentn›");
}

TEST(LiteralTest, NamesThatAreUnpackedAreData) {
  EXPECT_EQ(Marked("{% macro names() %}{{ kwargs.keys() | join }}{% endmacro %}"
                   "<{{ names(**messages[1]) }}>"),
            "<‹rolecontentn›>");
  EXPECT_EQ(Marked("<{{ dict(**{messages[0].content[4:7]: 1}) | join }}>"), "<‹<x>›>");
}

TEST(LiteralTest, DecisionsSeeTheTextItself) {
  EXPECT_EQ(MarkedMessage("'<x>' in m.content"), "True");
  EXPECT_EQ(MarkedMessage("m.content | length"), "13");
  EXPECT_EQ(MarkedMessage("m.content == ' hi <x>, you '"), "True");
  EXPECT_EQ(MarkedMessage("m.content.find('<x>')"), "4");
}

TEST(LiteralTest, TheMarksAreChargedForAsTextIs) {
  ChatTemplateLimits limits;
  limits.max_value_bytes = 1u << 16;
  const auto parsed = ChatTemplate::Parse(
      "{% set ns = namespace(t='') %}{% for i in range(40) %}"
      "{% set ns.t = ns.t + ns.t + 'a' + messages[0].content[1] %}{% endfor %}",
      limits);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ((*parsed)->RenderMarked(kContext, 0).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace llm
