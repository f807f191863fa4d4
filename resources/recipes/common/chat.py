# SPDX-License-Identifier: Apache-2.0
"""The chat template of the model's folder (data.chat_template in settings.json), rendered as Meshwright's engine does:
which part of the text is an answer is found as core/data/tokenizer/chat_template.cpp finds it."""
import datetime
import json

_BEGIN, _END = "\U000F5E01", "\U000F5E02"  # around the text of {% generation %} blocks; private use


class Refused(Exception):
    """The template refuses the messages."""


def _environment():
    import jinja2
    import jinja2.ext
    import jinja2.sandbox

    class Generation(jinja2.ext.Extension):
        tags = {"generation"}

        def parse(self, parser):
            line = next(parser.stream).lineno
            body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
            return jinja2.nodes.CallBlock(self.call_method("_marked"), [], [], body).set_lineno(line)

        @staticmethod
        def _marked(caller):
            return _BEGIN + caller() + _END

    def refuse(message):
        raise jinja2.exceptions.TemplateError(message)

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    environment.filters["tojson"] = lambda x, ensure_ascii=False, indent=None, separators=None, sort_keys=False: json.dumps(
        x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    environment.globals["raise_exception"] = refuse
    today = datetime.datetime.now().replace(hour=0, minute=0, second=0, microsecond=0)
    environment.globals["strftime_now"] = today.strftime
    return environment


def _same(a, b):
    """Length of the common beginning."""
    n = min(len(a), len(b))
    return next((i for i in range(n) if a[i] != b[i]), n)


class FolderTemplate:
    """Messages are (role, text, other members)."""

    def __init__(self, kept):
        environment = _environment()
        self.tokens, self.bos = kept["tokens"], kept["tokens"].get("bos_token") or ""
        self.template = environment.from_string(kept["text"])
        self.with_tools = environment.from_string(kept["tool_text"]) if kept["tool_text"] else self.template
        self.start, self.end = self._markers()

    def _run(self, messages, tools, prompt):
        """(text without bos, ranges of the {% generation %} blocks)"""
        import jinja2
        given = [{"role": m[0], "content": m[1], **(m[2] if len(m) > 2 else {})} for m in messages]
        try:
            marked = (self.with_tools if tools else self.template).render(
                **self.tokens, messages=given, tools=tools or None, documents=None, add_generation_prompt=prompt)
        except (jinja2.exceptions.TemplateError, TypeError, ValueError, KeyError, AttributeError) as error:
            raise Refused(f"the chat template refuses the messages: {error}") from None
        text, ranges = "", []
        for part in marked.replace(_END, _BEGIN).split(_BEGIN):
            ranges.append((len(text), len(text) + len(part)))
            text += part
        cut = len(self.bos) if self.bos and text.startswith(self.bos) else 0
        return text[cut:], [(max(0, a - cut), max(0, b - cut)) for a, b in ranges[1::2]]

    def _text(self, messages, tools, prompt):
        return self._run(messages, tools, prompt)[0]

    def _markers(self):
        """What turns start and answers end with; empty if unknown."""
        probe, start = "qzxq", ""
        try:
            prompt = self._text([("user", "a")], None, True)
            if prompt.startswith("<"):
                start = prompt[:prompt.find(">") + 1]
            answered = self._text([("user", "a"), ("assistant", probe)], None, False).rstrip()
        except Refused:
            return start, ""
        at = answered.rfind(probe)
        return start, answered[at + len(probe):] if at >= 0 else ""

    def _find_answer(self, i, whole, prompt, text, tools):
        def others():
            for letter in "xy":
                yield self._text(whole[:i] + [(whole[i][0], letter, *whole[i][2:])] + whole[i + 1:], tools, prompt)
        before = self._text(whole[:i], tools, True)
        if text.startswith(before):
            begin = len(before)
        else:
            begin = min(len(text), *(_same(text, other) for other in others()))
        upto = self._text(whole[:i + 1], tools, False).rstrip()
        if text.startswith(upto) and len(upto) >= begin:
            return begin, len(upto)
        end = max(0, *(len(text) - _same(text[::-1], other[::-1]) for other in others()))
        return begin, end + len(self.end) if text[end:].startswith(self.end) else end

    def render(self, messages, tools=None):
        """[(text, is an answer)]; every answer has one span."""
        answers = [i for i, m in enumerate(messages) if m[0] == "assistant"]
        text, ranges = self._run(messages, tools, False)
        if not answers or len(ranges) != len(answers):
            ranges, last, whole, rendered, prompt = [], None, messages, text, False
            if answers and answers[-1] + 1 == len(messages):
                # Behind the prompt that a server sends, also where a finished conversation is rendered in another way.
                before = messages[:answers[-1]]
                asked = self._text(before, tools, True)
                begin = len(asked) if text.startswith(asked) else \
                    self._find_answer(answers[-1], messages, False, text, tools)[0]
                text = asked + text[begin:]
                last = len(asked), max(len(asked), len(text.rstrip()))
                answers, whole, rendered, prompt = answers[:-1], before, asked, True
            ranges = [self._find_answer(i, whole, prompt, rendered, tools) for i in answers] + ([last] if last else [])
        spans, at = [], 0
        for begin, end in ranges:
            if begin < at or end < begin or end > len(text):
                raise Refused("the answers cannot be found in the rendered text of the chat template")
            spans += [(text[at:begin], False)] * (begin > at) + [(text[begin:end], True)]
            at = end
        return spans + [(text[at:], False)] * (at < len(text))

    def render_prompt(self, messages, tools=None):
        return self._text(messages, tools, True)
