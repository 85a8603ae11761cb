#include "frontend/formats/quote.h"
#include "frontend/tokenizers/jinja_values.h"
#include "frontend/tokenizers/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

namespace heddle::jinja {

namespace {

using Kind = Expression::Kind;
constexpr int64_t mostSteps = 1'000'000;
/// Sizes of values, each time they are made or copied: some seconds.
constexpr int64_t mostWork = int64_t{1} << 24;
constexpr size_t mostText = size_t{1} << 26;
constexpr size_t deepestCall = 16; ///< of macros within macros
constexpr int deepestRun = 1000;   ///< of statements and expressions within each other
constexpr std::string_view functions[] = {"raise_exception", "strftime_now", "range", "namespace",
                                          "dict"};

/// Walks over a template. After a failure every value is undefined.
class Runner {
public:
  explicit Runner(std::map<std::string, Value> variables) {
    scopes.push_back(std::move(variables));
  }

  Result<std::string> run(const Body &body) {
    execute(body);
    if (failure)
      return *failure;
    return std::move(output);
  }

private:
  enum class Flow { on, leave, next };

  void fail(size_t offset, std::string_view what) {
    if (!failure)
      failure = errorAt(offset, what);
  }

  Flow execute(const Body &body) {
    for (const Statement &statement : body) {
      if (depth >= deepestRun)
        fail(statement.offset, "statements and expressions are nested too deep");
      if (++steps > mostSteps || output.size() > mostText)
        fail(statement.offset, "takes more than a million steps or makes more than 64 MB of text");
      if (failure)
        return Flow::leave;
      ++depth;
      const Flow flow = execute(statement);
      --depth;
      if (flow != Flow::on)
        return flow;
    }
    return Flow::on;
  }

  Flow execute(const Statement &statement) {
    switch (statement.kind) {
    case Statement::Kind::text:
      output += statement.text;
      return Flow::on;
    case Statement::Kind::output: {
      const auto text = textOf(evaluate(*statement.expression));
      if (text)
        output += *text;
      else
        fail(statement.offset, text.error().message);
      return Flow::on;
    }
    case Statement::Kind::loop:
      loop(statement);
      return Flow::on;
    case Statement::Kind::branch:
      return execute(isTrue(evaluate(*statement.expression)) ? statement.body
                                                             : statement.otherwise);
    case Statement::Kind::assign:
      assign(statement, evaluate(*statement.expression));
      return Flow::on;
    case Statement::Kind::assignBody: {
      std::string before = std::exchange(output, {});
      execute(statement.body);
      assign(statement, std::exchange(output, std::move(before)));
      return Flow::on;
    }
    case Statement::Kind::macro:
      macros[statement.text] = &statement;
      return Flow::on;
    case Statement::Kind::leave:
      return Flow::leave;
    case Statement::Kind::next:
      return Flow::next;
    }
    return Flow::on;
  }

  void assign(const Statement &statement, Value value) {
    const size_t dot = statement.text.find('.');
    if (dot == std::string::npos) {
      scopes.back()[statement.text] = std::move(value);
      return;
    }
    Value *target = variable(statement.text.substr(0, dot));
    if (target && target->is_object())
      (*target)[statement.text.substr(dot + 1)] = std::move(value);
    else
      fail(statement.offset,
           fmt::format("{} is no namespace to assign to", inQuotes(statement.text.substr(0, dot))));
  }

  Value *variable(const std::string &name) {
    for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope)
      if (const auto found = scope->find(name); found != scope->end())
        return &found->second;
    return nullptr;
  }

  void loop(const Statement &statement) {
    const Value list = evaluate(*statement.expression);
    std::vector<Value> members;
    if (list.is_array() || list.is_discarded() || list.is_object()) {
      for (const auto &[key, member] : list.items())
        members.push_back(list.is_object() ? Value(key) : member);
    } else {
      fail(statement.offset, "only lists and dictionaries can be walked over");
    }
    scopes.emplace_back();
    if (statement.condition)
      std::erase_if(members, [&](const Value &member) {
        bind(statement, member);
        return !isTrue(evaluate(*statement.condition));
      });
    const auto count = static_cast<int64_t>(members.size());
    for (int64_t i = 0; i < count && !failure; ++i) {
      countStep(statement.offset);
      charge(statement.offset, members[size_t(i)], 3);
      scopes.back().clear();
      bind(statement, members[size_t(i)]);
      Value &about = scopes.back()["loop"] = Value::object();
      about = {{"index", i + 1},        {"index0", i},
               {"revindex", count - i}, {"revindex0", count - i - 1},
               {"first", i == 0},       {"last", i + 1 == count},
               {"length", count}};
      if (i > 0)
        about["previtem"] = members[size_t(i) - 1];
      if (i + 1 < count)
        about["nextitem"] = members[size_t(i) + 1];
      if (execute(statement.body) == Flow::leave)
        break;
    }
    scopes.pop_back();
    if (members.empty())
      execute(statement.otherwise);
  }

