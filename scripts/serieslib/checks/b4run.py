# SPDX-License-Identifier: GPL-2.0
"""Gives the mails to git am and to b4, and sees that all make the same tree of them.

b4 works offline, in a repository and with a home folder of its own, so that
it neither asks lore nor reads the user's configuration.  Only options that
b4 0.12 and 0.14 both know are used.

b4 send is checked as far as it goes without sending: the series is enrolled
as a prep branch, and what b4 send -o writes has the same subjects, authors,
messages, diffs and thread as our mails, and no addressee less.  It cannot be
the same to the byte: b4 numbers its own Message-IDs and takes the time of
the day, adds X-B4- headers and a signature, writes blob names of another
length and Cc's a patch's people on that patch only.  Cryptographic signing is off.
"""

from __future__ import annotations

import email.header
import email.utils
import mailbox
import re
from email.message import Message
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Optional

from gatelib.base import proc
from gatelib.base.workspace import Workspace
from gatelib.trees.files import Blob, write_blob
from serieslib.base.git import Git, isolated
from serieslib.base.report import Finding, Report
from serieslib.base.tables import BASE_TAG
from serieslib.mails import baserepo
from serieslib.mails.letters import AM_MBOX, MBOX
from serieslib.mails.series import Series
from serieslib.sets import cover

_LOOK = "read the log"


class Mails(NamedTuple):
    """Exported mails, and the repositories to try them in."""
    series: Series
    base: str		# commit
    folder: Path	# of the mails
    temp: Path		# for repositories


def _home(temp: Path, sender: str, editor: str = "false") -> Path:
    """Write the git configuration that b4 is to find; return the file."""
    name, address = email.utils.parseaddr(sender)
    config = temp / "gitconfig"
    write_blob(config, Blob(
        f"[user]\n\tname = {_quoted(name)}\n\temail = {_quoted(address)}\n"
        f"[core]\n\teditor = {_quoted(editor)}\n"
        "[b4]\n\tsend-no-patatt-sign = yes\n\tprep-cover-strategy = commit\n"
        "\tprep-pre-flight-checks = disable-all\n\tattestation-policy = off\n".encode()))
    return config


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _environment(mails: Mails, work: Workspace, sender: str,
                 editor: str = "false") -> Dict[str, str]:
    env = isolated(work.env, _home(mails.temp, sender, editor))
    for name in [each for each in env if each.startswith(("GIT_AUTHOR_", "GIT_COMMITTER_"))]:
        del env[name]	# they would overrule the sender's identity
    home = mails.temp / "home"
    env.update(HOME=str(home), XDG_CONFIG_HOME=str(home / "config"),
               XDG_DATA_HOME=str(home / "data"), XDG_CACHE_HOME=str(home / "cache"),
               GIT_CEILING_DIRECTORIES=str(mails.temp))
    home.mkdir(exist_ok=True)
    return env


def _clone(mails: Mails, name: str, work: Workspace) -> Git:
    git = baserepo.clone(mails.series, mails.base, mails.temp / name, work,
                         mails.series.plan.files)
    git.run("checkout", "-q", "-B", "series")
    return git


def _same(git: Git, reference: Git, what: str) -> List[Finding]:
    """Compare trees, authors and messages of what was applied with the reference."""
    theirs, ours = ([each.text("rev-parse", "HEAD^{tree}"),
                     each.text("log", "--format=%an <%ae>%n%B", f"{BASE_TAG}..HEAD")]
                    for each in (git, reference))
    found = []
    if theirs[0] != ours[0]:
        found.append(Finding(f"{what} makes another tree than git am", _LOOK))
    if theirs[1] != ours[1]:
        found.append(Finding(f"{what} makes other authors or messages than git am", _LOOK))
    return found


