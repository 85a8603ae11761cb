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
              HasSubstr("calls macros more than 200 deep, last the macro 'm'"));
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
              HasSubstr("calls macros more than 200 deep, last the macro 'm'"));
  EXPECT_THAT(
      shows("{% macro m(a=n()) %}{% endmacro %}{% macro n(a=m()) %}{% endmacro %}{{ m() }}"),
      HasSubstr("calls macros more than 200 deep"));
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

// What the reference makes of each was looked up with it.
TEST(Chat, NamesAreSharedAndHiddenAsInJinja) {
  const auto shows = [](std::string_view body) { return write(body, {}); };
  EXPECT_EQ(shows("{% macro add(ns) %}{% set ns.n = ns.n + 1 %}{% endmacro %}"
                  "{% set ns = namespace(n=1) %}{{ add(ns) }}{{ add(ns) }}{{ ns.n }}"),
            "3");
  EXPECT_EQ(shows("{% macro m() %}M{% endmacro %}{% set m = 3 %}{{ m }}"), "3");
  EXPECT_EQ(shows("{% for i in [1] %}{% macro m() %}M{% endmacro %}{{ m() }}{% endfor %}"
                  "{{ m is defined }}"),
            "MFalse");
  EXPECT_EQ(shows("{% set x %}{% set y = 1 %}a{% endset %}{{ x }}{{ y is defined }}"), "aFalse");
  EXPECT_EQ(shows("{% with a = 1 %}{{ a }}{% endwith %}{{ a is defined }}"), "1False");
  EXPECT_EQ(shows("{% set a, b = 1, 2 %}{{ a }}{{ b }}"), "12");
  EXPECT_EQ(shows("{% macro m(n) %}{{ n }}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}"
                  "{{ m(90) | length }}"),
            "172");
}

TEST(Chat, FiltersTakeNamedArgumentsAndParts) {
  const auto shows = [](std::string_view body) { return write(body, conversation); };
  EXPECT_EQ(shows("{{ [['a', 'b'], ['c']]|map('join', d=', ')|join(';') }}"), "a, b;c");
  EXPECT_EQ(shows("{{ [{'b': 1}, {}]|map(attribute='b', default='x')|join }}"), "1x");
  EXPECT_EQ(shows("{{ [{'a': {'b': 2}}]|map(attribute='a.b')|first }}"), "2");
  EXPECT_EQ(shows("{{ [1, {'x': 2}]|map(attribute='x.y', default={'y': 3})|list }}"),
            "[3, {'y': 3}]");
  // Lists that nothing else holds.
  EXPECT_EQ(shows("{{ messages|selectattr('role', 'equalto', 'user')|map(attribute='content')"
                  "|map('trim')|select|join('/') }}"),
            "Hi/Bye");
  EXPECT_EQ(shows("{{ none|selectattr('a')|list }}{{ none|map('upper')|list }}"
                  "{{ nothing|items|list }}"),
            "[][][]");
  EXPECT_EQ(shows("{{ dict(b=1, a=2) }}{{ {'é': 1}|tojson(ensure_ascii=False) }}"),
            "{'b': 1, 'a': 2}{\"é\": 1}");
  EXPECT_EQ(shows("{{ [[1], ('a', none)] }}"), "[[1], ('a', None)]");
}

TEST(Chat, KnowsTheBlocksOfJinja) {
  const auto shows = [](std::string_view body) { return write(body, {}); };
  EXPECT_EQ(shows("{% raw %}{{ x }}{% endraw %}{% generation %}g{% endgeneration %}"), "{{ x }}g");
  EXPECT_EQ(shows("{% macro w(x) %}<{{ caller() }}{{ x }}>{% endmacro %}"
                  "{% call w(2) %}in{% endcall %}{% filter upper %}abc{% endfilter %}"),
            "<in2>ABC");
  EXPECT_EQ(shows("{% for i in [1, 2, 3] %}{{ loop.previtem }}{{ loop.nextitem }}"
                  "{{ loop.cycle('a', 'b') }}{{ loop.changed(i // 2) }}{% endfor %}"),
            "2aTrue13bTrue2aFalse");
}

