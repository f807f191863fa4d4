# SPDX-License-Identifier: Apache-2.0
"""Training rows from a dataset of the Hugging Face hub (data.source), where the folder has no data/rows.safetensors: read,
rendered, tokenised, masked, split, shuffled and packed as Meshwright's engine does. The first load writes the revision,
the number of rows and their SHA-256 to data/source.lock.json; later loads must find the same."""
import hashlib
import json
import os
import pathlib

import chat as folder_chat

_MASK = (1 << 64) - 1
_SPLIT, _ORDER, _ROWS, _WINDOW = 0x73706C6974, 0x6F72646572, 0x726F7773, 1024
_TURNS = {"gemma2": ("<start_of_turn>", "<end_of_turn>"), "gemma3": ("<start_of_turn>", "<end_of_turn>"),
          "gemma4": ("<|turn>", "<turn|>"), "none": ("", "")}
_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "gpt": "assistant", "model": "assistant",
          "chatgpt": "assistant", "system": "system", "developer": "system"}


class BadRow(Exception):
    """A row that does not have the format of the others."""


def folder_template(data):
    """The template of the model's folder, if the experiment uses it; else None."""
    kept = data.get("chat_template")
    return folder_chat.FolderTemplate(kept) if kept else None


def _mix(x):
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


class Random:
    """The engine's counter-based numbers: a function of the identity and the index."""

    def __init__(self, *identity):
        self.key, self.counter = 0x6D65736877726967, 0
        for part in identity:
            self.key = _mix(self.key ^ _mix(part & _MASK))

    def at(self, index):
        return _mix((self.key + index * 0xD1342543DE82EF95) & _MASK)

    def shuffle(self, items):
        for i in range(len(items), 1, -1):
            j = (self.at(self.counter) * i) >> 64
            self.counter += 1
            items[i - 1], items[j] = items[j], items[i - 1]


# ---- the dataset and its lock ----

