"""The answer of `argosy why` in sentences."""

from __future__ import annotations

from argosy.model.answers import WhyAnswer
from argosy.model.explanations import EXCLUDED_BY


def sentences(answer: WhyAnswer) -> list[str]:
    """The answer first, what would help last; unknown parts are left out."""
    lines = []
    if answer.ruled_out and not answer.details:
        most_first = sorted(answer.ruled_out.items(), key=lambda item: (-item[1], item[0]))
        lines.append("ruled out: " + ", ".join(_excluded(*item) for item in most_first))
    lines.extend(answer.violated)
    if answer.remedy:
        lines.append(f"what would help: {answer.remedy}")
    return [answer.sentence, *answer.details, *(_sentence(line) for line in lines if line)]


def _excluded(reason: str, count: int) -> str:
    """How many machines a reason rules out; a reason is a resource unless it is one of these."""
    one = count == 1
    match reason:
        case "down":
            return f"{count:,} {'is' if one else 'are'} down"
        case "full":
            return f"{count:,} {'has' if one else 'have'} nothing free"
        case "offered":
            return f"{count:,} {'is' if one else 'are'} on offer to others or held for gangs"
        case "declined":
            return f"{count:,} {'was' if one else 'were'} declined by its framework"
        case "not wanted":
            return f"{count:,} {'does' if one else 'do'} not pass its framework's filters"
        case "queue full":
            return f"{count:,} {'has' if one else 'have'} a full queue"
        case "unanswered":
            return f"{count:,} {'is' if one else 'are'} in clusters whose agents did not answer"
        case _ if reason.startswith(EXCLUDED_BY):
            return f"{count:,} {'is' if one else 'are'} excluded {reason}"
    return f"{count:,} {'lacks' if one else 'lack'} {reason}"


def _sentence(text: str) -> str:
    text = text.strip()
    return text[0].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
