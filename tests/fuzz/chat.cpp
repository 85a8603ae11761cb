// Any bytes as a chat template: an error in one line, or a text.
#include "frontend/tokenizers/chat.h"
#include "tests/fuzz/support/target.h"

namespace heddle::fuzz {

void read(std::string_view input) {
  const auto text = writeConversation(
      input, "<s>", "</s>",
      {{"system", "Be brief."}, {"user", " Hi "}, {"assistant", "A"}, {"user", "B"}});
  if (!text)
    requireClear(text.error());
}

std::vector<std::string> seeds() {
  return {
      R"({% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message.content | trim + '<|im_end|>\n' }}{%- endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %})",
      R"({%- if messages[0].role == 'system' -%}{%- set system = messages[0]['content'] -%}{%- set messages = messages[1:] -%}{%- endif -%}{%- for m in messages -%}{%- if (m.role == 'user') != (loop.index0 % 2 == 0) -%}{{- raise_exception('roles must alternate') -}}{%- elif m.role == 'user' -%}{{- bos_token ~ '[INST] ' ~ ('<<' ~ system ~ '>> ' if loop.first and system is defined) ~ m.content.strip() ~ ' [/INST]' -}}{%- else -%}{{- ' ' + m.content + ' ' + eos_token -}}{%- endif -%}{%- endfor -%})",
      R"({% set ns = namespace(last=0, found=false) %}{% for m in messages[::-1] %}{% if m.role == 'user' and not ns.found %}{% set ns.last = (messages|length - 1) - loop.index0 %}{% endif %}{% endfor %}{{ ns.last }}{# note #}{{ {'b': 1, 'a': [true, none, 2.5e1, 'x']} | tojson }})",
      R"({% macro show(x, y='-') %}{{ x }}{{ y }}{% endmacro %}{{ show('a') }}{{ 'a</t>b'.split('</t>')[-1].lstrip('b').upper() | replace('A', 'c') }}{{ range(3) | list | join(',') }})",
  };
}

} // namespace heddle::fuzz
