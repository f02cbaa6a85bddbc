// The parsed template. Nodes are immutable after parsing and shared by all renderings.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/tokenizer/jinja/operators.h"
#include "src/tokenizer/jinja/value.h"

namespace llm::jinja {

// Names are interned while parsing, so that looking one up compares numbers.
using NameId = uint32_t;

enum class ExpressionKind {
  kConstant,
  kName,
  kItems,
  kDict,
  kArithmetic,
  kConcat,
  kCompare,
  kLogical,
  kNot,
  kSign,
  kConditional,
  kPostfix,
};

// Chains (a + b - c, a.b[c]|d) are one flat node, so that depth is what the author nested.
struct Expression {
  explicit Expression(ExpressionKind node_kind) : kind(node_kind) {}
  virtual ~Expression() = default;
  // Takes `child` under this node.
  std::unique_ptr<Expression> Adopt(std::unique_ptr<Expression> child) {
    if (child != nullptr) depth = std::max(depth, child->depth + 1);
    return child;
  }

  const ExpressionKind kind;
  uint32_t depth = 1;
};

using ExpressionPtr = std::unique_ptr<Expression>;

struct ConstantExpression : Expression {
  explicit ConstantExpression(Value constant)
      : Expression(ExpressionKind::kConstant), value(std::move(constant)) {}
  Value value;
};

struct NameExpression : Expression {
  explicit NameExpression(NameId id) : Expression(ExpressionKind::kName), name(id) {}
  NameId name;
};

struct ItemsExpression : Expression {  // [a, b] or (a, b)
  explicit ItemsExpression(SequenceKind kind_of_items)
      : Expression(ExpressionKind::kItems), sequence_kind(kind_of_items) {}
  SequenceKind sequence_kind;
  std::vector<ExpressionPtr> items;
};

struct DictExpression : Expression {
  DictExpression() : Expression(ExpressionKind::kDict) {}
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};

struct ArithmeticExpression : Expression {  // first op operand op operand ..., from the left
  ArithmeticExpression() : Expression(ExpressionKind::kArithmetic) {}
  ExpressionPtr first;
  std::vector<std::pair<BinaryOp, ExpressionPtr>> rest;
};

struct ConcatExpression : Expression {  // a ~ b ~ c
  ConcatExpression() : Expression(ExpressionKind::kConcat) {}
  std::vector<ExpressionPtr> operands;
};

struct CompareExpression : Expression {  // a < b <= c: all neighbours hold
  CompareExpression() : Expression(ExpressionKind::kCompare) {}
  ExpressionPtr first;
  std::vector<std::pair<CompareOp, ExpressionPtr>> rest;
};

struct LogicalExpression : Expression {
  explicit LogicalExpression(bool is_and) : Expression(ExpressionKind::kLogical), all(is_and) {}
  bool all;  // and; otherwise or
  std::vector<ExpressionPtr> operands;
};

struct NotExpression : Expression {
  NotExpression() : Expression(ExpressionKind::kNot) {}
  bool negate = true;  // false for an even number of nots
  ExpressionPtr operand;
};

struct SignExpression : Expression {
  explicit SignExpression(bool is_minus) : Expression(ExpressionKind::kSign), minus(is_minus) {}
  bool minus;
  ExpressionPtr operand;
};

struct ConditionalExpression : Expression {  // then if condition else otherwise (may be null)
  ConditionalExpression() : Expression(ExpressionKind::kConditional) {}
  ExpressionPtr condition;
  ExpressionPtr then;
  ExpressionPtr otherwise;
};

enum class ArgumentKind { kPositional, kNamed, kUnpackList, kUnpackDict };

struct Argument {
  ArgumentKind kind = ArgumentKind::kPositional;
  std::string name;
  ExpressionPtr value;
};

enum class SuffixKind { kAttribute, kItem, kSlice, kCall, kFilter, kTest };

struct Suffix {
  SuffixKind kind = SuffixKind::kAttribute;
  bool negated = false;  // is not
  std::string name;      // of the attribute, filter or test
  std::vector<Argument> arguments;
  ExpressionPtr bounds[3];  // the key; or start, stop, step of a slice, each may be null
};

struct PostfixExpression : Expression {  // base.a["b"](c)|d is e
  PostfixExpression() : Expression(ExpressionKind::kPostfix) {}
  ExpressionPtr base;  // null in a filter block: the block's text
  std::vector<Suffix> suffixes;
};

enum class StatementKind {
  kText,
  kPrint,
  kIf,
  kFor,
  kSet,
  kSetBlock,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kScope,
  kBreak,
  kContinue,
};

struct Statement {
  Statement(StatementKind node_kind, int node_line) : kind(node_kind), line(node_line) {}
  virtual ~Statement() = default;
  const StatementKind kind;
  const int line;
};

using Body = std::vector<std::unique_ptr<Statement>>;

// What an assignment or a loop writes to: a name, a namespace's member, or a list of targets.
struct Target {
  bool is_tuple = false;
  NameId name = 0;
  std::string member;  // empty: the name itself
  std::vector<Target> items;
};

struct TextStatement : Statement {
  TextStatement(std::string data, int at_line)
      : Statement(StatementKind::kText, at_line), text(std::move(data)) {}
  std::string text;
};

struct PrintStatement : Statement {
  PrintStatement(ExpressionPtr printed, int at_line)
      : Statement(StatementKind::kPrint, at_line), value(std::move(printed)) {}
  ExpressionPtr value;
};

struct IfStatement : Statement {
  explicit IfStatement(int at_line) : Statement(StatementKind::kIf, at_line) {}
  std::vector<std::pair<ExpressionPtr, Body>> branches;
  Body otherwise;
};

struct ForStatement : Statement {
  explicit ForStatement(int at_line) : Statement(StatementKind::kFor, at_line) {}
  Target target;
  ExpressionPtr items;
  ExpressionPtr filter;  // may be null
  bool recursive = false;
  Body body;
  Body otherwise;
};

struct SetStatement : Statement {
  explicit SetStatement(int at_line) : Statement(StatementKind::kSet, at_line) {}
  Target target;
  ExpressionPtr value;
};

struct SetBlockStatement : Statement {
  explicit SetBlockStatement(int at_line) : Statement(StatementKind::kSetBlock, at_line) {}
  Target target;
  ExpressionPtr filter;  // a PostfixExpression without base; may be null
  Body body;
};

struct MacroParameter {
  std::string name;
  NameId id = 0;
  ExpressionPtr fallback;  // may be null
};

struct MacroStatement : Statement {
  explicit MacroStatement(int at_line) : Statement(StatementKind::kMacro, at_line) {}
  std::string name;
  NameId id = 0;
  std::vector<MacroParameter> parameters;
  bool uses_caller = false;
  bool uses_varargs = false;
  bool uses_kwargs = false;
  Body body;
};

struct CallBlockStatement : Statement {
  explicit CallBlockStatement(int at_line) : Statement(StatementKind::kCallBlock, at_line) {}
  std::unique_ptr<MacroStatement> caller;
  ExpressionPtr call;  // a PostfixExpression that ends in a call
};

struct FilterBlockStatement : Statement {
  explicit FilterBlockStatement(int at_line) : Statement(StatementKind::kFilterBlock, at_line) {}
  ExpressionPtr filter;
  Body body;
};

struct ScopeStatement : Statement {  // with, generation, block: a scope of their own
  explicit ScopeStatement(int at_line) : Statement(StatementKind::kScope, at_line) {}
  std::vector<std::pair<Target, ExpressionPtr>> assignments;
  Body body;
};

struct JumpStatement : Statement {  // break or continue
  using Statement::Statement;
};

struct Template {
  std::vector<std::string> names;  // by NameId
  Body body;
};

}  // namespace llm::jinja