  void bind(const Statement &statement, const Value &member) {
    if (statement.targets.size() == 1) {
      scopes.back()[statement.targets[0]] = member;
      return;
    }
    if (!member.is_array() || member.size() != statement.targets.size())
      return fail(statement.offset,
                  fmt::format("each member must be {} values", statement.targets.size()));
    for (size_t i = 0; i < member.size(); ++i)
      scopes.back()[statement.targets[i]] = member[i];
  }

  Value evaluate(const Expression &expression) {
    if (depth >= deepestRun)
      fail(expression.offset, "statements and expressions are nested too deep");
    countStep(expression.offset);
    if (failure)
      return undefined();
    ++depth;
    Value value = compute(expression);
    --depth;
    charge(expression.offset, value, expression.text == "sort" ? 8 : 1);
    return value;
  }

  void countStep(size_t offset) {
    if (++steps > mostSteps)
      fail(offset, "takes more than a million steps");
  }

  /// Counts what it takes to make a value, or to copy it `times`: nothing of it is one step.
  void charge(size_t offset, const Value &value, int64_t times) {
    const int64_t size = sizeOf(value);
    if (size > mostSize)
      fail(offset, "makes a value that is too large or nested too deep");
    if ((work += times * size) > mostWork)
      fail(offset, "works on more values than a template has a use for");
  }

  Value compute(const Expression &expression) {
    switch (expression.kind) {
    case Kind::literal:
      return expression.value;
    case Kind::name: {
      const Value *found = variable(expression.text);
      return found ? *found : undefined();
    }
    case Kind::list: {
      Value list = Value::array();
      for (const ExpressionPtr &part : expression.parts)
        list.push_back(evaluate(*part));
      return list;
    }
    case Kind::dict:
      return dict(expression);
    case Kind::attribute:
      return member(expression, evaluate(*expression.parts[0]), expression.text);
    case Kind::index: {
      const Value base = evaluate(*expression.parts[0]);
      return expression.parts[1] ? member(expression, base, evaluate(*expression.parts[1]))
                                 : undefined();
    }
    case Kind::slice:
      return slice(expression);
    case Kind::unary:
      return unary(expression);
    case Kind::binary:
      return binary(expression);
    case Kind::conditional:
      if (isTrue(evaluate(*expression.parts[1])))
        return evaluate(*expression.parts[0]);
      return expression.parts[2] ? evaluate(*expression.parts[2]) : undefined();
    case Kind::call:
      return call(expression);
    case Kind::filter:
      return apply(expression, "the filter", filter);
    case Kind::test:
      return test(expression);
    }
    return undefined();
  }

  Value dict(const Expression &expression) {
    Value made = Value::object();
    for (size_t i = 0; i + 1 < expression.parts.size(); i += 2) {
      const Value key = evaluate(*expression.parts[i]);
      if (key.is_string())
        made[key.get<std::string>()] = evaluate(*expression.parts[i + 1]);
      else
        fail(expression.offset, "a key of a dictionary is no text");
    }
    return made;
  }

  Value member(const Expression &expression, const Value &base, const Value &key) {
    if (base.is_object() && key.is_string())
      return base.value(key.get<std::string>(), undefined());
    if ((base.is_array() || base.is_string()) && key.is_number_integer()) {
      const std::vector<Value> all = membersOf(base);
      auto index = key.get<int64_t>();
      if (index < 0)
        index += std::ssize(all);
      return index >= 0 && index < std::ssize(all) ? all[size_t(index)] : undefined();
    }
    if (base.is_discarded())
      fail(expression.offset, "something undefined is asked for its parts");
    return undefined();
  }

  /// The members of a list, the characters of a text.
  static std::vector<Value> membersOf(const Value &base) {
    std::vector<Value> all;
    if (base.is_array())
      all.assign(base.begin(), base.end());
    if (base.is_string())
      for (std::string_view rest = base.get_ref<const std::string &>(); !rest.empty();
           rest.remove_prefix(characterLength(rest)))
        all.emplace_back(std::string(rest.substr(0, characterLength(rest))));
    return all;
  }

