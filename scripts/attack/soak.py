#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sends mixed traffic to a running server and watches its process. Started by scripts/soak.sh; Python's library only."""
import argparse
import http.client
import json
import os
import random
import statistics
import sys
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

QUESTIONS = ['What is the opposite of %s?' % word for word in
             ('big', 'hot', 'fast', 'old', 'dark', 'full', 'early', 'hard', 'wet', 'near')]
SYSTEM = 'You answer in one short sentence. ' * 12
REFUSED = [  # body, expected status
    (b'{"messages": [', 400),
    (b'[]', 400),
    (b'{"messages": []}', 400),
    (b'{"messages": [{"role": "user", "content": 5}]}', 400),
    (b'{"messages": [{"role": "user", "content": "hi"}], "temperature": -1}', 400),
    (b'{"messages": [{"role": "user", "content": "hi"}], "max_tokens": -7}', 400),
    (b'{"model": "no-such-model", "messages": [{"role": "user", "content": "hi"}]}', 404),
    (b'\xff\xfe{}', 400),
]


class Failure(Exception):
    pass


class Client:
    def __init__(self, url):
        self.address = urllib.parse.urlsplit(url).netloc

    def send(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.address, timeout=300)
        connection.request(method, path, body, {'Content-Type': 'application/json'})
        return connection, connection.getresponse()

    def post(self, path, fields):
        """Returns (status, JSON of the answer)."""
        connection, response = self.send('POST', path, json.dumps(fields))
        text = response.read()
        connection.close()
        return response.status, json.loads(text)

    def stream(self, path, fields, pause_s=0.0, break_after=None):
        """Returns (status, text) of a streamed answer; the text is None if it was broken off or refused."""
        connection, response = self.send('POST', path, json.dumps({**fields, 'stream': True}))
        try:
            if response.status != 200:
                response.read()
                return response.status, None
            parts, ended = [], False
            for line in response:
                if not line.startswith(b'data: '):
                    continue
                if line.strip() == b'data: [DONE]':
                    ended = True
                    break
                for choice in json.loads(line[6:])['choices']:
                    parts.append(choice['delta'].get('content') or '' if 'delta' in choice else choice['text'])
                if break_after is not None and len(parts) >= break_after:
                    return response.status, None
                time.sleep(pause_s)
            if not ended:
                raise Failure('a stream ended without [DONE]')
            return response.status, ''.join(parts)
        finally:
            connection.close()


class Traffic:
    def __init__(self, client):
        self.client = client
        self.answers = {}  # greedy prompts, or sampled prompts and their seeds -> the first answer
        self.lock = threading.Lock()

    def remember(self, key, text):
        with self.lock:
            first = self.answers.setdefault(key, text)
        if first != text:
            raise Failure(f'the answer to {key!r} changed: first {first[:80]!r}, now {text[:80]!r}')

    @staticmethod
    def chat_of(question, system=''):
        messages = ([{'role': 'system', 'content': system}] if system else []) + [{'role': 'user', 'content': question}]
        return {'messages': messages, 'temperature': 0, 'max_tokens': 24}

    def chat(self, rng, system=''):
        question = rng.choice(QUESTIONS)
        status, answer = self.client.post('/v1/chat/completions', self.chat_of(question, system))
        if status == 200:
            self.remember(system + question, answer['choices'][0]['message']['content'])
        return status

    def chat_streamed(self, rng, system='', pause_s=0.0):
        question = rng.choice(QUESTIONS)
        status, text = self.client.stream('/v1/chat/completions', self.chat_of(question, system), pause_s)
        if text is not None:
            self.remember(system + question, text)
        return status

    def shared_prefix(self, rng):
        return self.chat(rng, SYSTEM)

    def shared_prefix_streamed(self, rng):
        return self.chat_streamed(rng, SYSTEM)

    def read_slowly(self, rng):
        return self.chat_streamed(rng, pause_s=0.2)

    def broken_off(self, rng):
        fields = {**self.chat_of(rng.choice(QUESTIONS)), 'max_tokens': 96, 'ignore_eos': True}
        return self.client.stream('/v1/chat/completions', fields, break_after=rng.randrange(8))[0]

    def completion(self, rng):
        prompt = 'Once upon a time ' * rng.randrange(1, 24)
        fields = {'prompt': prompt, 'temperature': 0, 'max_tokens': 16, 'ignore_eos': True}
        status, answer = self.client.post('/v1/completions', fields)
        if status == 200:
            self.remember(prompt, answer['choices'][0]['text'])
        return status

    def sampled(self, rng):
        question, seed = rng.choice(QUESTIONS), rng.randrange(50)
        fields = {'prompt': question, 'temperature': 1, 'top_p': 0.9, 'top_k': 40, 'seed': seed, 'max_tokens': 32}
        status, answer = self.client.post('/v1/completions', fields)
        if status == 200:
            self.remember((question, seed), answer['choices'][0]['text'])
        return status

    def refused(self, rng):
        body, expected = rng.choice(REFUSED)
        connection, response = self.client.send('POST', '/v1/chat/completions', body)
        error = json.loads(response.read())
        connection.close()
        if response.status != expected or 'error' not in error:
            raise Failure(f'{body[:60]!r}: status {response.status}, expected {expected}')
        return 200

    def poll(self, rng):
        path = rng.choice(['/v1/models', '/metrics', '/health', '/requests', '/version'])
        connection, response = self.client.send('GET', path)
        response.read()
        connection.close()
        return response.status

    KINDS = {'chat': 6, 'chat_streamed': 6, 'shared_prefix': 4, 'shared_prefix_streamed': 4, 'read_slowly': 1,
             'broken_off': 3, 'completion': 4, 'sampled': 4, 'refused': 2, 'poll': 3}