def git_am(mails: Mails, work: Workspace, report: Report) -> Optional[Git]:
    """Apply the mboxes with git am; return a repository if it is as it has to be.

    Every commit has to have the files that the patches of the set make.
    """
    git = _clone(mails, "am", work)
    wrong = git.am([mails.folder / AM_MBOX])
    if not report.judge(mails.series.name, "git am", [Finding(wrong, _LOOK)] if wrong else []):
        return None
    commits = git.text("rev-list", "--reverse", f"{BASE_TAG}..HEAD").split()
    for number, (patch, files) in enumerate(zip(mails.series.patches, mails.series.steps[1:])):
        found = []
        for name, blob in files.items():
            there = git.attempt("cat-file", "blob", f"{commits[number]}:{name}") \
                if number < len(commits) else None
            data = there.stdout if there is not None and there.returncode == 0 else None
            if data != (blob.data if blob is not None else None):
                found.append(Finding(f"git am makes another {name} than the patches", _LOOK))
        report.judge(f"{mails.series.name} {patch.name}", "same files by git am", found)
    whole = _clone(mails, "am-thread", work)
    # The cover letter is a mail without a patch.
    wrong = whole.am([mails.folder / MBOX], "--empty=drop")
    report.judge(mails.series.name, "git am --empty=drop", [Finding(wrong, _LOOK)] if wrong
                else _same(whole, git, "git am --empty=drop"))
    return git


def b4_am(mails: Mails, reference: Git, sender: str, work: Workspace, report: Report) -> None:
    """Have b4 am make an mbox of ours, and apply that."""
    git = _clone(mails, "b4-am", work)
    out = mails.temp / "b4-am-out"
    out.mkdir()
    wrong = _b4(["am", "-m", str(mails.folder / MBOX), "-o", str(out)], git,
                _environment(mails, work, sender))
    boxes = sorted(out.glob("*.mbx"))
    if not wrong and len(boxes) != 1:
        wrong = f"b4 am made {len(boxes)} mboxes"
    if not wrong:
        said = git.am(boxes)
        wrong = f"git am does not take what b4 am made: {said}" if said else ""
    report.judge(mails.series.name, "b4 am", [Finding(wrong, _LOOK)] if wrong
                else _same(git, reference, "b4 am"))


def b4_shazam(mails: Mails, reference: Git, sender: str, work: Workspace, report: Report) -> None:
    """Have b4 apply the mbox by itself."""
    git = _clone(mails, "b4-shazam", work)
    wrong = _b4(["shazam", "-m", str(mails.folder / MBOX)], git,
                _environment(mails, work, sender))
    report.judge(mails.series.name, "b4 shazam", [Finding(wrong, _LOOK)] if wrong
                else _same(git, reference, "b4 shazam"))


def _b4(words: List[str], git: Git, env: Mapping[str, str]) -> str:
    """Run b4; return "", or its last words if it failed."""
    done = proc.capture(["b4", "--offline-mode", "-n", *words], env=env, cwd=git.folder)
    if done.returncode == 0:
        return ""
    lines = (done.stdout + done.stderr).decode("utf-8", "replace").strip().splitlines()
    return f"b4 {words[0]} failed: {proc.printable(lines[-1]) if lines else 'no message'}"


def b4_send(mails: Mails, reference: Git, sender: str, work: Workspace, report: Report) -> None:
    """Have b4 send -o write the series, and compare it with our mails mail by mail."""
    git = _clone(mails, "b4-send", work)
    git.borrow(reference.folder / ".git" / "objects")
    git.run("fetch", "-q", str(reference.folder), "HEAD")
    git.run("reset", "-q", "--hard", "FETCH_HEAD")
    ours = _read_box(mails.folder / MBOX)
    letter = mails.temp / "letter"
    letter.write_text(_letter(ours[0]), encoding="utf-8")
    env = _environment(mails, work, sender, f"cp {letter}")
    out = mails.temp / "b4-send-out"
    wrong = ""
    for words in (["prep", "--enroll", BASE_TAG], ["prep", "--edit-cover"],
                  ["send", "--no-sign", "--not-me-too", "-o", str(out)]):
        wrong = wrong or _b4(words, git, env)
    if wrong:
        report.judge(mails.series.name, "b4 send", [Finding(wrong, _LOOK)])
        return
    theirs = [_read(path) for path in sorted(out.glob("*.eml"))]
    found = _compare(ours, theirs, sender)
    report.judge(mails.series.name, "b4 send", found)