  Value slice(const Expression &expression) {
    const Value base = evaluate(*expression.parts[0]);
    if (!base.is_string() && !base.is_array())
      fail(expression.offset, "only lists and texts have slices");
    const std::vector<Value> all = membersOf(base);
    const auto size = static_cast<int64_t>(all.size());
    std::array<Value, 3> bounds;
    for (size_t i = 0; i < 3; ++i)
      if (expression.parts[i + 1])
        bounds[i] = evaluate(*expression.parts[i + 1]);
    const int64_t step = bounds[2].is_number_integer() ? bounds[2].get<int64_t>() : 1;
    if (step == 0)
      fail(expression.offset, "a slice has the step 0");
    const auto bound = [&](const Value &value, int64_t otherwise) {
      if (!value.is_number_integer())
        return otherwise;
      const auto index = value.get<int64_t>();
      return std::clamp<int64_t>(index < 0 ? index + size : index, step > 0 ? 0 : -1,
                                 step > 0 ? size : size - 1);
    };
    const int64_t begin = bound(bounds[0], step > 0 ? 0 : size - 1),
                  end = bound(bounds[1], step > 0 ? size : -1);
    Value list = Value::array();
    std::string text;
    for (int64_t i = begin; !failure && (step > 0 ? i < end : i > end); i += step)
      if (base.is_string())
        text += all[size_t(i)].get_ref<const std::string &>();
      else
        list.push_back(all[size_t(i)]);
    return base.is_string() ? Value(text) : list;
  }

  Value unary(const Expression &expression) {
    const Value value = evaluate(*expression.parts[0]);
    if (expression.text == "not")
      return !isTrue(value);
    const auto negative = operate("-", 0, value);
    if (!negative)
      fail(expression.offset, "'-' stands before something that is no number");
    return negative.value_or(undefined());
  }

  Value binary(const Expression &expression) {
    const Value left = evaluate(*expression.parts[0]);
    if (expression.text == "and" || expression.text == "or")
      return isTrue(left) == (expression.text == "or") ? left : evaluate(*expression.parts[1]);
    const Value right = evaluate(*expression.parts[1]);
    auto result = operate(expression.text, left, right);
    if (!result)
      fail(expression.offset, fmt::format("the operator '{}' is not known for {} and {}",
                                          expression.text, left.type_name(), right.type_name()));
    return result.value_or(undefined());
  }

  Arguments argumentsOf(const Expression &expression) {
    Arguments given;
    for (size_t i = 1; i < expression.parts.size(); ++i)
      given.values.push_back(evaluate(*expression.parts[i]));
    for (const auto &[name, value] : expression.named)
      given.named[name] = evaluate(*value);
    return given;
  }

  template <class Function>
  Value apply(const Expression &expression, const char *what, const Function &function) {
    const Value value = evaluate(*expression.parts[0]);
    const Arguments given = argumentsOf(expression);
    if (failure)
      return undefined();
    auto result = function(expression.text, value, given);
    if (!result)
      fail(expression.offset, fmt::format("{} {} is not known here for {}", what,
                                          inQuotes(expression.text), value.type_name()));
    return result ? Value(*std::move(result)) : undefined();
  }

  Value test(const Expression &expression) {
    const Expression &subject = *expression.parts[0];
    const bool isFunction = subject.kind == Kind::name &&
                            (macros.contains(subject.text) ||
                             std::ranges::find(functions, subject.text) != std::end(functions));
    if (isFunction && (expression.text == "defined" || expression.text == "undefined"))
      return expression.text == "defined";
    // A part of something undefined is undefined, which is what is asked here.
    if (subject.kind == Kind::attribute || subject.kind == Kind::index)
      if (expression.text == "defined" && evaluate(*subject.parts[0]).is_discarded())
        return false;
    return apply(expression, "the test", jinja::test);
  }

  Value call(const Expression &expression) {
    const Expression &callee = *expression.parts[0];
    const Arguments given = argumentsOf(expression);
    if (failure)
      return undefined();
    if (callee.kind == Kind::attribute) {
      const Value base = evaluate(*callee.parts[0]);
      auto result = method(callee.text, base, given);
      if (!result)
        fail(expression.offset, fmt::format("the method {} is not known here for {}",
                                            inQuotes(callee.text), base.type_name()));
      return result.value_or(undefined());
    }
    if (callee.kind != Kind::name)
      fail(expression.offset, "something is called that has no name");
    return function(expression, callee.text, given);
  }

