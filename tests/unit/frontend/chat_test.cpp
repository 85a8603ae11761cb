// Chat templates. The expected texts are what Jinja 3.1 makes of the same templates.
#include "frontend/generate.h"
#include "frontend/tokenizers/chat.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace heddle {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string write(std::string_view chatTemplate, const std::vector<ChatMessage> &messages) {
  const auto text = writeConversation(chatTemplate, "<s>", "</s>", messages);
  return text ? *text : "error: " + text.error().message;
}

const std::vector<ChatMessage> conversation = {
    {"system", "Be brief."}, {"user", " Hi "}, {"assistant", "Hello"}, {"user", "Bye"}};

TEST(Chat, WritesMarksAroundEachMessage) {
  EXPECT_EQ(write(R"({% for message in messages %}
{{ '<|im_start|>' + message['role'] + '\n' + message.content | trim + '<|im_end|>\n' }}
{%- endfor %}
{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %})",
                  conversation),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\nHello<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST(Chat, MacrosMakeTextOfTheirArgumentsAndOfWhatIsSetAtTheTop) {
  const std::vector<ChatMessage> one = {{"user", "Hi"}};
  EXPECT_EQ(write(R"({%- set top = 'T' %}
{%- macro field(name, value='none', deep=0) %}
    {%- if value is mapping %}
        {%- for key in value if key not in ['skip'] %}
            {{- field(key, value[key], deep + 1) }}
        {%- endfor %}
    {%- else %}
        {{- '<' ~ name ~ deep ~ '>' ~ value ~ top }}
    {%- endif %}
{%- endmacro %}
{%- for message in messages %}
{{- field('role', message.role) ~ field(name='x') ~ field('d', {'a': 1, 'skip': 2, 'b': {'c': 3}}) }}
{%- endfor %}{{ field is defined }})",
                  one),
            "<role0>userT<x0>noneT<a1>1T<c2>3TTrue");
  EXPECT_EQ(write("{% macro m(a) %}[{{ a }}{{ message }}]{% endmacro %}"
                  "{% for message in messages %}{{ m(message.role) }}{{ message.content }}"
                  "{% endfor %}",
                  one),
            "[user]Hi");
  EXPECT_THAT(write("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", one),
              HasSubstr("(offset 20): the macro 'm' calls itself too often"));
  EXPECT_THAT(write("{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", one),
              HasSubstr("the macro 'm' takes fewer arguments"));
  EXPECT_THAT(write("{% macro m(a %}{% endmacro %}", one), HasSubstr("error: the chat template"));
  EXPECT_THAT(write("{% macro m(a) %}", one), HasSubstr("expected 'endmacro'"));
}

TEST(Chat, DefaultsAreThoseOfParametersNotGiven) {
  const auto shows = [](std::string_view body) { return write(body, {}); };
  EXPECT_EQ(shows("{% macro m(a='d', b=a) %}[{{ a }}{{ b }}]{% endmacro %}"
                  "{{ m(nothing) }}{{ m('x') }}{{ m() }}{{ m(b='y') }}{{ m('x', b='y') }}"),
            "[][xx][dd][dy][xy]");
  EXPECT_EQ(shows("{% set b = 'top' %}{% macro m(a=b, b=1) %}[{{ a }}{{ b }}]{% endmacro %}"
                  "{{ m() }}{{ m(b=2) }}"),
            "[1][22]");
  EXPECT_THAT(shows("{% macro m(a=m()) %}{% endmacro %}{{ m() }}"),
              HasSubstr("the macro 'm' calls itself too often"));
  EXPECT_THAT(
      shows("{% macro m(a=n()) %}{% endmacro %}{% macro n(a=m()) %}{% endmacro %}{{ m() }}"),
      HasSubstr("calls itself too often"));
}

