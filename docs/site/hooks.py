"""What the generator of the site is told by the pages themselves: the order of index.md, and where links out of docs/ lead."""

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

link = re.compile(r"(\]\()([^)\s]+)(\))")
fence = re.compile(r"^```")
labelled = re.compile(r"^```(\w+) \S+$")


def on_config(config):
    """The navigation is that of index.md: a tab for each heading, an entry for each link."""
    nav, shelf = [{"Home": "index.md"}], None
    for line in (ROOT / "docs/index.md").read_text().splitlines():
        if line.startswith("## "):
            shelf = []
            nav.append({line[3:]: shelf})
        elif entry := re.match(r"- \[(.+)\]\((.+\.md)\)", line):
            shelf.append({entry[1]: entry[2]})
    config.nav = nav
    return config


def on_page_markdown(markdown, page, config, files):
    """Links to files beside docs/ lead to the repository, and the names of files behind fences go, which the generator would show as text."""
    here, out, code = posixpath.dirname("docs/" + page.file.src_uri), [], False
    for line in markdown.splitlines():
        if fence.match(line):
            line = labelled.sub(r"```\1", line)
            code = not code
        elif not code:
            parts = line.split("`")  # every second one is code
            parts[::2] = [link.sub(lambda m: m[1] + target(m[2], here, config) + m[3], part) for part in parts[::2]]
            line = "`".join(parts)
        out.append(line)
    return "\n".join(out)


def target(to, here, config):
    """Where a link of a page in the folder here leads on the site."""
    if re.match(r"[a-z]+:|#", to):
        return to
    path, mark, anchor = to.partition("#")
    file = posixpath.normpath(posixpath.join(here, path))
    if file.startswith("docs/") and file.endswith((".md", ".json", ".svg")):
        return to
    if not (ROOT / file).exists():
        raise SystemExit(f"{here}: the link {to} leads nowhere")
    kind = "tree" if (ROOT / file).is_dir() else "blob"
    return f"{config.extra['repository']}/{kind}/main/{file}{mark}{anchor}"