TEST(Chat, CalculatesAsPython) {
  const auto shows = [](std::string_view body) { return write(body, {}); };
  EXPECT_EQ(shows("{{ 7.5 % -2.5 }} {{ -7.5 % 2.5 }} {{ 3 // 0.1 }} {{ -7.5 // 2 }} {{ 0.0 // -3 }}"
                  " {{ 1 // 0.3 }}"),
            "-0.0 0.0 29.0 -4.0 -0.0 3.0");
  EXPECT_EQ(shows("{{ -7 / 9007199254740993 }} {{ 9007199254740993 / 3 }}"
                  " {{ 9223372036854775807 / 9223372036854775806 }}"
                  " {{ (-9223372036854775807 - 1) / 3 }} {{ 9007199254740993 / -1 }}"),
            "-7.771561172376095e-16 3002399751580331.0 1.0 -3.0744573456182584e+18 "
            "-9007199254740992.0");
  EXPECT_EQ(shows("{{ 9007199254740993 == 9007199254740992.0 }}"
                  "{{ 9007199254740993 > 9007199254740992.0 }}"
                  "{{ {9007199254740993: 1, 9007199254740992.0: 2}|length }}"),
            "FalseTrue2");
  EXPECT_EQ(shows("{{ 1e308 * 10 }}"), "inf");
  EXPECT_THAT(shows("{{ 10.0 ** 400 }}"), HasSubstr("a power is beyond the largest number"));
}

TEST(Chat, DividesTextsAsPython) {
  const auto shows = [](std::string_view body) { return write(body, {}); };
  EXPECT_EQ(shows("{{ ' a b  c '.split(none, 1) }} {{ ' a b  c '.rsplit(none, 1) }}"
                  " {{ ' a '.split(none, 0) }}"),
            "['a', 'b  c '] [' a b', 'c'] ['a ']");
  EXPECT_EQ(shows("{{ '0.5 none-x a_b é½ ²'|wordcount }}{{ '½²Ⅷ'.isalnum() }}"), "7True");
  EXPECT_THAT(shows("{{ (5)[1:] }}"), HasSubstr("a number is sliced"));
  EXPECT_THAT(shows("{{ 'a'['x':] }}"), HasSubstr("a text bounds a slice"));
  EXPECT_THAT(shows("{{ [1]|indent }}"), HasSubstr("the filter 'indent' is not known for a list"));
}

TEST(Chat, ReadsNumbersAndTitlesAsPython) {
  const auto shows = [](std::string_view body) { return write(body, {}); };
  EXPECT_EQ(shows("{{ ['1_000', '٣', '+-5', '1__0', '_1', ' -7 ', '0x1f', '1e3', 'nan(1)']"
                  "|map('int', 0)|list }}"),
            "[1000, 3, 0, 0, 0, -7, 0, 1000, 0]");
  EXPECT_EQ(shows("{{ ['1_0.5', '1e400', '1e-400', '-inf', '.5', '1.', 'nan(1)']"
                  "|map('float', 9)|list }}"),
            "[10.5, inf, 0.0, -inf, 0.5, 1.0, 9]");
  EXPECT_EQ(shows("{{ 'ßa ﬁ ǆ'.title() }} {{ 'ß'.capitalize() }} {{ 'ŉ'.title() }}"),
            "Ssa Fi ǅ Ss ʼN");
  EXPECT_EQ(shows("{{ 'ΑΣ ΣΑΣΑ'.title() }} {{ 'ΑΣ'.capitalize() }} {{ nothing is callable }}"),
            "Ας Σασα Ας True");
  EXPECT_EQ(shows("{{ 9007199254740985|round(2, 'ceil') }}"), "9007199254740985.0");
  EXPECT_THAT(shows("{{ ['a']|sum(start='') }}"), HasSubstr("'sum' does not join texts"));
}

TEST(Chat, PadsTexts) {
  const auto shows = [](std::string_view body) { return write(body, {}); };
  EXPECT_EQ(shows("{{ 'ab'.center(5) }}|{{ 'abc'.center(6, '*') }}|{{ 'é'.ljust(3, 'ß') }}|"
                  "{{ 'a'.rjust(3) }}|{{ '-5'.zfill(4) }}|{{ 'abc'.zfill(2) }}|{{ 1|center(3) }}|"
                  "{{ 'a'.ljust(-3) }}"),
            "  ab |*abc**|éßß|  a|-005|abc| 1 |a");
  EXPECT_THAT(shows("{{ 'a'.center(9223372036854775807) }}"),
              HasSubstr("makes a text of more than 4 MB"));
  EXPECT_THAT(shows("{{ 'a'.center(3, '') }}"), HasSubstr("does not take a text"));
}