TEST(Chat, MacrosRefuseArgumentsThatAreNoParameters) {
  const auto wrong = [](std::string_view signature, std::string_view call) {
    return write(fmt::format("{{% macro m({}) %}}{{% endmacro %}}{{{{ m({}) }}}}", signature, call),
                 {});
  };
  EXPECT_EQ(wrong("a, b=1", "1, b=2"), "");
  EXPECT_THAT(wrong("a", "'x', zzz=3"), HasSubstr("the macro 'm' has no parameter 'zzz'"));
  EXPECT_THAT(wrong("a", "1, a=2"), HasSubstr("the macro 'm' is given 'a' twice"));
  EXPECT_THAT(wrong("a", "a=1, a=2"), HasSubstr("the argument 'a' is given twice"));
  EXPECT_THAT(wrong("a, b", "a=1, 2"), HasSubstr("follows one with a name"));
  EXPECT_THAT(wrong(",", ""), HasSubstr("expected a parameter, found ',"));
  EXPECT_THAT(wrong("a, 1", ""), HasSubstr("expected a parameter, found '1"));
  EXPECT_THAT(wrong("a, a", ""), HasSubstr("the parameter 'a' is named twice"));
  EXPECT_THAT(wrong("a=1, b", ""), HasSubstr("the parameter 'b' has no default"));
}

TEST(Chat, WhatIsUndefinedIsEmpty) {
  const std::vector<ChatMessage> one = {{"user", "Hi"}};
  EXPECT_EQ(write("{{ 'a' in controls }}{{ controls|length }}{{ controls|trim }}"
                  "{{ controls|list|length }}{{ controls|join(',') }}{{ controls|default('d') }}"
                  "{{ 'a' not in controls }}",
                  one),
            "False00dTrue");
}

TEST(Chat, FiltersOfListsAreThoseOfJinja) {
  const std::vector<ChatMessage> one = {{"user", "Hi"}};
  EXPECT_EQ(write("{{ ['b', 'a', 'C']|sort|join }}{{ [3, 1, 2]|sort|first }}"
                  "{{ ['x', 'y']|reverse|join }}{{ ['a', 'b']|reject('equalto', 'a')|join }}"
                  "{{ [0, 1, 2]|select|list|length }}{{ ['a', 'b']|map('upper')|join }}"
                  "{{ messages|map(attribute='role')|join }}",
                  one),
            "abC1yxb2ABuser");
}

TEST(Chat, PutsTheSystemMessageIntoTheFirstOfTheUser) {
  EXPECT_EQ(write(R"({%- if messages[0].role == 'system' -%}
  {%- set system = messages[0]['content'] -%}
  {%- set messages = messages[1:] -%}
{%- endif -%}
{%- for m in messages -%}
  {%- if (m.role == 'user') != (loop.index0 % 2 == 0) -%}
    {{- raise_exception('roles must alternate') -}}
  {%- endif -%}
  {%- if m.role == 'user' -%}
    {{- bos_token ~ '[INST] ' ~ ('<<' ~ system ~ '>> ' if loop.first and system is defined)
        ~ m.content.strip() ~ ' [/INST]' -}}
  {%- else -%}
    {{- ' ' + m.content + ' ' + eos_token -}}
  {%- endif -%}
{%- endfor -%})",
                  conversation),
            "<s>[INST] <<Be brief.>> Hi [/INST] Hello </s><s>[INST] Bye [/INST]");
}

TEST(Chat, KnowsWhatTheTemplatesOfModelsUse) {
  const auto shows = [](std::string_view body) { return write(body, conversation); };
  EXPECT_EQ(shows("{% set ns = namespace(last=0) %}{% for m in messages[::-1] %}"
                  "{% if m.role == 'user' and not ns.last %}"
                  "{% set ns.last = (messages|length - 1) - loop.index0 %}{% endif %}"
                  "{% endfor %}{{ ns.last }}"),
            "3");
  EXPECT_EQ(shows("{{ '<think>a</think>\\n b'.split('</think>')[-1].lstrip('\\n') }}"), " b");
  EXPECT_EQ(shows("{{ {'b': 1, 'a': [true, none, 2.5, 'x']} | tojson }}"),
            R"({"b": 1, "a": [true, null, 2.5, "x"]})");
  EXPECT_EQ(shows("{{ messages | map(attribute='role') | join('/') }}"),
            "system/user/assistant/user");
  EXPECT_EQ(shows("{{ messages | selectattr('role', 'equalto', 'user') | list | length }}"), "2");
  EXPECT_EQ(shows("{% for k, v in {'x': 1, 'y': 2}.items() if v > 1 %}{{ k }}{{ v }}{% endfor %}"),
            "y2");
  EXPECT_EQ(shows("{{ x.y if x is defined else 'none' }} {{ messages[9] is defined }}"),
            "none False");
  EXPECT_EQ(
      shows("{{ -7 // 2 }} {{ -7 % 3 }} {{ 1 + 2 * 3 }} {{ 'a' in 'cat' }} {{ 3 not in [1] }}"),
      "-4 2 7 True True");
  EXPECT_EQ(shows("{% set x %}a{{ 1 }}{% endset %}{{ x | upper }}{# unseen #}"), "A1");
  EXPECT_EQ(
      shows("{% for i in range(9) %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}"),
      "012");
  EXPECT_EQ(shows("{{ 'caf\u00e9'[::-1] }}{{ 'x' if false }}{{ (1, 2) | last }}"), "\u00e9fac2");
}