  Value function(const Expression &expression, const std::string &name, const Arguments &given) {
    const Value first = given.get(0, "");
    if (const auto macro = macros.find(name); macro != macros.end())
      return expand(expression, *macro->second, given);
    if (name == "raise_exception")
      fail(expression.offset,
           "refuses the conversation: " +
               (first.is_string() ? printable(first.get<std::string>()) : std::string()));
    else if (name == "namespace" || name == "dict")
      return Value(given.named);
    else if (name == "strftime_now" && first.is_string())
      return now(first.get<std::string>());
    else if (name == "range" && first.is_number_integer())
      return range(expression, given);
    else
      fail(expression.offset, fmt::format("the function {} is not known here", inQuotes(name)));
    return undefined();
  }

  /// The text that a macro makes. It sees its arguments and what is set at the top.
  Value expand(const Expression &expression, const Statement &macro, const Arguments &given) {
    checkArguments(expression, macro, given);
    if (calls >= deepestCall)
      fail(expression.offset,
           fmt::format("the macro {} calls itself too often", inQuotes(macro.text)));
    if (failure)
      return undefined();
    std::vector<std::map<std::string, Value>> hidden;
    while (scopes.size() > 1) {
      hidden.push_back(std::move(scopes.back()));
      scopes.pop_back();
    }
    scopes.emplace_back();
    std::string before = std::exchange(output, {});
    ++calls;
    bindParameters(macro, given);
    execute(macro.body);
    --calls;
    scopes.resize(1);
    for (; !hidden.empty(); hidden.pop_back())
      scopes.push_back(std::move(hidden.back()));
    return std::exchange(output, std::move(before));
  }

  void checkArguments(const Expression &expression, const Statement &macro,
                      const Arguments &given) {
    const auto refuse = [&](std::string_view what) {
      fail(expression.offset, fmt::format("the macro {} {}", inQuotes(macro.text), what));
    };
    if (given.values.size() > macro.targets.size())
      refuse("takes fewer arguments");
    for (const auto &[name, value] : given.named) {
      const auto index = std::ranges::find(macro.targets, name) - macro.targets.begin();
      if (index == std::ssize(macro.targets))
        refuse(fmt::format("has no parameter {}", inQuotes(name)));
      else if (index < std::ssize(given.values))
        refuse(fmt::format("is given {} twice", inQuotes(name)));
    }
  }

  /// What is given first, so that a default sees the parameters but nothing of the same name that
  /// is set at the top. What is given stays, even if it is undefined.
  void bindParameters(const Statement &macro, const Arguments &given) {
    for (size_t i = 0; i < macro.targets.size(); ++i)
      scopes.back()[macro.targets[i]] = given.get(i, macro.targets[i].c_str());
    for (size_t i = given.values.size(); i < macro.targets.size(); ++i)
      if (macro.defaults[i] && !given.named.contains(macro.targets[i])) {
        Value value = evaluate(*macro.defaults[i]);
        scopes.back()[macro.targets[i]] = std::move(value);
      }
  }

  static Value now(const std::string &format) {
    const std::time_t seconds = std::time(nullptr);
    std::tm date = {};
    localtime_r(&seconds, &date);
    std::array<char, 256> text{};
    return std::string(text.data(), std::strftime(text.data(), text.size(), format.c_str(), &date));
  }

  Value range(const Expression &expression, const Arguments &given) {
    const Value second = given.get(1, ""), third = given.get(2, "");
    const bool hasEnd = second.is_number_integer();
    const int64_t begin = hasEnd ? given.values[0].get<int64_t>() : 0;
    const int64_t end = hasEnd ? second.get<int64_t>() : given.values[0].get<int64_t>();
    const int64_t step = third.is_number_integer() ? third.get<int64_t>() : 1;
    Value list = Value::array();
    if (step == 0 || begin < -mostSteps || begin > mostSteps || end < -mostSteps || end > mostSteps)
      fail(expression.offset, "a range has a step of 0, or an end beyond a million");
    for (int64_t i = begin; !failure && (step > 0 ? i < end : i > end); i += step)
      list.push_back(i);
    return list;
  }

  std::vector<std::map<std::string, Value>> scopes;
  std::map<std::string, const Statement *> macros;
  size_t calls = 0; ///< of macros, that are under way
  int depth = 0;    ///< of statements and expressions, that are under way
  std::string output;
  int64_t steps = 0;
  int64_t work = 0; ///< sizes of the values that were made
  std::optional<Error> failure;
};

} // namespace

Result<std::string> render(const Body &body, std::map<std::string, Value> variables) {
  return Runner(std::move(variables)).run(body);
}

} // namespace heddle::jinja
