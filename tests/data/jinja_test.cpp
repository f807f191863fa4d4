// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/jinja/template.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "tests/data/support.h"

namespace mw::data::jinja {
namespace {

namespace fs = std::filesystem;

std::time_t fixture_time() {
  std::tm t{};
  t.tm_year = 126, t.tm_mon = 1, t.tm_mday = 3, t.tm_hour = 4, t.tm_min = 5, t.tm_sec = 6, t.tm_isdst = -1;
  return std::mktime(&t);
}

std::string rendered(const std::string& text, const Json& variables = Json::object(), const Limits& limits = {}) {
  return Template(text, "t.jinja").render(variables, fixture_time(), limits).text;
}
Problem refusal(const std::string& text, const Json& variables = Json::object(), const Limits& limits = {}) {
  return data::testing::problem_of([&] { rendered(text, variables, limits); });
}

// Folders with the output of scripts/fixtures/chat_templates.py.
TEST(JinjaFixtures, RendersAsTransformers) {
  const char* other = std::getenv("MESHWRIGHT_TEMPLATE_CASES");
  const fs::path folder = other ? fs::path(other) : fs::path(MW_FIXTURES) / "chat_templates";
  int texts = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".json" || entry.path().stem() == "VERSIONS") continue;
    const Json file = read_json(entry.path());
    int equal = 0, errors = 0, different = 0;
    try {
      const Template compiled(file["template"].get<std::string>(), entry.path().filename().string());
      for (const Json& c : file["cases"]) {
        const std::string name = entry.path().stem().string() + ": " + c["name"].get<std::string>();
        std::string text, error;
        try {
          text = compiled.render(c["variables"], fixture_time()).text;
        } catch (const Error& e) {
          error = e.what();
        }
        if (c.contains("error")) {
          EXPECT_FALSE(error.empty()) << name << " must fail: " << c["error"];
          error.empty() ? ++different : ++errors;
        } else {
          EXPECT_EQ(error, "") << name;
          EXPECT_EQ(text, c["text"].get<std::string>()) << name;
          error.empty() && text == c["text"].get<std::string>() ? ++equal : ++different;
        }
      }
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
    texts += equal;
    if (other)
      std::printf("%s: %d equal, %d refused by both, %d different\n", entry.path().stem().c_str(), equal, errors,
                  different);
  }
  EXPECT_GT(texts, 20);
}

TEST(Jinja, TrimsBlocksAndStripsIndentsAsTransformersSets) {
  EXPECT_EQ(rendered("a\n  {% if true %}\nb\n  {%- endif %}\nc\n"), "a\nbc");
  EXPECT_EQ(rendered("  {%+ if true +%}\nx{# note #}\ny{% endif %}"), "  \nxy");
  EXPECT_EQ(rendered("{{ 1 }}\n{{- 2 -}}  \n 3"), "123");
  EXPECT_EQ(rendered("a {% raw %}{{ b }}{% endraw %}\r\nc"), "a {{ b }}c");
}

TEST(Jinja, MarksGenerationBlocks) {
  const Rendered out =
      Template("a{% generation %}bc{% endgeneration %}d{% generation %}{% endgeneration %}", "t").render({}, 0);
  EXPECT_EQ(out.text, "abcd");
  ASSERT_EQ(out.generated.size(), 2u);
  EXPECT_EQ(out.generated[0].begin, 1u);
  EXPECT_EQ(out.generated[0].end, 3u);
}

TEST(Jinja, ScopesVariablesAsPython) {
  EXPECT_EQ(rendered("{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}"), "231");
  EXPECT_EQ(rendered("{% set n = namespace(x=1) %}{% for i in [1, 2] %}{% set n.x = n.x + i %}{% endfor %}{{ n.x }}"),
            "4");
  EXPECT_EQ(
      rendered("{% macro m(a, b=a) %}{{ a }}{{ b }}{{ y }}{% endmacro %}{% set y = 7 %}{{ m(1) }}{{ m(1, b=2) }}"),
      "117127");
  EXPECT_EQ(rendered("{% macro m() %}<{{ caller('x') }}>{% endmacro %}{% call(a) m() %}{{ a }}{{ 1 }}{% endcall %}"),
            "<x1>");
  EXPECT_EQ(
      rendered("{% for a in [[1, [[2, []]]]] recursive %}{{ a[0] }}{{ loop.depth }}({{ loop(a[1]) }}){% endfor %}"),
      "11(22())");
}

TEST(Jinja, FormatsTexts) {
  EXPECT_EQ(rendered("{{ '{}-{} {{{0}}} {a}'.format(1, 'b', a=none) }}"), "1-b {1} None");
  EXPECT_EQ(refusal("{{ '{:>3}'.format(1) }}").id, "TEMPLATE");
  EXPECT_EQ(refusal("{{ '{}'.format() }}").found, "{}");
  EXPECT_EQ(refusal("{{ '{'.format(1) }}").id, "TEMPLATE");
}

TEST(Jinja, FiltersOfItemsTakeNoneForEmpty) {
  EXPECT_EQ(rendered("{{ none|select|list }}{{ none|selectattr('a')|list }}{{ none|map('upper')|list }}"), "[][][]");
}

TEST(Jinja, CountsCharactersNotBytes) {
  EXPECT_EQ(rendered("{{ 'äöü'|length }}{{ 'äöü'[1] }}{{ 'äöü'[::-1] }}{{ 'äß'|upper }}{{ 'a日'.find('日') }}"),
            "3öüöäÄß1");
}

TEST(Jinja, ErrorsNamePlaceAndConstruct) {
  const Problem p = refusal("a\n{{ x|frobnicate }}");
  EXPECT_EQ(p.id, "TEMPLATE");
  EXPECT_EQ(p.file, "t.jinja");
  EXPECT_EQ(p.place, "line 2, column 6");
  EXPECT_EQ(p.found, "frobnicate");
  EXPECT_EQ(refusal("{% include 'x' %}").found, "include");
  EXPECT_EQ(refusal("{{ a.b.c }}").place, "line 1, column 6");
  EXPECT_EQ(refusal("{{ a.b.c }}", {{"a", Json::object()}}).place, "line 1, column 8");
  EXPECT_EQ(refusal("{% if a %}").id, "TEMPLATE");
  EXPECT_EQ(refusal("{{ 'a }}").id, "TEMPLATE");
  EXPECT_EQ(refusal("{{ [1].append(2) }}").id, "TEMPLATE");
  EXPECT_EQ(refusal("{{ 1 // 0 }}").id, "TEMPLATE");
  EXPECT_EQ(refusal("{{ 9223372036854775807 + 1 }}").id, "TEMPLATE");
  EXPECT_EQ(refusal("{{ raise_exception('no') }}").id, "TOK-2");
  EXPECT_THAT(refusal("{{ raise_exception('no') }}").message, ::testing::HasSubstr("no"));
}

TEST(Jinja, LimitsHostileTemplates) {
  const Limits small{.steps = 10'000, .bytes = 100'000, .depth = 400};
  for (const char* text :
       {"{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}", "{{ 'x' * 1000000000 }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% set n = namespace(x='xy') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
        "{% set n = namespace(x=[]) %}{% for i in range(999) %}{% set n.x = [n.x] %}{% endfor %}",
        "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}",
        "{{ 'a'|indent(99999999999) }}", "{{ 'a'.rjust(99999999999) }}", "{{ range(99999999) }}"})
    EXPECT_EQ(refusal(text, Json::object(), small).id, "TEMPLATE") << text;
  EXPECT_EQ(refusal("{{ " + std::string(100'000, '(') + " }}").id, "TEMPLATE");
  EXPECT_EQ(refusal("{{ " + std::string(100'000, '-') + "1 }}").id, "TEMPLATE");
  std::string chain = "{{ 1";
  for (int i = 0; i < 100'000; ++i) chain += "+1";
  EXPECT_EQ(refusal(chain + " }}").id, "TEMPLATE");
  std::string blocks;
  for (int i = 0; i < 100'000; ++i) blocks += "{% if a %}";
  EXPECT_EQ(refusal(blocks).id, "TEMPLATE");
}

}  // namespace
}  // namespace mw::data::jinja
