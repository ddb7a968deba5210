"""Reads a page strictly: every element closed in order, with its ids, references, scripts, figures and policy."""

from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "input", "hr"}
REFERRING = ("for", "aria-labelledby", "aria-describedby", "aria-controls")


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.found, self.scripts, self.data, self.text = [], [], [], {}, ""
        self.figures = []  # what lies in each: its tags, its text, and the words of its drawing
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.found.append((tag, attributes))
        if tag == "figure":
            self.figures.append({"tags": [], "text": "", "drawn": ""})
        if tag not in VOID:
            self.open.append((tag, attributes))
        if self.inside("figure"):
            self.figures[-1]["tags"].append((tag, attributes))

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, tag
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        tag, attributes = self.open[-1] if self.open else ("", {})
        if tag == "script" and attributes.get("type") == "application/json":
            self.data[attributes["id"]] = data
        elif tag == "script":
            self.scripts.append(data)
        elif tag != "style":
            self.text += data
        if self.inside("figure"):
            self.figures[-1]["drawn" if self.inside("svg") else "text"] += data

    def inside(self, tag):
        return tag in (name for name, _ in self.open)

    def all(self, tag):
        return [attributes for name, attributes in self.found if name == tag]

    @property
    def ids(self):
        return [attributes["id"] for _, attributes in self.found if "id" in attributes]

    @property
    def policy(self):
        (content,) = [
            meta["content"] for meta in self.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"
        ]
        return dict(part.split(" ", 1) for part in content.split("; "))

    @property
    def references(self):
        for _, attributes in self.found:
            for name in REFERRING:
                yield from (attributes.get(name) or "").split()
            if attributes.get("href", "").startswith("#"):
                yield attributes["href"][1:]