TEST(Chat, WritesTextThatIsNotUtf8AsJson) {
  EXPECT_EQ(write("{{ {'a\xff': ['b\xff', 1]} | tojson }}", {}),
            "{\"a\xef\xbf\xbd\": [\"b\xef\xbf\xbd\", 1]}");
}

TEST(Chat, TrimsAsTheTemplatesExpect) {
  const auto shows = [](std::string_view body) { return write(body, {}); };
  EXPECT_EQ(shows("a\n  {% if true %}\n  b\n  {% endif %}\nc\n"), "a\n  b\nc");
  EXPECT_EQ(shows("a  {{- ' x ' -}}  \n b"), "a x b");
  EXPECT_EQ(shows("a\n  {%+ if true %}b{% endif %}"), "a\n  b");
  EXPECT_EQ(shows("{{ '}}' }}{{ {'a': {'b': 1}}['a']['b'] }}"), "}}1");
}

TEST(Chat, NamesWhatItDoesNotKnow) {
  const auto wrong = [](std::string_view body) { return write(body, conversation); };
  EXPECT_THAT(wrong("{% call f() %}{% endcall %}"),
              AllOf(HasSubstr("offset"), HasSubstr("the statement 'call' is not known here")));
  EXPECT_THAT(wrong("{{ 'a' | wordwrap(3) }}"),
              HasSubstr("the filter 'wordwrap' is not known here for string"));
  EXPECT_THAT(wrong("{{ 'a'.zfill(3) }}"), HasSubstr("the method 'zfill' is not known here"));
  EXPECT_THAT(wrong("{{ 1 is prime }}"), HasSubstr("the test 'prime' is not known here"));
  EXPECT_THAT(wrong("{{ lipsum(3) }}"), HasSubstr("the function 'lipsum' is not known here"));
  EXPECT_THAT(wrong("{{ 1 + 'a' }}"), HasSubstr("the operator '+' is not known for number"));
  EXPECT_THAT(wrong("{{ nothing.at.all }}"), HasSubstr("something undefined"));
  EXPECT_THAT(wrong("{{ raise_exception('no system') }}"),
              HasSubstr("refuses the conversation: no system"));
  EXPECT_THAT(wrong("{{ raise_exception('two\\nlines') }}"),
              HasSubstr("refuses the conversation: two\\x0alines"));
  EXPECT_THAT(wrong("{% if x %}"), HasSubstr("expected 'endif', found the end of the template"));
  EXPECT_THAT(wrong("{% endfor %}"), HasSubstr("'endfor' ends nothing"));
  EXPECT_THAT(wrong("{{ 1"), HasSubstr("a tag does not end: expected '}}'"));
  EXPECT_THAT(wrong("{{ 1 2 }}"), HasSubstr("expected the end of the tag, found '2 '"));
  EXPECT_THAT(wrong("{{ 'a }}"), HasSubstr("a tag does not end"));
  EXPECT_THAT(wrong("{{ messages }}"), HasSubstr("a list is put out as text"));
}

TEST(Chat, EndsWhateverTheTemplateIs) {
  EXPECT_THAT(write(std::string(100000, '(').insert(0, "{{ ") + " }}", {}),
              HasSubstr("nested too deep"));
  std::string deep;
  for (int i = 0; i < 1000; ++i)
    deep += "{% if true %}";
  EXPECT_THAT(write(deep, {}), HasSubstr("nested too deep"));
  EXPECT_THAT(write("{% for a in range(9999) %}{% for b in range(9999) %}{{ b }}{% endfor %}"
                    "{% endfor %}",
                    {}),
              HasSubstr("a million steps"));
}

