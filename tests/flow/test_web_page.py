# SPDX-License-Identifier: Apache-2.0
"""The waiting page: what its files promise. What a browser makes of them is in tests/browser."""
import gzip
import json
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "web", "waiting")


def text_of(name):
    with open(os.path.join(PAGE, name), encoding="utf-8") as handle:
        return handle.read()


def catalogues():
    names = [name for name in sorted(os.listdir(PAGE)) if name.startswith("messages.")]
    assert [name.split(".")[1] for name in names] == ["ar", "de", "en", "es", "fr", "ja"]
    return {name: json.loads(text_of(name)) for name in names}


def placeholders(message):
    forms = message.values() if isinstance(message, dict) else [message]
    return {frozenset(re.findall(r"\{(\w+)\}", form)) for form in forms}


def test_every_language_says_the_same():
    words = catalogues()
    english = words.pop("messages.en.json")
    for name, other in words.items():
        assert set(other) == set(english), name
        for key, message in english.items():
            assert placeholders(other[key]) == placeholders(message), (name, key)
            assert not isinstance(other[key], dict) or "other" in other[key], (name, key)


def test_numbers_have_the_forms_of_their_language():
    """Intl.PluralRules asks for these; a form that is missing falls back to "other", so one that is never asked for is a mistake."""
    forms = {"ar": {"zero", "one", "two", "few", "many", "other"}, "de": {"one", "other"}, "en": {"one", "other"},
             "es": {"one", "many", "other"}, "fr": {"one", "many", "other"}, "ja": {"other"}}
    for name, words in catalogues().items():
        plural = [message for message in words.values() if isinstance(message, dict)]
        assert plural and all(set(message) <= forms[name.split(".")[1]] for message in plural), name


def test_every_message_used_exists():
    english = catalogues()["messages.en.json"]
    script = text_of("page.js")
    used = set(re.findall(r'data-t="([^"]+)"', text_of("index.html")))
    used |= {key for key in re.findall(r'say\("([\w.]+)"', script)} | set(re.findall(r'"((?:fault|odds)\.\w+)"', script))
    used |= set(re.findall(r"\{\{=([\w.]+)\}\}", text_of("wait.html")))
    views = re.search(r"const shows = \{(.*?)\};", script, re.S).group(1)
    for view in re.findall(r"(\w+): \[", views):
        used |= {f"badge.{view}", f"{view}.headline", f"{view}.sentence"}
    assert len(used) > 60
    assert used <= set(english), used - set(english)


def test_nothing_inline_and_nothing_from_elsewhere():
    for name in ("index.html", "wait.html"):
        page = text_of(name)
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page), name
        assert all(re.search(r"\ssrc=", script) for script in re.findall(r"<script[^>]*>", page)), name
    for name in os.listdir(PAGE):
        if name != "README.md":
            elsewhere = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+", text_of(name))) - {"http://www.w3.org"}
            assert not elsewhere, (name, elsewhere)


def compressed(name):
    return gzip.compress(text_of(name).encode())


def test_it_is_small():
    words = max((f"messages.{tag}.json" for tag in ("ar", "de", "en", "es", "fr", "ja")), key=lambda name: len(compressed(name)))
    sent = ["index.html", "page.css", "page.js", "work.js", "icon.svg", words]
    assert sum(len(compressed(name)) for name in sent) < 30_000
    assert len(compressed("work.js")) < 2_000