TEST(Chat, SpreadsListsAndDictionariesAsArguments) {
  const auto shows = [](std::string_view calls) {
    return write("{% macro m(a=1, b=2, c=3) %}[{{ a }}{{ b }}{{ c }}{{ varargs }}{{ kwargs }}]"
                 "{% endmacro %}" +
                     std::string(calls),
                 {});
  };
  EXPECT_EQ(shows("{{ m(*[4, 5]) }}{{ m(0, *'xy') }}{{ m(*[7], b=8,) }}{{ m(**{'c': 9}) }}"
                  "{{ m(*[1], **{'z': 2}) }}{{ m(*range(5)) }}{{ m(*nothing) }}"),
            "[453(){}][0xy(){}][783(){}][129(){}][123(){'z': 2}][012(3, 4){}][123(){}]");
  EXPECT_EQ(shows("{{ [3, 1]|sort(**{'reverse': true}) }}{{ 5 is divisibleby(*[5]) }}"
                  "{{ 'aXb'.split(*['X']) }}{{ range(*[1, 3])|list }}{{ dict(a=0, **{'b': 1}) }}"),
            "[3, 1]True['a', 'b'][1, 2]{'a': 0, 'b': 1}");
  EXPECT_EQ(shows("{% macro n(x) %}<{{ x }}{{ caller(*[1, 2]) }}>{% endmacro %}"
                  "{% call(a, b) n(*['q']) %}{{ a }}{{ b }}{% endcall %}"),
            "<q12>");
  for (const auto &[call, error] : std::initializer_list<std::pair<const char *, const char *>>{
           {"m(*[1], 2)", "an argument without a name follows one with a name, or those of '*'"},
           {"m(*[1], *[2])", "'*' is given twice in a call"},
           {"m(**{}, b=2)", "an argument follows those of '**'"},
           {"m(**{}, *[2])", "an argument follows those of '**'"},
           {"m(a=5, **{'a': 1})", "the argument 'a' is given twice"},
           {"m(*5)", "a number cannot be walked over"},
           {"m(**[1])", "'**' stands before a list"},
           {"m(**{1: 2})", "a number is the name of an argument"},
           {"'a'.split(*range(9))", "the method 'split' takes at most 2 arguments"}})
    EXPECT_THAT(shows(fmt::format("{{{{ {} }}}}", call)), HasSubstr(error)) << call;
  EXPECT_THAT(shows("{% call m(caller=1) %}{% endcall %}"),
              HasSubstr("the argument 'caller' is given twice"));
}

TEST(Chat, ElseOfALoopIsForBodiesThatCameToNoEnd) {
  EXPECT_EQ(
      write("{% for x in [1, 2] %}{{ x }}{% continue %}{% else %}e{% endfor %}|"
            "{% for x in [1, 2] %}{{ x }}{% break %}{% else %}e{% endfor %}|"
            "{% for x in [1, 2] %}{% if x == 2 %}{% break %}{% endif %}{% else %}e{% endfor %}",
            {}),
      "12e|1e|");
}