TEST(Chat, EndsWhateverTheValuesGrowTo) {
  EXPECT_THAT(
      write("{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}", {}),
      HasSubstr("a million steps"));
  for (std::string_view body :
       {"{% set l = range(100000) %}{% for i in range(10000) %}{% set x = l|sort %}{% endfor %}",
        "{% for i in range(10000) %}{% set x = range(100000)|list %}{% endfor %}"})
    EXPECT_THAT(write(body, {}), HasSubstr("works on more values than a template has a use for"));
  for (std::string_view body :
       {"{% set n = namespace(s='a') %}{% for i in range(60) %}{% set n.s = n.s + n.s %}{% endfor "
        "%}",
        "{% set n = namespace(l=[1]) %}{% for i in range(60) %}{% set n.l = n.l + n.l %}{% endfor "
        "%}",
        "{% set n = namespace(l=[]) %}{% for i in range(999) %}{% set n.l = [n.l] %}{% endfor %}"})
    EXPECT_THAT(write(body, {}), HasSubstr("makes a value that is too large or nested too deep"));
  EXPECT_THAT(write("{% for i in range(1000000000) %}{% endfor %}", {}),
              HasSubstr("a range has a step of 0, or an end beyond a million"));
}

TEST(Chat, RefusesChainsThatAreTooLong) {
  const auto chain = [](std::string_view first, std::string_view more, int count,
                        std::string_view last) {
    std::string text(first);
    for (int i = 0; i < count; ++i)
      text += more;
    return write(text + std::string(last), {});
  };
  EXPECT_THAT(chain("{% if a %}", "{% elif a %}", 20000, "{% endif %}"),
              HasSubstr("blocks are nested too deep"));
  EXPECT_EQ(chain("{% if a %}", "{% elif a %}", 60, "{% else %}x{% endif %}"), "x");
  EXPECT_EQ(chain("{{ 'a'", " ~ 'b'", 3, " }}"), "abbb");
  EXPECT_EQ(chain("{{ 'a'", "|trim", 400, " }}"), "a");
  for (const char *more : {"|trim", " ~ 'a'", " * 1", " or a", " and a", " == a", " not in a", ".b",
                           "[0]", "()", " is defined", "[:1]", "(b=a)"})
    EXPECT_THAT(chain("{{ a", more, 200000, " }}"), HasSubstr("an expression is too long")) << more;
  // Long chains within each other, and macros that call each other from long chains.
  std::string nested = "a", chained;
  for (int i = 0; i < 300; ++i)
    chained += "|trim";
  for (int i = 0; i < 20; ++i)
    nested = "(" + nested + ")" + chained;
  EXPECT_THAT(write("{{ " + nested + " }}", {}), HasSubstr("an expression is too long"));
  EXPECT_THAT(write("{% macro m(n) %}{{ (m(n - 1) if n else '') " + chained +
                        " }}{% endmacro %}{{ m(10) }}",
                    {}),
              HasSubstr("nested too deep"));
}

TEST(StopTexts, EndATextAlsoAcrossPieces) {
  StopTexts stops({"END", "###"});
  EXPECT_EQ(stops.push("abE"), "ab");
  EXPECT_EQ(stops.push("N"), "");
  EXPECT_EQ(stops.push("x#"), "ENx");
  EXPECT_FALSE(stops.found());
  EXPECT_EQ(stops.push("#yEN"), "##y");
  EXPECT_EQ(stops.push("D#more"), "");
  EXPECT_TRUE(stops.found());
  EXPECT_EQ(stops.push("more"), "");
  EXPECT_EQ(stops.flush(), "");
}

TEST(StopTexts, GiveOutWhatWasKeptAtTheEnd) {
  StopTexts stops({"\n\n"});
  EXPECT_EQ(stops.push("a\n"), "a");
  EXPECT_EQ(stops.flush(), "\n");
  StopTexts none({});
  EXPECT_EQ(none.push("a\n"), "a\n");
  StopTexts first({"cd", "bcd"});
  EXPECT_EQ(first.push("abcd"), "a");
}

} // namespace
} // namespace heddle
