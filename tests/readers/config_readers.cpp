// SPDX-License-Identifier: GPL-3.0-or-later
// Readers of scripts and configurations of other training software.
#include "core/formats/config/config_settings.h"
#include "tests/readers/reader.h"

namespace mw::readers {
namespace {

using Texts = std::vector<std::string>;

void python_script(std::string_view bytes) {
  formats::read_python_settings(bytes, "train.py");
}
Texts python_script_seeds() {
  return {
      "import os\nlr = 1e-4\nargs = SFTConfig(learning_rate=lr, max_length=2_048, a=[1, (2,), {'k': None}], **more)\n"
      "args.seed = int(os.environ['S'])\n",
      "d = load_dataset(\"x\", split='train').map(f)\nd = d.filter(lambda r: r)\nm = A.from_pretrained('b', "
      "dtype=torch.bfloat16)\nfor x in d: y = f\"{x['a']}{{\"\nTrainer(m, train_dataset=d)\n",
      "if True: x: int = 0x1f\nLoraConfig(r=-8, t=\"\"\"a\n\\u00e9\\n\"\"\" r'b')  # c\n"};
}
void notebook(std::string_view bytes) {
  formats::read_notebook_settings(bytes, "a.ipynb");
}
Texts notebook_seeds() {
  return {
      R"nb({"cells":[{"cell_type":"markdown","source":["x"]},{"cell_type":"code","source":["%pip x\n","r = 8\n"]},)nb"
      R"nb({"cell_type":"code","source":"\nLoraConfig(r=r)"}]})nb"};
}
void yaml_text(std::string_view bytes) {
  formats::read_yaml_settings(bytes, "a.yaml");
}
Texts yaml_text_seeds() {
  return {"# c\ndistributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n  x: [a, {b: 1}]\nd: 'no'\nn: ~\n",
          "a: &a [1, 2]\nb: *a\nc: !!str x\nd: |\n  text\ne: >-\n  folded\n<<: *a\n",
          "{\"a\": 1e-4, ? b : \"\\u00e9\"}"};
}
void settings_json(std::string_view bytes) {
  formats::read_json_settings(bytes, "a.json");
}
Texts settings_json_seeds() {
  return {R"({"r":8,"peft_type":"LORA","target_modules":["q_proj"],"rank_pattern":{"a":2},)"
          R"("zero_optimization":{"stage":3},"x":NaN,"l":[{"y":1}]})"};
}

}  // namespace

Reader python_script_reader() {
  return {"python_script", python_script, python_script_seeds};
}
Reader notebook_reader() {
  return {"notebook", notebook, notebook_seeds};
}
Reader yaml_text_reader() {
  return {"yaml_text", yaml_text, yaml_text_seeds};
}
Reader settings_json_reader() {
  return {"settings_json", settings_json, settings_json_seeds};
}

std::vector<Reader> config_readers() {
  return {python_script_reader(), notebook_reader(), yaml_text_reader(), settings_json_reader()};
}

}  // namespace mw::readers