TEST(Chat, RefusesWhatIsNoTextOfABlock) {
  const auto wrong = [](std::string_view body) { return write(body, {}); };
  EXPECT_THAT(wrong("{% filter length %}a{% endfilter %}"),
              HasSubstr("the filter of a block makes a number, which is no text"));
  EXPECT_THAT(wrong("{% call dict() %}{% endcall %}"),
              HasSubstr("what is called for a block makes a dictionary, which is no text"));
  EXPECT_THAT(wrong("{% for loop in [1] %}{% endfor %}"),
              HasSubstr("'loop' cannot be the name of what a loop walks over"));
  EXPECT_THAT(wrong("{{ dict(nothing) }}"),
              HasSubstr("a dictionary is made of something undefined"));
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
  EXPECT_THAT(wrong("{% include 'a' %}"),
              AllOf(HasSubstr("offset"), HasSubstr("the statement 'include' is not known here")));
  EXPECT_THAT(wrong("{{ 'a' | wordwrap(3) }}"),
              HasSubstr("the filter 'wordwrap' is not known here"));
  EXPECT_THAT(wrong("{{ [1].append(2) }}"), HasSubstr("a list would be changed"));
  EXPECT_THAT(wrong("{{ [1] | map(5, 'role') | list }}"),
              HasSubstr("the filter 'map' takes the name of a filter, not a number"));
  EXPECT_THAT(wrong("{% macro m(a,) %}{% endmacro %}"),
              HasSubstr("expected a parameter, found ')'"));
  EXPECT_THAT(wrong("{{ 'a'.casefold() }}"), HasSubstr("the method 'casefold' is not known here"));
  EXPECT_THAT(wrong("{{ 1 is prime }}"), HasSubstr("the test 'prime' is not known here"));
  EXPECT_THAT(wrong("{{ lipsum(3) }}"), HasSubstr("the function 'lipsum' is not known here"));
  EXPECT_THAT(wrong("{{ 1 + 'a' }}"),
              HasSubstr("the operator '+' is not known for a number and a text"));
  EXPECT_THAT(wrong("{{ nothing.at.all }}"), HasSubstr("'nothing' is undefined"));
  EXPECT_THAT(wrong("{{ raise_exception('no system') }}"),
              HasSubstr("refuses the conversation: no system"));
  EXPECT_THAT(wrong("{{ raise_exception('two\\nlines') }}"),
              HasSubstr("refuses the conversation: two\\x0alines"));
  EXPECT_THAT(wrong("{% if x %}"), HasSubstr("expected 'endif', found the end of the template"));
  EXPECT_THAT(wrong("{% endfor %}"), HasSubstr("'endfor' ends nothing"));
  EXPECT_THAT(wrong("{{ 1"), HasSubstr("a tag does not end: expected '}}'"));
  EXPECT_THAT(wrong("{{ 1 2 }}"), HasSubstr("expected the end of the tag, found '2'"));
  EXPECT_THAT(wrong("{{ 'a }}"), HasSubstr("a text does not end"));
}

TEST(Chat, EndsWhateverTheTemplateIs) {
  const std::string open(100000, '('), closed(100000, ')');
  EXPECT_THAT(write("{{ " + open + "1" + closed + " }}", {}),
              HasSubstr("expressions are nested more than 100 deep"));
  EXPECT_THAT(write("{{ " + open + " }}", {}), HasSubstr("expected ')', found '}'"));
  std::string deep;
  for (int i = 0; i < 1000; ++i)
    deep += "{% if true %}";
  EXPECT_THAT(write(deep, {}), HasSubstr("nested more than 100 deep"));
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
  EXPECT_THAT(write("{% set n = namespace(s='a') %}{% for i in range(60) %}"
                    "{% set n.s = n.s + n.s %}{% endfor %}",
                    {}),
              HasSubstr("makes a text of more than 4 MB"));
  for (std::string_view body :
       {"{% set n = namespace(l=[1]) %}{% for i in range(60) %}{% set n.l = n.l + n.l %}{% endfor "
        "%}",
        "{% set n = namespace(l=[]) %}{% for i in range(999) %}{% set n.l = [n.l] %}{% endfor %}"})
    EXPECT_THAT(write(body, {}), HasSubstr("makes a value that is too large or nested too deep"));
  EXPECT_THAT(write("{% for i in range(1000000000) %}{% endfor %}", {}),
              HasSubstr("a range has more than 100000 members"));
}

TEST(Chat, CountsTheWorkOnWhatIsLookedAtOrMade) {
  const auto often = [](std::string_view before, std::string_view expression) {
    return write(fmt::format("{}{{% for i in range(100000) %}}{{% set x = {} %}}{{% endfor %}}",
                             before, expression),
                 {});
  };
  const std::string longKey = "{% set k = 'ab' * 1000000 %}{% set d = {k: 1, k + 'b': 2} %}";
  for (const auto &[before, expression] :
       std::initializer_list<std::pair<std::string, std::string>>{
           {longKey, "d[k]"},
           {longKey, "d.get(k)"},
           {longKey, "k in d"},
           {longKey, "d == d"},
           {longKey, "d|tojson"},
           {longKey, "[1, 2]|tojson(separators=(k, ''))"},
           {"{% set t = ('a',) + ('b',) * 100000 %}", "'a'.startswith(t)"},
           {"{% set t = 'ab ' * 20000 %}", "t.title()"},
           {"{% set t = 'ab ' * 20000 %}", "t is lower"},
           {"{% set t = '\\n' * 30000 %}", "t.splitlines()"},
           {"{% set t = 'a' * 40000 %}", "t.strip('bcdefghija')"},
           {"", "1e300|round(100)"},
           {"", "strftime_now('%c%c%c%c%c%c%c%c')"}})
    EXPECT_THAT(often(before, expression),
                HasSubstr("works on more values than a template has a use for"))
        << expression;
}