def read_file(path):
    """Rows of a downloaded copy: JSON Lines, or a JSON array of objects."""
    text = pathlib.Path(path).read_text(encoding="utf-8-sig")
    if text.lstrip().startswith("["):
        return json.loads(text)
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def fingerprint(rows):
    """SHA-256 of the rows as canonical JSON lines; the same for every file format that holds them."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode("utf-8") + b"\n")
    return digest.hexdigest()


def verify(lock_file, source, rows):
    """Writes the lock at the first load, compares it at later ones. Returns it."""
    found = {"id": source["id"], "config": source["config"], "split": source["split"], "revision": source["revision"],
             "license": source["license"], "rows": len(rows), "sha256": fingerprint(rows)}
    if source["rows"] and len(rows) != source["rows"]:
        raise SystemExit(f"{source['id']} has {len(rows)} rows, expected {source['rows']} of revision "
                         f"{source['revision'] or '(none)'}: another revision or an incomplete download")
    lock_file = pathlib.Path(lock_file)
    if not lock_file.exists():
        lock_file.parent.mkdir(parents=True, exist_ok=True)
        part = lock_file.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        part.replace(lock_file)
        return found
    recorded = json.loads(lock_file.read_text(encoding="utf-8"))
    changed = [f"{key} is {found[key]}, was {recorded.get(key)}" for key in found if found[key] != recorded.get(key)]
    if changed:
        raise SystemExit(f"the data differ from those of the first load: {'; '.join(changed)}. Restore the data, or "
                         f"delete {lock_file} to accept the new ones")
    return recorded


def load(source, lock_file, local_file=None):
    """The rows of the source, from the hub or from a downloaded copy. Sets source["revision"] if it names none."""
    lock_file = pathlib.Path(lock_file)
    if not source["revision"] and lock_file.exists():
        source["revision"] = json.loads(lock_file.read_text(encoding="utf-8"))["revision"]
    if local_file:
        return read_file(local_file)
    import datasets
    if not source["revision"]:
        import huggingface_hub
        source["revision"] = huggingface_hub.HfApi().dataset_info(source["id"]).sha
    return list(datasets.load_dataset(source["id"], source["config"] or None, split=source["split"],
                                      revision=source["revision"]))


# ---- one row to a conversation, as core/data/dataset/record.cpp ----

def _required(row, key):
    if key not in row:
        raise BadRow(f'no "{key}" (keys {", ".join(row)})')
    return row[key]


def _text(value, key):
    if not isinstance(value, str):
        raise BadRow(f'"{key}" is not a string')
    return value


def _optional(row, key):
    value = row.get(key) if key else None
    return "" if value is None else _text(value, key)


def _messages(values, key, data):
    with_folder = bool(data.get("chat_template"))
    if isinstance(values, str):  # JSON, as cells of tables have it
        try:
            values = json.loads(values)
        except ValueError:
            pass
    if not isinstance(values, list):
        raise BadRow(f'"{key}" is not a list of messages')
    out = []
    for m in values:
        if not isinstance(m, dict):
            raise BadRow("a message is not an object")
        role_key = "from" if "from" in m and "role" not in m else "role"
        content_key = "value" if "value" in m and "content" not in m else "content"
        role = _text(_required(m, role_key), "role")
        content = m.get(content_key) if with_folder and m.get("tool_calls") else _required(m, content_key)
        if content is None and with_folder:
            content = ""
        if isinstance(content, list):
            if any(not isinstance(part, dict) or part.get("type") != "text" for part in content):
                raise BadRow("a message contains a part that is not text")
            content = "".join(_text(_required(part, "text"), "text") for part in content)
        if role not in _ROLES and not with_folder:
            raise BadRow(f"a message has the unsupported role {role}")
        message = _ROLES.get(role, role), _text(content, "content")
        if with_folder:  # other members for the template, e.g. tool_calls
            message += ({k: v for k, v in m.items() if k not in (role_key, content_key)},)
        out.append(message)
    return out


def _tools(row, data):
    """The tools that a row declares; None without a template of a folder."""
    tools = row.get("tools") if data.get("chat_template") else None
    if isinstance(tools, str):
        try:
            tools = json.loads(tools)
        except ValueError:
            raise BadRow('"tools" is not JSON') from None
    if tools is not None and not isinstance(tools, list):
        raise BadRow('"tools" is not a list')
    return tools


def _with_input(prompt, more):
    return f"{prompt}\n{more}" if more else prompt


def detect_format(row, data):
    columns = data["columns"]
    if data["format"] != "auto":
        return data["format"]
    if columns.get("messages"):
        return "messages"
    if columns.get("text"):
        return "text"
    if columns.get("prompt") or columns.get("completion"):
        return "prompt_completion"
    for keys, name in ((("messages",), "messages"), (("conversations",), "sharegpt"),
                       (("prompt", "completion"), "prompt_completion"), (("instruction", "output"), "alpaca"),
                       (("text",), "text")):
        if all(k in row for k in keys):
            return name
    raise SystemExit(f"the format of the data cannot be detected: keys {', '.join(row)}. Set data.format or data.columns")


def read_record(row, form, data):
    """(messages, index of the completion, tools), ("pair", prompt, completion) or ("text", text)."""
    if not isinstance(row, dict):
        raise BadRow("the row is not an object")
    name = lambda role, usual: data["columns"].get(role) or usual  # noqa: E731
    if form == "text":
        return "text", _text(_required(row, name("text", "text")), "text")
    system = _optional(row, name("system", "" if form == "prompt_completion" else "system"))
    messages = [("system", system)] if system else []
    if form in ("messages", "sharegpt"):
        key = name("messages", "messages" if form == "messages" else "conversations")
        messages += _messages(_required(row, key), key, data)
        answered = [i for i, m in enumerate(messages) if m[0] == "assistant"]
        return messages, answered[-1] if answered else len(messages), _tools(row, data)
    if form == "alpaca":
        history = row.get("history")
        if history is not None and not isinstance(history, list):
            raise BadRow('"history" is not a list')
        for turn in history or []:
            if not isinstance(turn, list) or len(turn) != 2:
                raise BadRow('an entry of "history" is not a pair')
            messages += [("user", _text(turn[0], "history")), ("assistant", _text(turn[1], "history"))]
        prompt = _with_input(_text(_required(row, name("prompt", "instruction")), "instruction"),
                             _optional(row, name("input", "input")))
        answer = _text(_required(row, name("completion", "output")), "output")
        return messages + [("user", prompt), ("assistant", answer)], len(messages) + 1, None
    prompt_key, completion_key = name("prompt", "prompt"), name("completion", "completion")
    prompt, completion = _required(row, prompt_key), _required(row, completion_key)
    if isinstance(prompt, list):
        messages += _messages(prompt, prompt_key, data)
        at = len(messages)
        messages += _messages(completion, completion_key, data)
        if at == len(messages) or messages[at][0] != "assistant":
            raise BadRow(f'"{completion_key}" does not start with an answer')
        return messages, at, _tools(row, data)
    question = _with_input(_text(prompt, prompt_key), _optional(row, name("input", "")))
    answer = _text(completion, completion_key)
    if data["chat"] == "none" and not data.get("chat_template"):
        return "pair", f"{system}\n{question}" if system else question, answer
    return messages + [("user", question), ("assistant", answer)], len(messages) + 1, None


# ---- a conversation to spans of text, as core/data/tokenizer/chat.cpp ----

def _without_thinking(text):
    out = ""
    while True:
        part, closed, rest = text.partition("<channel|>")
        out += part.partition("<|channel>")[0]
        if not closed:
            return out.strip()
        text = rest


def render(chat, messages):
    """[(text, is an answer)], neighbours of one kind joined; every answer has one span."""
    spans = []

    def add(text, answer):
        if not text and not answer:
            return
        if not spans or spans[-1][1] != answer:
            spans.append(["", answer])
        spans[-1][0] += text

    if chat == "none":
        for i, (role, text) in enumerate(messages):
            add(text, role == "assistant")
            if i + 1 < len(messages):
                add("\n", False)
        return spans
    opening, closing = _TURNS[chat]
    first = 1 if messages and messages[0][0] == "system" else 0
    if first and chat == "gemma2":
        raise BadRow("the Gemma 2 template has no system turn")
    if first == len(messages) or any(m[0] != ("user", "assistant")[(i - first) % 2]
                                     for i, m in enumerate(messages) if i >= first):
        raise BadRow("the roles do not alternate, starting with the user")
    prefix = f"{messages[0][1]}\n\n" if first and chat == "gemma3" else ""
    if first and chat == "gemma4":
        add(f"{opening}system\n{messages[0][1].strip()}{closing}\n", False)
    for i in range(first, len(messages)):
        role, text = messages[i]
        answer = role == "assistant"
        add(opening + ("model\n" if answer else "user\n") + prefix, False)
        prefix = ""
        inner = answer and chat == "gemma4" and i + 1 < len(messages)
        add(_without_thinking(text) if inner else text.strip(), answer)
        add(closing, answer)
        add("\n", False)
    return spans


def render_prompt(chat, messages):
    text = "".join(span[0] for span in render(chat, messages))
    if chat == "none":
        return f"{text}\n" if text else text
    return f"{text}{_TURNS[chat][0]}model\n"


class Encoder:
    """Tokens and loss mask of a row. `tokenizer` has encode(text) without special tokens, bos, eos, pad."""

    def __init__(self, data, tokenizer):
        self.data, self.tokenizer, self.markers = data, tokenizer, set()
        self.on, self.stops, self.folder = data["loss"], [tokenizer.eos], folder_template(data)
        self.chat = "folder" if self.folder else data["chat"]
        if self.chat == "none":
            return
        for marker in (self.folder.start, self.folder.end) if self.folder else _TURNS[self.chat]:
            ids = tokenizer.encode(marker) if marker else []
            if len(ids) == 1:
                self.markers.add(ids[0])
            elif not self.folder:  # a folder's template need not have markers
                raise SystemExit(f"the chat template does not fit the tokenizer: {marker} has {len(ids)} tokens")
        if len(ids) == 1:
            self.stops.append(ids[0])

    def _render(self, messages, tools):
        try:
            return self.folder.render(messages, tools) if self.folder else render(self.chat, messages)
        except folder_chat.Refused as error:
            raise BadRow(str(error)) from None

    def _render_prompt(self, messages, tools):
        try:
            return self.folder.render_prompt(messages, tools) if self.folder else render_prompt(self.chat, messages)
        except folder_chat.Refused as error:
            raise BadRow(str(error)) from None

    def __call__(self, record):
        """{"ids", "loss", "prompt", "answer"}"""
        ids, loss, on = [self.tokenizer.bos], [0], self.on

        def add(text, carries, marks=False):
            for token in self.tokenizer.encode(text):
                ids.append(token)
                loss.append(int(carries and not (marks and token in self.markers)))

        def end():
            ids.append(self.tokenizer.eos)
            loss.append(1)

        out = {"ids": ids, "loss": loss, "prompt": "", "answer": ""}
        if record[0] == "text":
            add(record[1], True, True)
            end()
        elif record[0] == "pair":
            add(record[1], on == "all", True)
            add(record[2], True)
            end()
            out["prompt"], out["answer"] = record[1:]
        else:
            messages, completion, tools = record
            chat = self.chat
            if on != "all":
                while messages and messages[-1][0] != "assistant":
                    messages = messages[:-1]
            if not messages:
                return out
            answers = [i for i, m in enumerate(messages) if m[0] == "assistant"]
            at = 0
            for text, is_answer in self._render(messages, tools):
                if is_answer:
                    add(text, on != "completion" or answers[at] >= completion)
                    at += 1
                else:
                    add(text, on == "all", True)
            if chat == "none" and messages[-1][0] == "assistant":
                end()
            if completion < len(messages):
                shown = messages[completion][1]
                out["answer"] = shown if chat == "none" else shown.strip()
                out["prompt"] = self._render_prompt(messages[:completion], tools)
        if ids.count(self.tokenizer.bos) > 1:
            raise BadRow("the text contains the beginning-of-text token")
        return out


# ---- rows to batches, as core/data/dataset/scan.cpp and batches.cpp ----

def without_duplicates(train, held_out, counts):
    """The training examples that differ from earlier ones and from held-out ones (data.dedup)."""
    def key(example):
        return tuple(example["ids"]), tuple(example["loss"])

    kept, earlier, evaluated = [], set(), {key(e) for e in held_out}
    for example in train:
        of = key(example)
        if of in evaluated:
            counts["dropped_held_out"] += 1
        elif of in earlier:
            counts["dropped_repeated"] += 1
        else:
            earlier.add(of)
            kept.append(example)
    return kept


def examples_of(rows, settings, encoder):
    """(training examples, held-out examples, counts)"""
    data, seed = settings["data"], settings["train"]["seed"]
    limit, form = data["max_len"], data["format"]
    train, held_out = [], []
    counts = {"rows": len(rows), "dropped_long": 0, "truncated": 0, "skipped_bad": 0, "no_loss": 0,
              "dropped_repeated": 0, "dropped_held_out": 0}
    for number, row in enumerate(rows):
        try:
            if form == "auto":
                form = detect_format(row, data)
            example = encoder(read_record(row, form, data))
        except BadRow as error:
            if data["on_error"] == "stop":
                raise SystemExit(f"row {number + 1} of the data: {error}. data.on_error=skip skips such rows") from None
            counts["skipped_bad"] += 1
            continue
        loss = example["loss"]
        if 1 not in loss:
            counts["no_loss"] += 1
            continue
        if len(loss) > limit:
            if data["overlong"] == "drop":
                counts["dropped_long"] += 1
                continue
            if 1 not in loss[:limit]:
                counts["no_loss"] += 1
                continue
            counts["truncated"] += 1
            example["ids"], example["loss"] = example["ids"][:limit], loss[:limit]
        share = (Random(_SPLIT, seed, number).at(0) >> 40) * 2.0**-24
        (held_out if share < data["eval_fraction"] else train).append(example)
    if data["dedup"]:
        train = without_duplicates(train, held_out, counts)
    if not train:
        raise SystemExit(f"the data have no usable row to train on: {counts}")
    return train, held_out, counts


def _pack(window, lengths, max_len):
    """First-fit decreasing, with a tree of the free space of the rows."""
    leaves = 1
    while leaves < len(window):
        leaves *= 2
    room, rows = [max_len] * (2 * leaves), []
    for e in sorted(window, key=lambda e: -lengths[e]):
        node = 1
        while node < leaves:
            node = 2 * node if room[2 * node] >= lengths[e] else 2 * node + 1
        row = node - leaves
        while len(rows) <= row:
            rows.append([])
        rows[row].append(e)
        room[node] -= lengths[e]
        while node > 1:
            node //= 2
            room[node] = max(room[2 * node], room[2 * node + 1])
    return rows


def epoch_rows(lengths, settings, epoch):
    data, seed = settings["data"], settings["train"]["seed"]
    order = list(range(len(lengths)))
    Random(_ORDER, seed, epoch).shuffle(order)
    if not data["packing"]:
        return [[e] for e in order]
    rows = []
    for begin in range(0, len(order), _WINDOW):
        packed = _pack(order[begin:begin + _WINDOW], lengths, data["max_len"])
        Random(_ROWS, seed, epoch, begin).shuffle(packed)
        rows += packed
    return rows


def prompts_of(held_out, settings, encoder):
    """Of answers.py: the held-out prompts that the engine would answer."""
    train = settings["train"]
    most = max(train["answers"], train["sample_prompts"] if train["sample_every"] > 0 else 0)
    out = []
    for e in [e for e in held_out if e["prompt"]][:most]:
        ids = [encoder.tokenizer.bos] + encoder.tokenizer.encode(e["prompt"])
        new = min(settings["sample"]["max_new_tokens"], len(encoder.tokenizer.encode(e["answer"])) + 16)
        out.append({"prompt": e["prompt"], "expected": e["answer"], "ids": ids,
                    "max_new": min(new, max(0, settings["model"]["max_positions"] - len(ids)))})
    return {"prompts": out, "stop_ids": encoder.stops}


def build(rows, settings, tokenizer):
    """What data/rows.safetensors and data/answers.json would have: examples (training, then held out), rows of all steps,
    the number of held-out examples, prompts. Sets train.steps if train.epochs is set."""
    train, encoder = settings["train"], Encoder(settings["data"], tokenizer)
    learned, held_out, counts = examples_of(rows, settings, encoder)
    lengths = [len(e["ids"]) for e in learned]
    each = train["batch"] * train["accumulation"]
    plan, epoch = epoch_rows(lengths, settings, 0), 1
    if train["epochs"] > 0:
        train["steps"] = max(1, int(len(plan) * train["epochs"] * (1 + 1e-12) / each))
    while len(plan) < train["steps"] * each:
        plan += epoch_rows(lengths, settings, epoch)
        epoch += 1
    return {"examples": learned + held_out, "rows": plan[:train["steps"] * each], "held_out": len(held_out),
            "answers": prompts_of(held_out, settings, encoder), "counts": counts}


class HubTokenizer:
    """A tokenizer of transformers as Encoder needs it."""

    def __init__(self, tokenizer):
        self.bos, self.eos = tokenizer.bos_token_id, tokenizer.eos_token_id
        self.pad = 0 if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        self.encode = lambda text: tokenizer(text, add_special_tokens=False)["input_ids"]
