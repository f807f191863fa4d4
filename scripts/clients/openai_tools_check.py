# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests tools with the openai package and a model that has learned the conversation of tools_model.py."""
import json

import openai

client = openai.OpenAI(max_retries=0)
model = client.models.list().data[-1].id
tools = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("weather", "now")]
messages = [{"role": "user", "content": "Is it warm in Paris?"}]


def ask(of=None, **more):
    return client.chat.completions.create(
        model=model, messages=of or messages, temperature=0, max_tokens=120, **more).choices[0]


def checked(calls):
    assert len(calls) == 1 and calls[0].type == "function" and calls[0].function.name == "weather", calls
    assert json.loads(calls[0].function.arguments) == {"city": "Paris", "days": 2}, calls
    return calls[0]


choice = ask(tools=tools)
assert choice.finish_reason == "tool_calls", choice
assert choice.message.content is None and choice.message.reasoning_content == "I ask the tool.", choice
call = checked(choice.message.tool_calls)

with client.chat.completions.stream(  # puts the chunks together as clients do
        model=model, messages=messages, temperature=0, max_tokens=120, tools=tools) as stream:
    for _ in stream:
        pass
    streamed = stream.get_final_completion().choices[0]
assert streamed.finish_reason == "tool_calls", streamed
assert checked(streamed.message.tool_calls).function.arguments == call.function.arguments

at_once = [{"role": "user", "content": "Weather?"}]  # the model calls without a thought, as a forced answer begins
for forced, reason in {"required": "tool_calls", "weather": "stop"}.items():
    named = forced if forced == "required" else {"type": "function", "function": {"name": forced}}
    choice_made = ask(at_once, tools=tools, tool_choice=named)
    assert checked(choice_made.message.tool_calls).id and choice_made.finish_reason == reason, choice_made
assert not ask(tools=tools, tool_choice="none").message.tool_calls

messages += [choice.message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": "25 degrees"}]
answer = ask(tools=tools)
assert answer.message.content == "Yes, it is warm." and answer.finish_reason == "stop", answer
try:
    ask(tools=tools, tool_choice={"type": "function", "function": {"name": "tides"}})
    raise SystemExit("a choice of an unknown tool was accepted")
except openai.BadRequestError as error:
    assert error.param == "tool_choice", error
print(f"openai {openai.__version__}: calls of tools, whole, streamed, forced and answered: {call.function}")