def _letter(mail: Message) -> str:
    """Return our cover letter as b4 wants to have it edited: with To: and Cc: below."""
    text = cover.text_of("\n\n" + _body(mail))
    people = [f"{title}: {email.utils.formataddr(pair)}" for title in ("To", "Cc")
              for pair in _people([mail], title)]
    return f"{_subject(mail)}\n\n{text}\n\n" + "\n".join(people) + "\n"


def _read_box(path: Path) -> List[Message]:
    box = mailbox.mbox(str(path))
    try:
        return list(box)
    finally:
        box.close()


def _read(path: Path) -> Message:
    return email.message_from_bytes(path.read_bytes())


def _body(mail: Message) -> str:
    data = mail.get_payload(decode=True)
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else ""


def _header(mail: Message, name: str) -> str:
    value = str(email.header.make_header(email.header.decode_header(str(mail.get(name, "")))))
    return " ".join(value.split())


def _subject(mail: Message) -> str:
    return re.sub(r"^\[[^]]*\] ", "", _header(mail, "Subject"))


def _people(mails: List[Message], *titles: str) -> List["tuple[str, str]"]:
    found: Dict[str, "tuple[str, str]"] = {}
    for mail in mails:
        for title in titles:
            for name, address in email.utils.getaddresses([_header(mail, title)]):
                found.setdefault(address.lower(), (name, address))
    return list(found.values())


def _essence(mail: Message) -> str:
    """Return what has to be the same in a patch mail: message and diff."""
    text = re.sub(r"^index ([0-9a-f]{7})[0-9a-f]*\.\.([0-9a-f]{7})[0-9a-f]*", r"index \1..\2",
                  _body(mail).replace("\r\n", "\n"), flags=re.M)
    text = re.sub(r"\n-- \n[^\n]*\n*$", "\n", text)
    # The three dashes, the diffstat and the empty lines around them are set by each in its own way.
    message, _, rest = text.partition("\n---\n")
    at = rest.find("diff --git ")
    return message.strip() + "\n---\n" + rest[at:].rstrip("\n") + "\n"


def _compare(ours: List[Message], theirs: List[Message], sender: str) -> List[Finding]:
    if len(ours) != len(theirs):
        return [Finding(f"b4 send writes {len(theirs)} mails and we {len(ours)}", _LOOK)]
    found = []
    for one, other in zip(ours, theirs):
        name = _header(one, "Subject")
        for title in ("Subject", "From"):
            if _header(one, title) != _header(other, title):
                found.append(Finding(f"{title} of {name}: b4 send writes {_header(other, title)}",
                                     _LOOK))
        if one is not ours[0] and _essence(one) != _essence(other):
            found.append(Finding(f"message or diff of {name} differ from b4 send's", _LOOK))
        top = _header(theirs[0], "Message-ID")
        if other is not theirs[0] and top not in _header(other, "References"):
            found.append(Finding(f"{name} is not in b4 send's thread", _LOOK))
    if cover.text_of("\n\n" + _body(ours[0])) not in _body(theirs[0]).replace("\r\n", "\n"):
        found.append(Finding("b4 send writes another cover letter", _LOOK))
    mine = {pair[1].lower() for pair in _people(ours, "To", "Cc")}
    b4s = {pair[1].lower() for pair in _people(theirs, "To", "Cc")}
    b4s |= {email.utils.parseaddr(sender)[1].lower()}
    for address in sorted((mine ^ b4s) - {email.utils.parseaddr(sender)[1].lower()}):
        found.append(Finding(f"{address} gets either b4 send's mails or ours", _LOOK))
    return found