TEST(Chat, RefusesListsBeforeTheyAreMade) {
  for (const char *many : {"('ab' * 200000).split('b')", "('ab' * 200000).rsplit('b')",
                           "('a ' * 200000).split()", "('a\\n' * 200000).splitlines()"})
    EXPECT_THAT(write(fmt::format("{{{{ {} }}}}", many), {}),
                HasSubstr("makes a list of more than 131072 members"))
        << many;
  EXPECT_EQ(write("{{ ('line of text here\\n' * 20000)|indent|length }}", {}), "439996");
}

// A method holds what it is one of, and a loop what it walks over.
TEST(Chat, CountsHowDeepMethodsAndLoopsHoldValues) {
  const auto often = [](std::string_view body) {
    return write(fmt::format("{{% set ns = namespace(x=[1]) %}}{{% for i in range(100000) %}}{}"
                             "{{% endfor %}}",
                             body),
                 {});
  };
  for (const char *body :
       {"{% set ns.x = [ns.x.index] %}", "{% for y in [ns.x] %}{% set ns.x = [loop] %}{% endfor %}",
        "{% for y in [ns.x] %}{% set ns.x = loop %}{% endfor %}",
        "{% for y in [ns.x] %}{% set ns.x = [loop.cycle] %}{% endfor %}"})
    EXPECT_THAT(often(body), HasSubstr("makes a value that is too large or nested too deep"))
        << body;
}

TEST(Chat, BoundsTheNamesOfACall) {
  std::string parameters = "a0", named = "a0=1";
  for (int i = 1; i <= 500; ++i) {
    parameters += fmt::format(", a{}", i);
    named += fmt::format(", a{}=1", i);
  }
  EXPECT_THAT(write("{% macro m(" + parameters + ") %}{% endmacro %}", {}),
              HasSubstr("a macro has more than 500 parameters"));
  EXPECT_THAT(write("{{ dict(" + named + ") }}", {}),
              HasSubstr("a call has more than 500 named arguments"));
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
              HasSubstr("nested more than 100 deep"));
  EXPECT_EQ(chain("{% if a %}", "{% elif a %}", 60, "{% else %}x{% endif %}"), "x");
  EXPECT_EQ(chain("{{ 'a'", " ~ 'b'", 3, " }}"), "abbb");
  EXPECT_EQ(chain("{{ 'a'", "|trim", 400, " }}"), "a");
  for (const char *more :
       {"|trim", " ~ 'a'", " * 1", " or a", " and a", ".b", "[0]", "()", "[:1]", "(b=a)"})
    EXPECT_THAT(chain("{{ a", more, 20000, " }}"),
                HasSubstr("an expression has more than 500 parts"))
        << more;
  // Comparisons stand beside each other, however many they are.
  EXPECT_EQ(chain("{{ a", " == a", 20000, " }}"), "True");
  EXPECT_THAT(chain("{{ a", " is defined", 20000, " }}"),
              HasSubstr("tests cannot follow each other"));
  // Long chains within each other, and macros that call each other from long chains.
  std::string nested = "a", chained;
  for (int i = 0; i < 300; ++i)
    chained += "|trim";
  for (int i = 0; i < 20; ++i)
    nested = "(" + nested + ")" + chained;
  EXPECT_THAT(write("{{ " + nested + " }}", {}),
              HasSubstr("an expression has more than 500 parts"));
  EXPECT_THAT(write("{% macro m(n) %}{{ (m(n - 1) if n else '') " + chained +
                        " }}{% endmacro %}{{ m(30) }}",
                    {}),
              HasSubstr("runs more than 4000 statements and expressions within each other"));
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