class Record:
    def __init__(self):
        self.lock = threading.Lock()
        self.of_kind = {kind: {'whole': 0, 'status_429': 0, 'failed': 0, 'seconds': []} for kind in Traffic.KINDS}
        self.failures = {}

    def add(self, kind, status, seconds, failure):
        with self.lock:
            row = self.of_kind[kind]
            if failure is None and status == 429:
                row['status_429'] += 1
            elif failure is None and status == 200:
                row['whole'] += 1
                row['seconds'].append(seconds)
            else:
                row['failed'] += 1
                text = failure or f'status {status}'
                self.failures[text] = self.failures.get(text, 0) + 1

    def total(self, name):
        with self.lock:
            return sum(row[name] for row in self.of_kind.values())


def process_state(pid):
    with open(f'/proc/{pid}/status', encoding='ascii') as file:
        fields = dict(line.split(':', 1) for line in file if ':' in line)
    return {'memory': int(fields['VmRSS'].split()[0]) * 1024, 'threads': int(fields['Threads']),
            'files': len(os.listdir(f'/proc/{pid}/fd'))}


def one(traffic, record, kind, seed):
    began, status, failure = time.monotonic(), 0, None
    try:
        status = getattr(traffic, kind)(random.Random(seed))
    except (Failure, OSError, ValueError, KeyError, IndexError, http.client.HTTPException) as error:
        failure = f'{kind}: {type(error).__name__}: {error}'
    record.add(kind, status, time.monotonic() - began, failure)


def print_row(at, state, record):
    print(f'{at:8.0f} {state["memory"] / 2**20:9.1f} MiB {state["threads"]:7} {state["files"]:6} '
          f'{record.total("whole"):9} {record.total("status_429"):6} {record.total("failed"):6}', flush=True)


def run(options, traffic, record):
    """Sends requests with exponential pauses and a burst of 64 every five minutes; returns the samples."""
    rng, samples = random.Random(options.seed), []
    kinds, weights = zip(*Traffic.KINDS.items())
    began = time.monotonic()
    next_request = next_sample = next_row = 0.0
    next_burst = 300.0
    print(f'{"s":>8} {"memory":>13} {"threads":>7} {"files":>6} {"whole":>9} {"429":>6} {"failed":>6}')
    with ThreadPoolExecutor(max_workers=128) as pool:
        while (at := time.monotonic() - began) < options.seconds:
            burst = 64 if at >= next_burst else 0
            next_burst += 300 if burst else 0
            for _ in range(burst or int(at >= next_request)):
                pool.submit(one, traffic, record, rng.choices(kinds, weights)[0], rng.random())
            if at >= next_request:
                next_request = at + rng.expovariate(options.rate)
            if at >= next_sample:
                next_sample += min(10.0, options.seconds / 40)
                samples.append({'at_s': at, **process_state(options.pid)})
                if at >= next_row:
                    next_row += options.seconds / 24
                    print_row(at, samples[-1], record)
            time.sleep(max(0.0, min(next_request, next_sample, next_burst) - (time.monotonic() - began)))
    time.sleep(2)
    samples.append({'at_s': time.monotonic() - began, **process_state(options.pid)})
    print_row(samples[-1]['at_s'], samples[-1], record)
    return samples


def growth(samples, name):
    """From the second quarter, after the warm-up, to the last quarter, of the medians."""
    quarter = len(samples) // 4
    early = statistics.median(s[name] for s in samples[quarter:2 * quarter])
    late = statistics.median(s[name] for s in samples[-quarter:])
    return late / early - 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--url', required=True)
    parser.add_argument('--pid', type=int, required=True, help='process of the server')
    parser.add_argument('--seconds', type=float, default=7200)
    parser.add_argument('--rate', type=float, default=4, help='mean requests per second')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--json', help='write samples and counts to this file')
    options = parser.parse_args()
    record = Record()
    samples = run(options, Traffic(Client(options.url)), record)
    print(f'\n{"kind":24} {"whole":>8} {"429":>6} {"failed":>6} {"median":>10} {"p99":>10}')
    for kind, row in record.of_kind.items():
        times = sorted(row.pop('seconds'))
        shown = [f'{1e3 * times[int(share * (len(times) - 1))]:7.1f} ms' if times else '' for share in (0.5, 0.99)]
        print(f'{kind:24} {row["whole"]:8} {row["status_429"]:6} {row["failed"]:6} {shown[0]:>10} {shown[1]:>10}')
    grown = {name: growth(samples, name) for name in ('memory', 'threads', 'files')}
    print('growth from the second to the last quarter: '
          + ', '.join(f'{name} {100 * value:+.2f} %' for name, value in grown.items()))
    for text, count in record.failures.items():
        print(f'FAILED {count} times: {text}')
    if options.json:
        with open(options.json, 'w', encoding='utf-8') as file:
            json.dump({'samples': samples, 'kinds': record.of_kind, 'growth': grown, 'failures': record.failures}, file)
    good = not record.failures and grown['memory'] < 0.02 and grown['threads'] <= 0.05 and record.total('whole') > 0
    sys.exit(0 if good else 1)


if __name__ == '__main__':
    main()
