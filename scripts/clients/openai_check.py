# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests `serve` with the openai package: completions and chats, with and without streaming, and its exceptions."""
import concurrent.futures

import openai

client = openai.OpenAI(max_retries=0)
model = client.models.list().data[0].id
assert client.models.retrieve(model).id == model

whole = client.completions.create(model=model, prompt="The cat", max_tokens=12, temperature=0)
assert whole.choices[0].finish_reason in ("length", "stop"), whole
assert whole.usage.completion_tokens <= 12 and whole.usage.total_tokens > whole.usage.completion_tokens

stream = client.completions.create(
    model=model, prompt="The cat", max_tokens=12, temperature=0, stream=True, stream_options={"include_usage": True})
text, usage = "", None
for chunk in stream:
    text += "".join(choice.text for choice in chunk.choices)
    usage = chunk.usage or usage
assert text == whole.choices[0].text, (text, whole.choices[0].text)
assert usage.completion_tokens == whole.usage.completion_tokens

messages = [{"role": "user", "content": "What is 2 plus 3?"}]
chat = client.chat.completions.create(model=model, messages=messages, max_completion_tokens=24, temperature=0)
assert chat.choices[0].message.role == "assistant"
pieces = client.chat.completions.create(
    model=model, messages=messages, max_completion_tokens=24, temperature=0, stream=True)
streamed = "".join(chunk.choices[0].delta.content or "" for chunk in pieces if chunk.choices)
assert streamed == chat.choices[0].message.content, (streamed, chat)

stop = text.strip()[3:5] if len(text.strip()) > 5 else None
if stop:
    cut = client.completions.create(model=model, prompt="The cat", max_tokens=12, temperature=0, stop=[stop])
    assert cut.choices[0].text == text[:text.index(stop)] and cut.choices[0].finish_reason == "stop", cut

ids = client.completions.create(model=model, prompt=[5, 6, 7], max_tokens=3, extra_body={"ignore_eos": True})
assert ids.usage.prompt_tokens == 3 and ids.usage.completion_tokens == 3

for kind, call in {
        openai.NotFoundError: lambda: client.completions.create(model="no-such-model", prompt="x"),
        openai.BadRequestError: lambda: client.completions.create(model=model, prompt="x", max_tokens=10**9),
        openai.AuthenticationError: lambda: openai.OpenAI(api_key="wrong", max_retries=0).models.list()}.items():
    try:
        call()
        raise SystemExit(f"no {kind.__name__}")
    except kind as error:
        assert error.body["message"], error

with concurrent.futures.ThreadPoolExecutor(16) as pool:  # batched requests give the same answer
    batch = list(pool.map(lambda _: client.completions.create(
        model=model, prompt="The cat", max_tokens=12, temperature=0).choices[0].text, range(32)))
assert set(batch) == {text}, set(batch)
print(f"openai {openai.__version__}: completions, chat, streams, stop strings, errors, 32 at once: {text!r}")
